"""Compact sets of many hashes: 34 bytes per hash in sorted arrays, instead of objects in a Python set.

The arrays are numpy arrays of type `S34`: bytes of a multihash with a 32-byte digest, as of sha3-256 and blake3. An
empty item stands for no hash. numpy drops zeros at the end of items; since all items have one length, they are
restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from odfpy.data.multihash import BLAKE3, SHA3_256, Multihash
from odfpy.errors import InvalidValue

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Names: TypeAlias = "npt.NDArray[np.bytes_]"

SIZE: Final = 34
"""Bytes of a multihash with a digest of 32 bytes."""

_TEXT: Final = 2 * SIZE + 1
_CANONICAL: Final = f"^f(?:{SHA3_256.code:02x}|{BLAKE3.code:02x})20[0-9a-f]{{64}}$"


def names_in(texts: pa.Array) -> tuple[Names, dict[int, str]]:
    """Return the hashes in an array of texts.

    Args:
        texts: strings, may have nulls.

    Returns:
        An array as long as `texts`, with empty items for nulls and for texts that are not the canonical form of a hash;
        and those other texts by position.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    names = np.zeros(len(texts), f"S{SIZE}")
    is_canonical = pc.fill_null(pc.match_substring_regex(texts, _CANONICAL), fill_value=False)
    places = np.flatnonzero(is_canonical.to_numpy(zero_copy_only=False))
    if len(places):
        # All have the same length, so that they form a table without gaps.
        rows = pc.cast(texts.filter(is_canonical), pa.binary(_TEXT))
        data = rows.buffers()[1]
        table = np.frombuffer(data, np.uint8, len(rows) * _TEXT, rows.offset * _TEXT).reshape(-1, _TEXT)
        digits = _digits()[table[:, 1:]]
        names[places] = np.ascontiguousarray(digits[:, 0::2] << 4 | digits[:, 1::2]).view(f"S{SIZE}").ravel()
    is_other = pc.and_(pc.is_valid(texts), pc.invert(is_canonical))
    others = np.flatnonzero(is_other.to_numpy(zero_copy_only=False))
    return names, {int(at): texts[int(at)].as_py() for at in others}


def _digits() -> npt.NDArray[np.uint8]:
    import numpy as np

    values = np.zeros(256, np.uint8)
    for value, digit in enumerate(b"0123456789abcdef"):
        values[digit] = value
    return values


def name_of(item: bytes) -> Multihash:
    """Return the hash in an item of an array."""
    return Multihash.from_bytes(item.ljust(SIZE, b"\0"))


def as_names(hashes: Iterable[Multihash]) -> Names:
    """Return hashes as an array, without those of other lengths."""
    import numpy as np

    return np.array([data for data in (name.to_bytes() for name in hashes) if len(data) == SIZE], f"S{SIZE}")


class HashSet:
    """A growing set of hashes, stored as sorted runs. Each run is at least twice as long as the next one."""

    def __init__(self) -> None:
        self._runs: list[Names] = []
        self._others: set[Multihash] = set()

    def __len__(self) -> int:
        return sum(map(len, self._runs)) + len(self._others)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, Multihash):
            return False
        import numpy as np

        data = name.to_bytes()
        if len(data) != SIZE:
            return name in self._others
        return bool(self.contains(np.array([data], f"S{SIZE}"))[0])

    def __iter__(self) -> Iterator[Multihash]:
        """Yield all hashes, each once."""
        for run in self._runs:
            for item in run:
                yield name_of(item)
        yield from self._others

    def contains(self, names: Names) -> npt.NDArray[np.bool_]:
        """Return for each name whether it is in the set."""
        import numpy as np

        found = np.zeros(len(names), np.bool_)
        for run in self._runs:
            found |= positions(run, names) >= 0
        return found

    def add(self, names: Names) -> Names:
        """Add names, except for empty items.

        Returns:
            The names that were not in the set, sorted.
        """
        import numpy as np

        new: Names = np.unique(names)
        new = new[new != b""]
        new = new[~self.contains(new)]
        if len(new):
            self._runs.append(new)
            while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
                last = self._runs.pop()
                self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]), kind="stable")
        return new

    def add_hashes(self, hashes: Iterable[Multihash]) -> None:
        """Add hashes of any length."""
        hashes = list(hashes)
        self._others.update(name for name in hashes if len(name.to_bytes()) != SIZE)
        self.add(as_names(hashes))

    def add_all(self, other: HashSet) -> None:
        """Add the hashes of another set."""
        for run in other._runs:
            self.add(run)
        self._others |= other._others

    def add_texts(self, texts: Iterable[str]) -> None:
        """Add the hashes in texts of any multibase; texts that are not hashes are ignored."""
        hashes = []
        for text in texts:
            try:
                hashes.append(Multihash.parse(text))
            except InvalidValue:
                continue
        self.add_hashes(hashes)

    def parts(self, count: int) -> Iterator[list[Multihash]]:
        """Yield all hashes in lists of a maximum length."""
        part: list[Multihash] = []
        for name in self:
            part.append(name)
            if len(part) == count:
                yield part
                part = []
        if part:
            yield part


def positions(run: Names, names: Names) -> npt.NDArray[Any]:
    """Return the positions of names in a sorted array, -1 for those that are not in it."""
    import numpy as np

    if not len(run):
        return np.full(len(names), -1, np.int64)
    at = np.minimum(np.searchsorted(run, names), len(run) - 1)
    return np.where(run[at] == names, at, -1)
