"""Warnings about ledger rows whose key exists with other values; like all rows with existing keys, they are dropped."""

# ruff: noqa: S608  (SQL is made of roles)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odfpy.data.amounts import count_of
from odfpy.data.data_warning import MAX_EXAMPLES, DataWarning, WarningKind
from odfpy.ingest.merge_plan import MergePlan
from odfpy.ingest.retractions import key_text
from odfpy.state.comparable import comparable
from odfpy.state.value_fingerprints import FINGERPRINT, value_fingerprints

if TYPE_CHECKING:
    import duckdb


def warn_conflicting_rows(
    db: duckdb.DuckDBPyConnection, rows: pa.Table, plan: MergePlan, taken: pa.Array
) -> tuple[DataWarning, ...]:
    """Return a warning about keys that exist with different values; event times are ignored.

    Args:
        db: a connection with the relation `state`. If that has no fingerprints of values, there is no warning: to
            compare values would require reading the history.
        rows: all new rows, in the types of the dataset's schema.
        plan: the plan of the merge.
        taken: positions of the rows whose keys are new.
    """
    if len(taken) == rows.num_rows or FINGERPRINT not in db.sql("SELECT * FROM state").columns:
        return ()
    places = others(taken.to_numpy(), rows.num_rows)
    db.register("known", with_fingerprints(db, rows.take(pa.array(places)), plan, places))
    found = conflicting_places(db, plan, "state")
    return warning_of(len(found), rows.select(list(plan.keys)).take(pa.array(found[:MAX_EXAMPLES])).to_pylist())


def others(taken: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return the positions of the rows that were not taken, in order; `count` is the number of all rows."""
    is_known = np.ones(count, np.bool_)
    is_known[taken] = False
    return np.flatnonzero(is_known)


def with_fingerprints(
    db: duckdb.DuckDBPyConnection, rows: pa.Table, plan: MergePlan, places: npt.NDArray[np.int64]
) -> pa.Table:
    """Return roles of the key, fingerprints of the values, and `pos`, the position of each row.

    Args:
        db: the connection of the merge.
        rows: the new rows.
        plan: the roles of the columns.
        places: position of each row in the input.
    """
    values = [name for name in rows.column_names if name not in plan.not_values]
    keys = zip(plan.shape.key_columns, plan.keys, strict=True)
    columns = {role: comparable(rows.column(name)) for role, name in keys}
    return pa.table({**columns, FINGERPRINT: value_fingerprints(db, rows.select(values)), "pos": pa.array(places)})


def conflicting_places(db: duckdb.DuckDBPyConnection, plan: MergePlan, state: str) -> npt.NDArray[np.int64]:
    """Return the position of the first row of each key in `known` that the state has, but never with the row's values.

    Args:
        db: a connection with the relation `known`, as returned by `with_fingerprints`.
        plan: plan of the merge.
        state: name of a relation with the state's keys and fingerprints.
    """
    roles = plan.shape.key_columns
    same_key = " AND ".join(f"(known.{role} = old.{role})" for role in roles)
    found = db.sql(
        f"SELECT MIN(known.pos) AS pos FROM known JOIN {state} AS old ON {same_key}"
        f" GROUP BY {', '.join(f'known.{role}' for role in roles)}"
        f" HAVING NOT BOOL_OR(known.{FINGERPRINT} = old.{FINGERPRINT}) ORDER BY pos"
    )
    places: npt.NDArray[np.int64] = found.to_arrow_table().column("pos").to_numpy()
    return places


def warning_of(count: int, first: Sequence[Mapping[str, Any]]) -> tuple[DataWarning, ...]:
    """Return the warning for `count` keys, with the first of them as examples."""
    if not count:
        return ()
    is_, them = ("is", "it") if count == 1 else ("are", "them")
    message = (
        f"{count_of(count, 'key')} {is_} known with different values, which a ledger leaves as they are"
        f" (-v lists {them}, after a pull with --force); Snapshot or UpsertStream would record corrections"
    )
    return (DataWarning(WarningKind.KNOWN_OTHERWISE, message, count, tuple(map(key_text, first))),)
