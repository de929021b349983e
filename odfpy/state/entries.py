"""Entries of the key index: rows of a dataset, sorted by the fingerprints of their keys.

The fingerprint of a key is duckdb's hash of it, for which equal values have equal hashes (NaN and NaN, 0.0 and -0.0,
also inside lists and structs). Different keys may have the same fingerprint, so fingerprints only narrow down a search;
the keys themselves are always compared.
"""

# ruff: noqa: S608  (SQL is made of roles)

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odfpy.data.memory import from_numpy
from odfpy.data.schemas.fit import fit_table
from odfpy.state.comparable import comparable, comparable_type
from odfpy.state.fingerprints import Entries, Fingerprints, Places, places_of
from odfpy.values import dataclass

HASH = f"duckdb {duckdb.__version__}"
"""Identifies the hash function of the fingerprints, which may differ between releases of duckdb."""


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The key columns and their types in duckdb.

    Attributes:
        names: names in the dataset.
        types: types in duckdb, as text.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]

    @classmethod
    def of(cls, db: duckdb.DuckDBPyConnection, names: Sequence[str], schema: pa.Schema) -> KeyColumns:
        """Return the key columns of a dataset with a schema that contains them.

        Args:
            db: a connection of duckdb.
            names: names of the key columns.
            schema: the schema of the dataset.
        """
        fields = [(f"k{at}", comparable_type(schema.field(name).type)) for at, name in enumerate(names)]
        types = db.from_arrow(pa.schema(fields).empty_table()).types
        return cls(tuple(names), tuple(map(str, types)))

    @property
    def roles(self) -> tuple[str, ...]:
        """The role names `k0`, `k1`..."""
        return tuple(f"k{at}" for at in range(len(self.names)))

    def fingerprints(self, db: duckdb.DuckDBPyConnection, rows: pa.Table) -> Fingerprints:
        """Return the fingerprint of each row."""
        # The database may return rows in any order, so each row has its position.
        places = pa.arange(0, rows.num_rows)
        keys = db.from_arrow(pa.table({**self._keys(rows), "place": places}))
        hashed = keys.project(f"place, hash({', '.join(self.roles)}) AS fingerprint").to_arrow_table()
        fingerprints = np.empty(rows.num_rows, np.uint64)
        fingerprints[hashed.column("place").to_numpy()] = hashed.column("fingerprint").to_numpy()
        return fingerprints

    def fingerprints_of(self, db: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[str]) -> Fingerprints:
        """Return the distinct fingerprints of the keys in a relation, ascending.

        Args:
            db: a connection of duckdb.
            relation: name of the relation.
            columns: the names of the key columns in the relation.
        """
        keys = (f"CAST({column} AS {type_})" for column, type_ in zip(columns, self.types, strict=True))
        found = db.sql(f"SELECT hash({', '.join(keys)}) AS fingerprint FROM {relation}").to_arrow_table()
        ascending: Fingerprints = np.sort(found.column("fingerprint").to_numpy())
        is_first = np.ones(len(ascending), np.bool_)
        is_first[1:] = ascending[1:] != ascending[:-1]
        return ascending[is_first]

    def last_of_each(self, db: duckdb.DuckDBPyConnection, rows: pa.Table) -> Places:
        """Return the position of the last row of each key; nulls equal each other."""
        places = pa.arange(0, rows.num_rows)
        keys = db.from_arrow(pa.table({**self._keys(rows), "place": places}))
        found = keys.aggregate("MAX(place) AS place", ", ".join(self.roles)).to_arrow_table()
        last: Places = found.column("place").to_numpy()
        return last

    def _keys(self, rows: pa.Table) -> dict[str, pa.ChunkedArray]:
        return {role: comparable(rows.column(name)) for role, name in zip(self.roles, self.names, strict=True)}


def sorted_entries(db: duckdb.DuckDBPyConnection, keys: KeyColumns, rows: pa.Table) -> Entries:
    """Return rows, given in the order of their offsets, as entries: only the last row of each key.

    Args:
        db: a connection of duckdb.
        keys: the key columns.
        rows: the rows, with their offsets.
    """
    fingerprints = keys.fingerprints(db, rows)
    # The sort is stable: rows with equal fingerprints keep their order.
    order = np.argsort(fingerprints, kind="stable")
    return _latest(db, keys, fingerprints, rows, order)


def merged_entries(
    db: duckdb.DuckDBPyConnection, keys: KeyColumns, parts: Sequence[Entries], schema: pa.Schema
) -> Entries:
    """Merge entries of several parts into the last entry of each key, with the columns of `schema`.

    Args:
        db: a connection of duckdb.
        keys: the key columns.
        parts: the entries of each part, the oldest first.
        schema: the columns of the result.
    """
    rows = pa.concat_tables([fit_table(part.rows, schema) for part in parts])
    if len(parts) == 1:
        return Entries(parts[0].fingerprints, rows)
    fingerprints = np.concatenate([part.fingerprints for part in parts])
    return _latest(db, keys, fingerprints, rows, np.argsort(fingerprints, kind="stable"))


def is_superseded(db: duckdb.DuckDBPyConnection, keys: KeyColumns, parts: Sequence[Entries]) -> npt.NDArray[np.bool_]:
    """Return for each row of all parts whether a later part has its key; keys are unique within a part.

    Args:
        db: a connection of duckdb.
        keys: the key columns.
        parts: the entries of each part, the oldest first.
    """
    shared = [np.zeros(len(part.fingerprints), np.bool_) for part in parts]
    for one, other in combinations(range(len(parts)), 2):
        few, many = sorted((one, other), key=lambda at: len(shared[at]))
        places = places_of(parts[few].fingerprints, parts[many].fingerprints)
        shared[many][places] = True
        shared[few][places_of(parts[many].fingerprints[places], parts[few].fingerprints)] = True
    superseded = np.concatenate([np.empty(0, np.bool_), *shared])
    places = np.flatnonzero(superseded)
    if len(places):
        rows = pa.concat_tables([part.rows.select(keys.names) for part in parts])
        superseded[places[keys.last_of_each(db, rows.take(from_numpy(places)))]] = False
    return superseded


def _latest(
    db: duckdb.DuckDBPyConnection, keys: KeyColumns, fingerprints: Fingerprints, rows: pa.Table, order: Places
) -> Entries:
    """Return the last row of each key, in the given order of fingerprints."""
    ascending = fingerprints[order]
    repeated = _repeated(ascending)
    if repeated.any():
        # Only rows whose fingerprint is repeated have to be compared by key.
        shared = np.sort(order[repeated])
        last = shared[keys.last_of_each(db, rows.select(keys.names).take(from_numpy(shared)))]
        is_last = np.zeros(len(order), np.bool_)
        is_last[last] = True
        keep = ~repeated | is_last[order]
        order, ascending = order[keep], ascending[keep]
    return Entries(ascending, rows.combine_chunks().take(from_numpy(order)))


def _repeated(ascending: Fingerprints) -> npt.NDArray[np.bool_]:
    """Return flags of the numbers that occur more than once; the numbers are ascending."""
    same = ascending[1:] == ascending[:-1]
    repeated = np.zeros(len(ascending), np.bool_)
    repeated[1:] |= same
    repeated[:-1] |= same
    return repeated
