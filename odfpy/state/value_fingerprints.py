"""Fingerprints of the values of rows, by which a ledger tells that a key it knows comes with other ones.

The fingerprint of a row is made of the hashes of its values, each with the name of its column, so that their order
does not matter and a null is as good as no column: a schema may grow. Values that are equal have the same hash, as with
keys. Rows with the same fingerprint have the same values but for once in 2^64 times, which is enough for a remark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from odfpy.data.memory import from_numpy
from odfpy.state.comparable import comparable
from odfpy.state.database import literal

if TYPE_CHECKING:
    import duckdb

FINGERPRINT: Final = "fingerprint"
"""Role of the column, beside those of keys."""


def value_fingerprints(db: duckdb.DuckDBPyConnection, rows: pa.Table) -> pa.Array:
    """The fingerprint of each row, uint64.

    Args:
        db: who hashes.
        rows: columns that count, without key and event time.
    """
    fingerprints = np.zeros(rows.num_rows, np.uint64)
    if not rows.num_columns:
        return from_numpy(fingerprints)
    roles = [f"v{at}" for at in range(rows.num_columns)]
    columns = {role: comparable(column) for role, column in zip(roles, rows.columns, strict=True)}
    # The database may give rows in any order, so that each brings its place along.
    values = db.from_arrow(pa.table({**columns, "place": pa.arange(0, rows.num_rows)}))
    # Hashed once more: the database combines the hashes of name and value so simply that values which change places
    # between columns would go unnoticed.
    hashes = (
        f"CASE WHEN {role} IS NULL THEN 0::UBIGINT ELSE hash(hash({literal(name)}, {role})) END AS {role}"
        for role, name in zip(roles, rows.column_names, strict=True)
    )
    hashed = values.project(f"place, {', '.join(hashes)}").to_arrow_table()
    places = hashed.column("place").to_numpy()
    for role in roles:
        fingerprints[places] ^= hashed.column(role).to_numpy()
    return from_numpy(fingerprints)
