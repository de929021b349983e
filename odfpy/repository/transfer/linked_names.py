"""The linked objects of received slices, read from their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.links.linked_objects import UNKNOWN, LinkedSlice, linked_rows, opened
from odfpy.data.hash_set import HashSet, as_names, name_of
from odfpy.data.link_filter import LinkFilter
from odfpy.data.multihash import ALGORITHMS, Multihash
from odfpy.errors import IntegrityError, InvalidValue
from odfpy.repository.objects import ObjectKind, ObjectOfBlock
from odfpy.values import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from odfpy.data.hash_set import Names

PORTION: Final = 1000
"""Number of objects to copy and flush together."""

WITHOUT: Final = "`--files none` copies only the rows, `--files available` the existing files."


def linked_in(
    slices: Iterable[LinkedSlice],
    reader: DatasetLayout,
    choice: LinkFilter,
    done: HashSet,
    *,
    with_removed: bool = False,
) -> Iterator[list[ObjectOfBlock]]:
    """Yield the objects that added rows of slices link to, in portions, each object once.

    Rows that record the removal of an object are skipped by default.

    Args:
        slices: the slices.
        reader: the dataset with the files of the slices.
        choice: selection of rows; if it selects none, nothing is read.
        done: objects that were already yielded; new ones are added.
        with_removed: whether to include rows that record a removal.

    Raises:
        IntegrityError: a link is not a hash or cannot be verified, or two rows record different sizes.
    """
    for item in () if choice.is_empty else slices:
        sizes = _sizes_in(item, reader, choice, with_removed=with_removed)
        new = done.add(sizes.names)
        for start in range(0, len(new), PORTION):
            names = new[start : start + PORTION]
            block = item.slice.block.hash
            yield [
                ObjectOfBlock(ObjectKind.DATA_SLICE, name_of(name), size, block)
                for name, size in zip(names.tolist(), sizes.of(names), strict=True)
            ]


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Sorted, distinct names of objects with their sizes, `UNKNOWN` if no row records the size."""

    names: Names
    sizes: npt.NDArray[np.int64]

    def of(self, names: Names) -> list[int]:
        from odfpy.data.hash_set import positions

        found: list[int] = self.sizes[positions(self.names, names)].tolist()
        return found


def _sizes_in(item: LinkedSlice, reader: DatasetLayout, choice: LinkFilter, *, with_removed: bool) -> _Sizes:
    import numpy as np

    from odfpy.data.hash_set import SIZE

    names, sizes = [np.array([], f"S{SIZE}")], [np.array([], np.int64)]
    with opened(reader.data, item.slice) as path:
        also, chosen = choice.columns(item.vocab), choice.mask(item.vocab)
        for rows in linked_rows(path, item.columns, item.vocab, also=also, chosen=chosen):
            is_needed = rows.is_new & (True if with_removed else ~rows.removed)
            others = {at: text for at, text in rows.others.items() if is_needed[at]}
            wanted = is_needed & rows.is_link
            names += [rows.names[wanted], as_names(_odd_names(others.values(), item))]
            sizes += [rows.sizes[wanted], np.full(len(names[-1]), UNKNOWN, np.int64)]
    all_names, all_sizes = np.concatenate(names), np.concatenate(sizes)
    order = np.lexsort((all_sizes, all_names))
    all_names, all_sizes = all_names[order], all_sizes[order]
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = all_names[1:] != all_names[:-1]
    # Sizes of equal names are ascending; if the last one is known, its predecessor must be equal or unknown.
    differs = ~is_last[:-1] & (all_sizes[:-1] != UNKNOWN) & (all_sizes[1:] != all_sizes[:-1])
    for at in np.flatnonzero(differs):
        raise IntegrityError(
            f"{_where(item)}: rows say that {name_of(all_names[at])} has {all_sizes[at]} bytes, and {all_sizes[at + 1]}"
        )
    return _Sizes(all_names[is_last], all_sizes[is_last])


def _odd_names(texts: Iterable[str], item: LinkedSlice) -> Iterator[Multihash]:
    """Yield the hashes that are not in their canonical text form."""
    for text in texts:
        try:
            name = Multihash.parse(text)
        except InvalidValue as error:
            raise IntegrityError(
                f"{_where(item)}: a row links to something that is not a hash: {text[:80]!r}", hint=WITHOUT
            ) from error
        algorithm = ALGORITHMS.get(name.code)
        if algorithm is None or algorithm.new is None:
            raise IntegrityError(f"{_where(item)}: a row links to {name}, which cannot be checked", hint=WITHOUT)
        yield name


def _where(item: LinkedSlice) -> str:
    return f"Block {item.slice.block.block.sequence_number} ({item.slice.block.hash})"
