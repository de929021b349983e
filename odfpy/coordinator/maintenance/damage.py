"""Damaged files: those whose bytes are not what their name says."""

from __future__ import annotations

from odfpy.chain.stores.object_store import ObjectStore
from odfpy.data.multihash import Multihash
from odfpy.errors import HashMismatch, IntegrityError, ObjectNotFound, OdfError
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class Damage:
    """The damage of an object.

    Attributes:
        message: in words; it does not name the file.
        cause: the error that it would be.
    """

    message: str
    cause: type[OdfError]


def damage_of(store: ObjectStore, name: Multihash, what: str, size: int | None = None) -> Damage | None:
    """Read an object and compare it with its name, and with its size where that is known; None if all is well.

    Args:
        store: where it is.
        name: its hash.
        what: it is, for the message: `slice`, `checkpoint`, `block`.
        size: bytes that it must have.
    """
    try:
        found_size = store.size(name)
        if size is not None and found_size != size:
            return Damage(f"Damaged {what}: it has {found_size} bytes, the block says {size}", IntegrityError)
        with store.open(name) as stream:
            found = Multihash.of_stream(stream, name.algorithm)
    except ObjectNotFound:
        return Damage(f"Missing {what}", ObjectNotFound)
    except (OdfError, OSError) as error:
        return Damage(f"Unreadable {what}: {error}", type(error) if isinstance(error, OdfError) else OdfError)
    return None if found == name else Damage(f"Damaged {what}: its bytes have the hash {found}", HashMismatch)
