"""Private keys of a workspace's datasets: `.odf/keys/<id>`, mode 0600. They are never copied elsewhere."""

from __future__ import annotations

from pathlib import Path

from odfpy.dataset.identity import DatasetId, KeyPair
from odfpy.errors import IntegrityError, OdfError
from odfpy.files import replace_file
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class KeyStore:
    """The key pairs of datasets, by dataset id."""

    folder: Path

    def save(self, pair: KeyPair) -> None:
        """Store the key pair of a dataset, readable by its owner only."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self._path(pair.dataset_id), pair.private_key.hex().encode("ascii"), mode=0o600)

    def __contains__(self, dataset_id: DatasetId) -> bool:
        """Return whether the key pair of a dataset exists here, even if damaged; then the dataset was created here."""
        return self._path(dataset_id).exists()

    def get(self, dataset_id: DatasetId) -> KeyPair | None:
        """Return the key pair of a dataset, None if the workspace does not have it, as for copies.

        Raises:
            OdfError: the key pair cannot be read.
        """
        path = self._path(dataset_id)
        try:
            pair = KeyPair(bytes.fromhex(path.read_text(encoding="ascii")))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OdfError(f"Cannot read {path}: {error.strerror}") from error
        except (ValueError, OdfError) as error:
            raise _damaged(path) from error
        if pair.dataset_id != dataset_id:
            raise _damaged(path)
        return pair

    def delete(self, dataset_id: DatasetId) -> None:
        """Delete the key pair of a dataset, if it exists."""
        self._path(dataset_id).unlink(missing_ok=True)

    def _path(self, dataset_id: DatasetId) -> Path:
        return self.folder / dataset_id.multibase


def _damaged(path: Path) -> IntegrityError:
    return IntegrityError(
        f"Damaged key: {path} does not hold the private key of the dataset",
        hint="Restore it from a backup. Without the file, the dataset's own key cannot sign.",
    )
