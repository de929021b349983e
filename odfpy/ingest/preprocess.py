"""Preprocessing: queries over the rows as read, before they are merged (ODF specification, "Preprocess")."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from odfpy.dataset.transform import TransformSql
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.sql.dialects import translate
from odfpy.errors import OdfError
from odfpy.stages import stage

INPUT = "input"
"""Name of the view of the input rows."""


def preprocess(
    transform: TransformSql | None, rows: pa.Table, engines: EngineRegistry, *, spool: Path | None = None
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the result of a source's queries over the input rows; without queries, the input rows.

    Args:
        transform: one or several SQL steps for an engine.
        rows: the rows that have been read, in the order of the input.
        engines: registry with the engine to use.
        spool: a new file for the result, which is then memory-mapped; without one, the result may be held in memory.

    Returns:
        The rows, and remarks for the user.

    Raises:
        EngineNotFound: the engine is unknown, and its SQL cannot be translated.
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: raised by the engine; the message names the step.
        EngineUnavailable: the engine cannot be reached.
    """
    if transform is None or not rows.num_columns:  # an empty file has no columns for a query
        return rows, ()
    runnable, remarks = translate(transform.normalized())
    if runnable.engine == "spark":
        rows = _with_typed_members(rows)
    try:
        with stage("preprocess"):
            return engines.get(runnable.engine).preprocess(runnable, {INPUT: rows}, spool=spool), remarks
    except OdfError as error:
        raise _naming_query(error, transform.engine, is_translated=bool(remarks)) from error


def _with_typed_members(rows: pa.Table) -> pa.Table:
    """Return the rows with text for members and items of only nulls, since Spark has no type for them."""
    types = [column if pa.types.is_null(column) else _with_text(column) for column in rows.schema.types]
    fields = [field.with_type(wanted) for field, wanted in zip(rows.schema, types, strict=True)]
    return rows if types == rows.schema.types else rows.cast(pa.schema(fields))


def _with_text(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_null(arrow):
        return pa.string()
    if pa.types.is_struct(arrow):
        return pa.struct([field.with_type(_with_text(field.type)) for field in arrow.fields])
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_with_text(arrow.value_type)))
    return arrow


def _naming_query(error: OdfError, engine: str, *, is_translated: bool) -> OdfError:
    """Return the error with a message that names the query."""
    found = error.with_context(f"Preprocessing with engine {engine}")
    if not is_translated:
        return found
    return found.with_message(
        found.message,
        hint=f"The query was translated from {engine} to the Spark SQL that is shown; "
        "write it for `engine: spark` or `engine: datafusion`.",
    )
