"""Fingerprints of rows' values, by which a ledger detects that a known key arrives with different values.

The fingerprint of a row combines the hashes of its values, each with the name of its column. So the order of columns
does not matter, and null is equivalent to a missing column, since schemas may be extended. Equal values have equal
hashes, as with keys. Different rows have the same fingerprint with a probability of 1 in 2^64, which is sufficient
for a warning.
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
"""Role of the column, beside the roles of keys."""


def value_fingerprints(db: duckdb.DuckDBPyConnection, rows: pa.Table) -> pa.Array:
    """Return the fingerprint of each row, uint64.

    Args:
        db: the connection that computes the hashes.
        rows: the columns to include, without key and event time.
    """
    fingerprints = np.zeros(rows.num_rows, np.uint64)
    if not rows.num_columns:
        return from_numpy(fingerprints)
    roles = [f"v{at}" for at in range(rows.num_columns)]
    columns = {role: comparable(column) for role, column in zip(roles, rows.columns, strict=True)}
    # The database may return rows in any order, so each row has its position.
    values = db.from_arrow(pa.table({**columns, "place": pa.arange(0, rows.num_rows)}))
    # Hashed once more: the database combines the hashes of name and value so simply that swapping values between
    # columns would not change the result.
    hashes = (
        f"CASE WHEN {role} IS NULL THEN 0::UBIGINT ELSE hash(hash({literal(name)}, {role})) END AS {role}"
        for role, name in zip(roles, rows.column_names, strict=True)
    )
    hashed = values.project(f"place, {', '.join(hashes)}").to_arrow_table()
    places = hashed.column("place").to_numpy()
    for role in roles:
        fingerprints[places] ^= hashed.column(role).to_numpy()
    return from_numpy(fingerprints)
