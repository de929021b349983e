"""Rows of a ledger whose key is known with other values: they are left out like all known ones, but not in silence."""

# ruff: noqa: S608  (SQL is made of roles)

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from odfpy.data.data_warning import MOST_EXAMPLES, DataWarning, WarningKind, counted
from odfpy.ingest.merge.plan import MergePlan
from odfpy.ingest.retractions import key_text
from odfpy.state.comparable import comparable
from odfpy.state.value_fingerprints import FINGERPRINT, value_fingerprints

if TYPE_CHECKING:
    import duckdb


def known_otherwise(
    db: duckdb.DuckDBPyConnection, rows: pa.Table, plan: MergePlan, taken: pa.Array
) -> tuple[DataWarning, ...]:
    """What to say of keys that are known with other values; event times do not count.

    Args:
        db: has the relation `state`. Where that does not tell the fingerprints of values, nothing is said: to find out
            would mean to read the history.
        rows: all new rows, in the types of the dataset's schema.
        plan: of the merge.
        taken: places of the rows whose keys are new.
    """
    if len(taken) == rows.num_rows or FINGERPRINT not in db.sql("SELECT * FROM state").columns:
        return ()
    is_known = np.ones(rows.num_rows, np.bool_)
    is_known[taken.to_numpy()] = False
    places = np.flatnonzero(is_known)
    known = rows.take(pa.array(places))
    roles, others = plan.shape.key_columns, [name for name in rows.column_names if name not in plan.not_values]
    columns = {role: comparable(known.column(name)) for role, name in zip(roles, plan.keys, strict=True)}
    fingerprints = value_fingerprints(db, known.select(others))
    db.register("known", pa.table({**columns, FINGERPRINT: fingerprints, "pos": pa.array(places)}))
    keys = ", ".join(f"known.{role}" for role in roles)
    same_key = " AND ".join(f"(known.{role} = state.{role})" for role in roles)
    found = db.sql(
        f"SELECT MIN(known.pos) AS pos FROM known JOIN state ON {same_key} GROUP BY {keys}"
        f" HAVING NOT BOOL_OR(known.{FINGERPRINT} = state.{FINGERPRINT}) ORDER BY pos"
    ).to_arrow_table()
    if not found.num_rows:
        return ()
    first = rows.select(list(plan.keys)).take(found.column("pos").slice(0, MOST_EXAMPLES)).to_pylist()
    is_, them = ("is", "it") if found.num_rows == 1 else ("are", "them")
    message = (
        f"{counted(found.num_rows, 'key')} {is_} known with other values, which a ledger leaves as they are"
        f" (-v lists {them}); Snapshot or UpsertStream would record corrections"
    )
    return (DataWarning(WarningKind.KNOWN_OTHERWISE, message, found.num_rows, tuple(map(key_text, first))),)
