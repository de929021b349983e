"""The place of the arrangements of derivative datasets, see `odfpy.engine.arrangement`.

There is one folder for each dataset, `.odf/cache/<dataset>/arrangement/<block>`, named by the block that its last run
made. So what is there is of that very state of the dataset, whatever has happened to its head since.
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
    """Return the arrangement of a dataset at a block; None if there is none."""
    folder = dataset.cache / _FOLDER / str(head)
    return folder if folder.is_dir() else None


def move(made: Path, before: Path | None, target: Path) -> None:
    """Put what a run has left into a folder, with the runs that it has from before.

    Args:
        made: the folder that the engine has written.
        before: the folder that the run was given.
        target: the folder, whose content goes.

    Raises:
        OSError: that cannot be done.
    """
    shutil.rmtree(target, ignore_errors=True)
    shutil.move(made, target)
    for name in listed_runs(target) or ():
        if before is not None and not (target / name).is_file():
            (before / name).rename(target / name)


def take_over(dataset: StoredDataset, made: Path, before: Path | None, head: Multihash) -> None:
    """Replace the arrangement with the one a run produced. A cache: failures to write are ignored.

    Args:
        dataset: the dataset, whose lock the caller holds.
        made: the folder that the engine has written, which may be missing.
        before: the folder that the run was given.
        head: the block that the run has made.
    """
    place = dataset.cache / _FOLDER
    with suppress(OSError):
        if listed_runs(made) is not None:
            place.mkdir(parents=True, exist_ok=True)
            move(made, before, place / _COMING)
            (place / _COMING).rename(place / str(head))
    # One that was not taken over belongs to a block that is past, and would be of no use any more.
    with suppress(OSError):
        for folder in place.iterdir():
            if folder.name != str(head):
                shutil.rmtree(folder, ignore_errors=True)
