"""Damage of files: content that does not match its hash, or that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from odfpy.chain.stores.object_store import ObjectStore
from odfpy.coordinator.maintenance.report import Finding, Severity
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import HashMismatch, IntegrityError, InvalidValue, ObjectNotFound, OdfError
from odfpy.values import dataclass

_NAME: Final = re.compile(r"\bf[0-9a-f]{8,}\b")


@dataclass(frozen=True, slots=True)
class Damage:
    """The damage of an object.

    Attributes:
        message: a description, without the name of the file.
        cause: the class of the corresponding error.
    """

    message: str
    cause: type[OdfError]


def damage_of(store: ObjectStore, name: Multihash, what: str, size: int | None = None) -> Damage | None:
    """Read an object, and compare it with its hash, and with its size if known; return None if it is intact.

    Args:
        store: the store of the object.
        name: hash of the object.
        what: the kind of object, for the message: `slice`, `checkpoint`, `block`.
        size: the expected size in bytes, None if unknown.
    """
    try:
        found_size = store.size(name)
        if size is not None and found_size != size:
            return Damage(f"Damaged {what}: it has {found_size} bytes, the block says {size}", IntegrityError)
        with store.open(name) as stream:
            actual = Multihash.of_stream(stream, name.algorithm)
    except ObjectNotFound:
        return Damage(f"Missing {what}", ObjectNotFound)
    except (OdfError, OSError) as error:
        return Damage(f"Unreadable {what}: {error}", type(error) if isinstance(error, OdfError) else OdfError)
    return None if actual == name else Damage(f"Damaged {what}: its bytes have the hash {actual}", HashMismatch)


@contextmanager
def unreadable_as_finding(dataset: StoredDataset, findings: list[Finding]) -> Iterator[None]:
    """Turn errors of the block about an unreadable dataset into a finding, so that other datasets are still verified.

    Args:
        dataset: the dataset.
        findings: the list to which the finding is added.

    Raises:
        OSError, OdfError: the error has another cause.
    """
    try:
        yield
    except OSError as error:
        if not str(error.filename).startswith(str(dataset.folder)):
            raise
        text = f"Cannot read {error.filename}: {error.strerror}"
        findings.append(Finding(severity=Severity.ERROR, check="file", message=text, code=OdfError.code))
    except OdfError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        findings.append(Finding(severity=Severity.ERROR, check="file", message=error.message, code=error.code))


@contextmanager
def explain_damage(dataset: StoredDataset) -> Iterator[None]:
    """Raise an error with a repair hint if a transfer in the block fails because of a damaged local file.

    The receiver only detects that the content is wrong.

    Args:
        dataset: the local dataset.

    Raises:
        HashMismatch, ObjectNotFound: a file named by the error is damaged or missing here.
    """
    try:
        yield
    except OdfError as error:
        layout = dataset.layout
        for name in _objects_in(error.message):
            for what, store in (("data file", layout.data), ("checkpoint", layout.checkpoints)):
                is_missing = isinstance(error, ObjectNotFound) and store.describe(name) in error.message
                damage = damage_of(store, name, what) if is_missing or name in store else None
                if damage is not None:
                    hint = f"`odf verify {dataset.handle} --repair` fetches it from a repository that has the dataset."
                    raise damage.cause(f"{damage.message}: {store.describe(name)}", hint=hint) from error
        raise


def _objects_in(text: str) -> Iterator[Multihash]:
    """Yield the distinct object names in a message."""
    for name in dict.fromkeys(_NAME.findall(text)):
        with suppress(InvalidValue):
            yield Multihash.parse(name)
