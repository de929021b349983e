"""Linked objects: files beside the slices of a dataset, to which rows link by hash (RFC-017).

Only rows determine the set of linked objects. They are read from the slices by row group, as arrays of hashes, so that
memory depends on the number of distinct links, not of rows. Slices of a schema without links are not opened.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import SetDataSchema, SetVocab
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.slices import SliceOfBlock, slice_paths
from odfpy.chain.state import ChainState, new_data_of
from odfpy.chain.stores.object_store import ObjectStore, copy_hashed
from odfpy.data.hash_set import HashSet, names_in
from odfpy.data.link_filter import RowMask
from odfpy.data.schemas.object_links import ObjectLinkColumn, link_columns
from odfpy.data.vocabulary import DatasetVocabulary, OperationType
from odfpy.values import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from odfpy.data.hash_set import Names


ROWS: Final = 65_536
"""Number of rows that are read at a time."""

UNKNOWN: Final = -1
"""The size of an object whose row does not state it."""


@dataclass(frozen=True, slots=True)
class LinkedRows:
    """The links of a batch of rows in one column of a slice; all arrays have the same length.

    Attributes:
        column: the column with the links.
        first: position of the first row in its slice, from 0.
        operations: operation types of the rows.
        names: the hashes, empty for rows without one.
        sizes: sizes of the objects in bytes, `UNKNOWN` if a row does not state it.
        removed: true for rows that record the removal of the bytes.
        others: texts that are not the canonical text of a hash, by index of the row.
    """

    column: ObjectLinkColumn
    first: int
    operations: npt.NDArray[np.int32]
    names: Names
    sizes: npt.NDArray[np.int64]
    removed: npt.NDArray[np.bool_]
    others: dict[int, str]

    @property
    def is_new(self) -> npt.NDArray[np.bool_]:
        """True for rows that are added: +A and +C."""
        import numpy as np

        return np.isin(self.operations, (OperationType.APPEND, OperationType.CORRECT_TO))

    @property
    def is_link(self) -> npt.NDArray[np.bool_]:
        """True for rows that link to an object, by a hash in its canonical text."""
        is_link: npt.NDArray[np.bool_] = self.names != b""
        return is_link


@dataclass(frozen=True, slots=True)
class LinkedSlice:
    """A slice whose rows link to objects.

    Attributes:
        slice: the slice.
        columns: the columns with links.
        vocab: names of its system columns.
    """

    slice: SliceOfBlock
    columns: tuple[ObjectLinkColumn, ...]
    vocab: DatasetVocabulary

    def rows(self, layout: DatasetLayout) -> Iterator[LinkedRows]:
        """Yield the links of its rows, in batches.

        Raises:
            OdfError: the slice is missing or cannot be read.
        """
        with opened(layout.data, self.slice) as path:
            yield from linked_rows(path, self.columns, self.vocab)


@contextmanager
def opened(store: ObjectStore, item: SliceOfBlock) -> Iterator[Path]:
    """Provide a slice as a local file; a remote one is fetched, and removed after the block.

    Raises:
        ObjectNotFound: the slice is missing.
        HashMismatch: the fetched file has another hash.
    """
    name = item.data.physical_hash
    if store.local_path(name) is not None:
        yield slice_paths(store, [item])[0]
        return
    with tempfile.NamedTemporaryFile(prefix="odf-slice-") as file, store.open(name) as stream:
        copy_hashed(stream, file.write, name, item.data.size, store.describe(name))
        file.flush()
        yield Path(file.name)


class CurrentLinks:
    """Follows a chain, oldest block first, with the columns that link to objects in the schema in force."""

    def __init__(self, state: ChainState | None = None) -> None:
        state = state or ChainState()
        # Raw Arrow schemas of older writers have no attributes of columns.
        self._columns = () if state.set_schema is None else link_columns(state.set_schema.schema)
        self._vocab = state.vocab

    def after(self, hashed: HashedBlock) -> LinkedSlice | None:
        """Return the slice of the next block, if its rows may link to objects; else None."""
        event = hashed.block.event
        if isinstance(event, SetVocab):
            self._vocab = event.vocabulary
        elif isinstance(event, SetDataSchema):
            self._columns = link_columns(event.schema)
        data = new_data_of(event) if self._columns else None
        return None if data is None else LinkedSlice(SliceOfBlock(hashed, data), self._columns, self._vocab)


def linked_slices(blocks: Iterable[HashedBlock], base: ChainState | None = None) -> Iterator[LinkedSlice]:
    """Return the slices of blocks whose rows may link to objects.

    Args:
        blocks: consecutive blocks, oldest first.
        base: state of the chain before the first of them; by default an empty chain.
    """
    in_force = CurrentLinks(base)
    return (slice_ for slice_ in map(in_force.after, blocks) if slice_ is not None)


def linked_rows(
    path: Path,
    columns: Sequence[ObjectLinkColumn],
    vocab: DatasetVocabulary,
    *,
    also: Sequence[str] = (),
    chosen: RowMask | None = None,
) -> Iterator[LinkedRows]:
    """Yield the links of a slice, in batches of rows.

    Args:
        path: path of the slice.
        columns: columns with links; the slice may lack some.
        vocab: names of its system columns.
        also: columns that `chosen` needs; if the slice lacks one, no row is chosen.
        chosen: selects rows; all by default. Other rows count as neither links nor new.

    Raises:
        IntegrityError, ObjectNotFound, SchemaError: the file cannot be read.
    """
    from odfpy.data.slices.slice import iter_slice, slice_schema

    slice_columns = slice_schema(path, vocab=vocab)
    link_columns = [column for column in columns if column.name in slice_columns.names]
    if not link_columns or not set(also).issubset(slice_columns.names):
        return
    beside = [
        name
        for column in link_columns
        for name in (column.size, column.removed)
        if name and name in slice_columns.names
    ]
    wanted = dict.fromkeys((vocab.operation_type_column, *(column.name for column in link_columns), *beside, *also))
    first = 0
    for batch in iter_slice(path, ROWS, list(wanted), vocab=vocab):
        rows = batch if chosen is None else batch.filter(chosen(batch))
        for column in link_columns:
            yield _of_column(rows, column, vocab, first)
        first += batch.num_rows


def _of_column(batch: pa.RecordBatch, column: ObjectLinkColumn, vocab: DatasetVocabulary, first: int) -> LinkedRows:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    names, others = names_in(pc.cast(batch.column(column.name), pa.string()))
    sizes = np.full(batch.num_rows, UNKNOWN, np.int64)
    removed = np.zeros(batch.num_rows, np.bool_)
    if column.size in batch.schema.names:
        stated_sizes = pc.fill_null(pc.cast(batch.column(column.size), pa.int64(), safe=False), UNKNOWN)
        sizes = np.maximum(stated_sizes.to_numpy(), UNKNOWN)
    if column.removed in batch.schema.names:
        removed = pc.is_valid(batch.column(column.removed)).to_numpy(zero_copy_only=False)
    operations = batch.column(vocab.operation_type_column).to_numpy()
    return LinkedRows(column, first, operations, names, sizes, removed, others)


def all_links(slices: Iterable[SliceOfBlock], columns: Collection[str], layout: DatasetLayout) -> HashSet:
    """Return every object that a row of slices links to, whatever its operation; hashes in other notations are
    included.

    Args:
        slices: the slices; they may lack some columns.
        columns: names of the columns with links. If there are none, no slice is read.
        layout: layout with the store of the slices.

    Raises:
        OdfError: a slice is missing or cannot be read.
    """
    links = HashSet()
    for item in slices if columns else ():
        with opened(layout.data, item) as path:
            for names, others in _links_in(path, columns):
                links.add(names)
                links.add_texts(others.values())
    return links


def _links_in(path: Path, columns: Collection[str]) -> Iterator[tuple[Names, dict[int, str]]]:
    import pyarrow as pa

    from odfpy.data.slices.slice import iter_slice, slice_schema

    names = [name for name in slice_schema(path).names if name in columns]
    for batch in iter_slice(path, ROWS, names) if names else ():
        yield from (names_in(column.cast(pa.string())) for column in batch.columns)


def times_kept(names: Names, slices: Iterable[LinkedSlice], layout: DatasetLayout) -> npt.NDArray[np.int64]:
    """Return for each object the number of current rows that link to it and do not record its removal.

    Args:
        names: the objects, sorted and distinct.
        slices: all slices of a chain: a row is current until another row retracts it.
        layout: layout with the store of the slices.

    Raises:
        OdfError: a slice is missing or cannot be read.
    """
    import numpy as np

    from odfpy.data.hash_set import positions

    counts = np.zeros(len(names), np.int64)
    for item in slices:
        for rows in item.rows(layout):
            at = positions(names, rows.names)
            counted = (at >= 0) & ~rows.removed
            np.add.at(counts, at[counted], np.where(rows.is_new[counted], 1, -1))
    return counts
