"""Record of a dataset's last failed pull, for `odf status`.

info/failure.yaml    in the dataset's folder; exists after a failed pull until the next successful one
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
    """A failed pull.

    Attributes:
        time: time of the failure.
        message: the message of the error.
        code: the code of the error.
        hint: the hint of the error.
    """

    time: Timestamp
    message: str
    code: str
    hint: str | None = None


def remember(dataset: StoredDataset, error: OdfError | None) -> None:
    """Record that the last pull of a dataset has failed, or remove the record if the error is None.

    Errors while writing the record are ignored: a full disk may be the reason for the failed pull.
    """
    path = _path(dataset)
    with suppress(OdfError, OSError):
        if not dataset.folder.is_dir():  # deleted in the meantime: do not create a folder with a failure only
            return
        if error is not None:
            save_document(path, _KIND, LastFailure(Timestamp.now(), error.message, error.code, error.hint))
        else:
            path.unlink(missing_ok=True)


def last_failure(dataset: StoredDataset) -> LastFailure | None:
    """Return the failure of the last pull of a dataset, None if it succeeded or there was none.

    Raises:
        MalformedManifest: the record is damaged; the message names the file.
    """
    return load_document(_path(dataset), _KIND, LastFailure)


def _path(dataset: StoredDataset) -> Path:
    return dataset.folder / "info" / "failure.yaml"
