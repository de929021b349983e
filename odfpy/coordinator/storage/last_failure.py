"""The record of a dataset's last failed pull, for `odf status`.

info/failure.yaml    in the dataset's folder, from a pull that failed to the next one that does not
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError
from odfpy.repository.documents import load_document, save_document
from odfpy.values import dataclass

_KIND = "DatasetFailure"


@dataclass(frozen=True, slots=True)
class LastFailure:
    """A pull that failed.

    Attributes:
        time: when it failed.
        message: the message of the error.
        code: the code of the error.
        hint: the hint of the error.
    """

    time: Timestamp
    message: str
    code: str
    hint: str | None = None


def remember(dataset: StoredDataset, error: OdfError | None) -> None:
    """Record that the last pull of a dataset failed, or with None that it did not.

    A failure to write the record is ignored: the disk may be full, which may be why the pull failed.
    """
    path = _path(dataset)
    with suppress(OdfError, OSError):
        if not dataset.folder.is_dir():  # it was deleted meanwhile, and must not reappear as a folder with a failure
            return
        if error is not None:
            save_document(path, _KIND, LastFailure(Timestamp.now(), error.message, error.code, error.hint))
        else:
            path.unlink(missing_ok=True)


def last_failure(dataset: StoredDataset) -> LastFailure | None:
    """Return the failure of the last pull of a dataset, None if it did not fail, or was never pulled.

    Raises:
        MalformedManifest: the record is damaged; the message names its file.
    """
    return load_document(_path(dataset), _KIND, LastFailure)


def _path(dataset: StoredDataset) -> Path:
    return dataset.folder / "info" / "failure.yaml"
