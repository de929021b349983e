"""The key index of a dataset: the last row of each key, or a fingerprint of it, found without reading the history.

The index is a folder with one file `index` and a few runs (see `run_file`). It is log-structured: new slices become a
new run, and runs that are not much larger than the newer ones are merged with it. So the number of runs is logarithmic
in the number of entries, and the amortized cost of a commit is proportional to its size.

It belongs to a state of the dataset, identified by a `token` that its owner chooses. It can always be rebuilt from the
slices: an index that is missing, damaged, of another release or for another purpose is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.fit import fit_table
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.slice import iter_slice, slice_schema
from odfpy.data.vocabulary import DatasetVocabulary, OperationType
from odfpy.files import replaced_atomically
from odfpy.state.database import SharedDatabase, database
from odfpy.state.entries import HASH, KeyColumns, merged_entries, sorted_entries
from odfpy.state.fingerprints import Entries, Fingerprints
from odfpy.state.merging import DEFAULT_SIZES, IndexSizes, num_staying, ranges
from odfpy.state.run_file import RunInfo, RunWriter, SortedRun, StateDamaged, damage_found
from odfpy.state.run_names import new_run_name
from odfpy.state.sealed import sealed, unsealed
from odfpy.state.value_fingerprints import value_fingerprints
from odfpy.values import dataclass

FORMAT: Final = 2
"""Version of the file format."""

VALUES: Final = "\0values"
"""Column with the fingerprint of a row's values, if the row itself is not stored."""

INDEX: Final = "index"


@dataclass(frozen=True, slots=True)
class IndexPurpose:
    """The purpose of an index.

    Attributes:
        keys: the primary key.
        keeps_rows: whether the current row of each key is stored; otherwise only that the key was seen, with a
            fingerprint of its last values.
        vocabulary: names of the system columns.
    """

    keys: tuple[str, ...]
    keeps_rows: bool
    vocabulary: DatasetVocabulary


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """An index that was opened or created. It is immutable; `extended` returns another one.

    Attributes:
        folder: the folder of the index.
        purpose: its purpose.
        token: identifies the state of the dataset that it belongs to; None for a dataset without slices.
        key_types: types of the keys in duckdb; empty before there are slices.
        runs: its runs, oldest first.
        sizes: the sizes that determine merging.
    """

    folder: Path
    purpose: IndexPurpose
    token: str | None = None
    key_types: tuple[str, ...] = ()
    runs: tuple[RunInfo, ...] = ()
    sizes: IndexSizes = DEFAULT_SIZES

    @classmethod
    def open(cls, folder: Path, purpose: IndexPurpose, sizes: IndexSizes = DEFAULT_SIZES) -> KeyIndex:
        """Open the index in a folder; the content of its runs is checked when it is read.

        Args:
            folder: the folder.
            purpose: the required purpose.
            sizes: sizes of blocks and parts.

        Raises:
            StateDamaged: there is no index, or this release cannot use it for the purpose.
        """
        with damage_found():
            tree = json.loads(unsealed((folder / INDEX).read_bytes()))
            if {key: tree.get(key) for key in ("format", "hash", "purpose")} != _origin(purpose):
                raise StateDamaged(f"{folder / INDEX} is of another release, or for another purpose")
            runs = tuple(RunInfo(**run) for run in tree["runs"])
            return cls(folder, purpose, tree["token"], tuple(tree["key_types"]), runs, sizes)

    def extended(
        self, slices: Sequence[Path], schema: DataSchema, token: str, shared: SharedDatabase | None = None
    ) -> KeyIndex:
        """Return the index extended by slices; it replaces this one in the folder.

        Args:
            slices: the slices after those of the index, in order.
            schema: schema of the dataset, which all slices fit.
            token: the state of the dataset that the new index belongs to.
            shared: database to use; by default a new one.

        Raises:
            StateDamaged: the index is unusable, or the new one cannot be written; the caller starts from an empty one.
            OdfError: a slice cannot be read, or memory is insufficient.
            OSError: there is no disk space for the index.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        wanted = self._columns(schema)
        with database() if shared is None else shared.session() as db, damage_found():
            keys = KeyColumns.of(db, self.purpose.keys, wanted)
            if self.runs and keys.types != self.key_types:
                raise StateDamaged(f"The primary key had the types {self.key_types}, and has {keys.types} now")
            runs = self.runs
            for rows in _parts(slices, wanted, self.purpose.vocabulary, self.sizes):
                runs = self._added(db, keys, runs, sorted_entries(db, keys, self._stored_columns(db, rows)))
        longer = replace(self, token=token, key_types=keys.types, runs=runs)
        _save(longer)
        return longer

    def matching(self, wanted: Fingerprints) -> list[Entries]:
        """Return entries with one of the given fingerprints, ascending and distinct; one item per run, oldest first.

        Raises:
            StateDamaged: a run is missing or damaged.
        """
        return [SortedRun(self.folder, info).matching(wanted) for info in self.runs]

    def entries(self) -> list[Entries]:
        """Return all entries, one item per run, oldest first; each run may have an entry of the same key.

        Raises:
            StateDamaged: a run is missing or damaged.
        """
        return [SortedRun(self.folder, info).all() for info in self.runs]

    # --- Extending ---

    def _columns(self, schema: DataSchema) -> pa.Schema:
        """Return the columns of entries; all are nullable, as in the result of `fit_table`."""
        arrow, keys, made = to_arrow(schema), self.purpose.keys, self.purpose.vocabulary.columns
        names = arrow.names
        if not self.purpose.keeps_rows:
            names = [*keys, *(name for name in names if name not in keys and name not in made)]
        return pa.schema([arrow.field(name).with_nullable(True) for name in names])

    def _stored_columns(self, db: duckdb.DuckDBPyConnection, rows: pa.Table) -> pa.Table:
        """Return the part of the rows' columns that is stored."""
        if self.purpose.keeps_rows:
            return rows
        keys = list(self.purpose.keys)
        return rows.select(keys).append_column(VALUES, value_fingerprints(db, rows.drop_columns(keys)))

    def _added(
        self, db: duckdb.DuckDBPyConnection, keys: KeyColumns, runs: tuple[RunInfo, ...], new: Entries
    ) -> tuple[RunInfo, ...]:
        """Return the runs with new entries added."""
        kept = num_staying(runs, len(new.fingerprints), self.sizes)
        merged: list[SortedRun | Entries] = [*(SortedRun(self.folder, info) for info in runs[kept:]), new]
        with RunWriter(self.folder / new_run_name(), new.rows.schema, self.sizes.block_rows) as writer:
            for low, high in ranges(runs[kept:], new, self.sizes):
                parts = [part.between(low, high) for part in merged]
                entries = merged_entries(db, keys, parts, new.rows.schema)
                # The retraction of a key must hide its entries in older runs. Without older runs, the key can be
                # dropped.
                writer.write(self._living(entries) if self.purpose.keeps_rows and not kept else entries)
            return (*runs[:kept], writer.finish())

    def _living(self, entries: Entries) -> Entries:
        living = is_living(entries.rows, self.purpose.vocabulary)
        return Entries(entries.fingerprints[living.to_numpy(zero_copy_only=False)], entries.rows.filter(living))


def is_living(rows: pa.Table, vocabulary: DatasetVocabulary) -> pa.Array:
    """Return for each last row of a key whether it is current: not if it is a retraction or a lone -C."""
    operations = rows.column(vocabulary.operation_type_column).cast(pa.int32())
    kept = pa.array([int(operation) for operation in OperationType if operation.weight > 0], pa.int32())
    return pc.is_in(operations, value_set=kept).combine_chunks()


def _save(index: KeyIndex) -> None:
    """Replace the file `index`, then remove files that are no longer part of the index."""
    runs = [asdict(run) for run in index.runs]
    tree = {**_origin(index.purpose), "token": index.token, "key_types": index.key_types, "runs": runs}
    with replaced_atomically(index.folder / INDEX) as temporary:
        temporary.write_bytes(sealed(json.dumps(tree).encode()))
    # Only now: the runs must exist as long as the old index does. Files that cannot be removed are removed next time.
    needed = {INDEX, *(run.name for run in index.runs)}
    for path in index.folder.iterdir():
        if path.name not in needed:
            with suppress(OSError):
                path.unlink()


def _origin(purpose: IndexPurpose) -> dict[str, object]:
    """Return the properties that an existing index must match to be usable."""
    tree: object = json.loads(json.dumps(asdict(purpose)))
    return {"format": FORMAT, "hash": HASH, "purpose": tree}


def _parts(
    slices: Iterable[Path], wanted: pa.Schema, vocabulary: DatasetVocabulary, sizes: IndexSizes
) -> Iterator[pa.Table]:
    """Yield the rows of slices in tables of bounded size."""
    tables: list[pa.Table] = []
    rows = size = 0
    for path in slices:
        names = slice_schema(path, vocab=vocabulary).names
        columns = [name for name in wanted.names if name in names]
        for batch in iter_slice(path, sizes.part_rows, columns, vocab=vocabulary):
            tables.append(fit_table(pa.Table.from_batches([batch]), wanted))
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= sizes.part_rows or size >= sizes.part_bytes:
                yield pa.concat_tables(tables)
                tables, rows, size = [], 0, 0
    if tables:
        yield pa.concat_tables(tables)
