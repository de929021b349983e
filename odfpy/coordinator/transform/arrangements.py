"""Storage of the arrangements of derivative datasets; see `odfpy.engine.arrangement`.

The arrangement of a dataset is the folder `.odf/cache/<dataset>/arrangement/<block>`, named by the block of its last
run. So it belongs to exactly this state of the dataset, even if the head has moved since.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.state.run_names import listed_runs

_FOLDER: Final = "arrangement"
_COMING: Final = "coming"


def arrangement_at(dataset: StoredDataset, head: Multihash | None) -> Path | None:
    """Return the arrangement of a dataset at a block, None if it does not exist."""
    folder = dataset.cache / _FOLDER / str(head)
    return folder if folder.is_dir() else None


def move(written: Path, before: Path | None, target: Path) -> None:
    """Move the output of a run into a folder, together with the files of earlier runs that it refers to.

    Args:
        written: the folder that the engine has written.
        before: the folder that the run was given.
        target: the folder, whose previous content is removed.

    Raises:
        OSError: the files cannot be moved.
    """
    shutil.rmtree(target, ignore_errors=True)
    shutil.move(written, target)
    for name in listed_runs(target) or ():
        if before is not None and not (target / name).is_file():
            (before / name).rename(target / name)


def take_over(dataset: StoredDataset, written: Path, before: Path | None, head: Multihash) -> None:
    """Replace the arrangement with that of a run. It is a cache: write errors are ignored.

    Args:
        dataset: the dataset, whose lock the caller holds.
        written: the folder that the engine has written, which may be missing.
        before: the folder that the run was given, None for none.
        head: the block of the run.
    """
    place = dataset.cache / _FOLDER
    with suppress(OSError):
        if listed_runs(written) is not None:
            place.mkdir(parents=True, exist_ok=True)
            move(written, before, place / _COMING)
            (place / _COMING).rename(place / str(head))
    # An arrangement that was not replaced belongs to an older block, and is useless.
    with suppress(OSError):
        for folder in place.iterdir():
            if folder.name != str(head):
                shutil.rmtree(folder, ignore_errors=True)
