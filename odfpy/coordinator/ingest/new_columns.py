"""Warnings about columns that a file adds to a dataset permanently, and about columns that a file lacks."""

from __future__ import annotations

from pathlib import Path

from odfpy.chain.events import AddPushSource, SetPollingSource
from odfpy.chain.read_steps import ReadNdJson, ReadParquet
from odfpy.data.data_warning import DataWarning, WarningKind
from odfpy.data.schemas.schema import DataSchema, alike_name
from odfpy.errors import nearest


def new_columns(before: DataSchema, after: DataSchema | None) -> tuple[str, ...]:
    """Return the names of new columns; none if the current schema is unknown."""
    if after is None or before == after:
        return ()
    return tuple(name for name in after.names if before.field(name) is None)


def warnings_of_new_columns(new: tuple[str, ...], before: DataSchema) -> tuple[DataWarning, ...]:
    """Return warnings about new columns that are most likely misspelt names of existing ones.

    Args:
        new: names of the new columns in the file.
        before: the earlier schema of the dataset.
    """
    known = {alike_name(name): name for name in reversed(before.names)}
    alike = [(name, known[alike_name(name)]) for name in new if alike_name(name) in known]
    if not alike:
        return ()
    differences = "; ".join(f"{name!r} differs from {other!r} in case or spaces only" for name, other in alike)
    advice = "Columns cannot be removed: if these are the same, declare them in the source's schema"
    message = f"new columns: {differences}. {advice}"
    return (DataWarning(WarningKind.COLUMNS, message, len(alike), tuple(name for name, _ in alike)),)


def warnings_of_absent_columns(
    source: SetPollingSource | AddPushSource, path: Path, name: str, event_time: str
) -> tuple[DataWarning, ...]:
    """Return warnings about columns that a source declares and a Parquet file lacks: their values become null.

    Text with a header is refused in that case. In JSON, an absent member means that there is no value; but a member
    whose name differs from a column's only in case may be a mistake.

    Args:
        source: the source.
        path: the file.
        name: the name of the file in messages.
        event_time: name of the event time column, which has its own warnings.

    Raises:
        IngestError: the file cannot be read.
    """
    if isinstance(source.read, ReadNdJson):
        return _of_members(source.read, path, name)
    if not isinstance(source.read, ReadParquet):
        return ()
    from odfpy.ingest.read import schema_of
    from odfpy.ingest.read.parquet import column_names

    declared, present = schema_of(source.read), column_names(path, name)
    if declared is None or present is None:
        return ()
    absent = [column for column in declared.names if column not in present and column != event_time]
    if not absent:
        return ()
    others = [column for column in present if column not in declared.names]
    what = "column" if len(absent) == 1 else "columns"
    message = f"{name} has no {what} {', '.join(map(repr, absent))}: null in each of its rows"
    if meant := [column for absent_name in absent for column in nearest(absent_name, others)]:
        message += f"; it has {', '.join(map(repr, dict.fromkeys(meant)))}, which is not ingested"
    return (DataWarning(WarningKind.COLUMNS, message, len(absent), tuple(absent)),)


def _of_members(read: ReadNdJson, path: Path, name: str) -> tuple[DataWarning, ...]:
    """Return warnings about columns that the first records lack, but that match a member except for case."""
    from odfpy.ingest.read import schema_of
    from odfpy.ingest.read.json_records import member_names

    declared = schema_of(read)
    if declared is None:
        return ()
    present = member_names(path)
    others = {alike_name(member): member for member in sorted(present - set(declared.names))}
    absent = {column: others[alike_name(column)] for column in declared.names if alike_name(column) in others}
    absent = {column: other for column, other in absent.items() if column not in present}
    if not absent:
        return ()
    differences = ", ".join(f"{other!r} and not {column!r}" for column, other in absent.items())
    message = f"records of {name} have {differences}: names are case-sensitive, so these values are not ingested"
    return (DataWarning(WarningKind.COLUMNS, message, len(absent), tuple(absent)),)
