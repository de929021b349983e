"""References other than the head: branches, which move with commits to them, and tags, which are fixed.

    refs/head             the last block
    refs/branch.<name>    the last block of a branch
    refs/tag.<name>       a block under a name

The prefix indicates the kind, in one flat folder as the specification requires. Seen from a branch or tag, a dataset is
like any other, with that block as its head (`ReferenceView`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from odfpy.chain.stores.ref_store import HEAD, RefStore
from odfpy.data.multihash import Multihash
from odfpy.errors import InvalidValue, UsageError
from odfpy.values import dataclass

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}(?<!\.sig)")
_BLOCK = re.compile(r"[0-9]+|f16.*")


class ReferenceKind(Enum):
    """A kind of reference besides the head."""

    BRANCH = "branch"
    TAG = "tag"


@dataclass(frozen=True, order=True, slots=True)
class ReferenceName:
    """The name of a branch or tag.

    Attributes:
        prefix: keyword of its kind.
        name: name for users.
    """

    prefix: str
    name: str

    @classmethod
    def of(cls, kind: ReferenceKind, name: str) -> ReferenceName:
        """Return the reference for a new name from a user.

        Raises:
            InvalidValue: the name is invalid, or would denote a block.
        """
        if means_block(name):
            raise _no_name(kind, name)
        return cls.there(kind, name)

    @classmethod
    def there(cls, kind: ReferenceKind, name: str) -> ReferenceName:
        """Return the reference for an existing name; earlier releases allowed names that denote blocks.

        Raises:
            InvalidValue: the name is invalid.
        """
        reference = cls.parse(f"{kind.value}.{name}")
        if reference is None:
            raise _no_name(kind, name)
        return reference

    @classmethod
    def parse(cls, reference: str) -> ReferenceName | None:
        """Return the branch or tag of a reference; None for other references."""
        prefix, dot, name = reference.partition(".")
        known = dot and prefix in {kind.value for kind in ReferenceKind}
        return cls(prefix, name) if known and _NAME.fullmatch(name) else None

    @property
    def kind(self) -> ReferenceKind:
        """The kind, branch or tag."""
        return ReferenceKind(self.prefix)

    @property
    def other(self) -> ReferenceName:
        """The tag with the name of a branch, or vice versa: `@name` would be ambiguous."""
        kind = ReferenceKind.TAG if self.kind is ReferenceKind.BRANCH else ReferenceKind.BRANCH
        return ReferenceName(kind.value, self.name)

    @property
    def reference(self) -> str:
        """The name of the reference in the reference store."""
        return f"{self.prefix}.{self.name}"

    def __str__(self) -> str:
        return f"{self.prefix} {self.name}"


def means_block(text: str) -> bool:
    """Return whether a text denotes a block by itself, whatever branches and tags there are."""
    return text == HEAD or _BLOCK.fullmatch(text) is not None


def _no_name(kind: ReferenceKind, name: str) -> InvalidValue:
    return InvalidValue(
        f"Not a name for a {kind.value}: {name!r}",
        hint="Use letters, digits and . _ -; not head, a number, or a text that looks like a hash.",
    )


class ReferenceView(RefStore):
    """The references of a dataset, with a branch or tag as the head.

    A branch that does not exist yet is at the head, and is created when it is moved.
    """

    def __init__(self, refs: RefStore, name: ReferenceName) -> None:
        self._refs = refs
        self._name = name.reference

    def get(self, name: str) -> Multihash | None:
        if name != HEAD:
            return self._refs.get(name)
        return self._refs.get(self._name) or self._refs.get(HEAD)

    def compare_and_swap(self, name: str, expected: Multihash | None, new: Multihash) -> None:
        if name != HEAD:
            self._refs.compare_and_swap(name, expected, new)
            return
        # If the head moves afterwards, nothing is lost: the new branch continues from `expected`.
        is_new = self._refs.get(self._name) is None and self._refs.get(HEAD) == expected
        self._refs.compare_and_swap(self._name, None if is_new else expected, new)

    def delete(self, name: str, expected: Multihash) -> None:
        self._refs.delete(self._name if name == HEAD else name, expected)

    def names(self) -> Iterator[str]:
        return self._refs.names()

    def describe(self, name: str) -> str:
        return self._refs.describe(self._name if name == HEAD else name)


class ReferencesAtBlock(RefStore):
    """The references of a dataset at a block; they cannot be changed."""

    def __init__(self, refs: RefStore, block: Multihash) -> None:
        self._refs = refs
        self._block = block

    def get(self, name: str) -> Multihash | None:
        return self._block if name == HEAD else self._refs.get(name)

    def compare_and_swap(self, name: str, expected: Multihash | None, new: Multihash) -> None:
        del expected, new
        self._refuse(name)

    def delete(self, name: str, expected: Multihash) -> None:
        del expected
        self._refuse(name)

    def names(self) -> Iterator[str]:
        return self._refs.names()

    def describe(self, name: str) -> str:
        return f"block {self._block}" if name == HEAD else self._refs.describe(name)

    def _refuse(self, name: str) -> None:
        raise UsageError(f"What was at {self._block} cannot be changed: {name}", hint="Omit @ and the text after it.")
