"""Columns that a dataset gets because a file has them, and that it keeps for ever."""

from __future__ import annotations

from odfpy.data.data_warning import DataWarning, WarningKind
from odfpy.data.schemas.schema import DataSchema


def new_columns(before: DataSchema | None, after: DataSchema | None) -> tuple[str, ...]:
    """Names of columns that have come after the first ones; the schema of before is None where there was none."""
    if before is None or after is None or before == after:
        return ()
    return tuple(name for name in after.names if before.field(name) is None)


def warnings_of_new_columns(before: DataSchema | None, after: DataSchema | None) -> tuple[DataWarning, ...]:
    """Return what to say of new columns that most likely are others, whose names somebody has spelt in another way.

    Args:
        before: the schema of the dataset, None where there was none.
        after: that with which rows were taken in, by the names that their file has.
    """
    new = new_columns(before, after)
    if before is None or not new:
        return ()
    known = {_alike(name): name for name in reversed(before.names)}
    alike = [(name, known[_alike(name)]) for name in new if _alike(name) in known]
    if not alike:
        return ()
    told = "; ".join(f"{name!r} differs from {other!r} in case or spaces only" for name, other in alike)
    message = f"new columns: {told}. Columns stay for ever: if these are the same, declare them in the source's schema"
    return (DataWarning(WarningKind.COLUMNS, message, len(alike), tuple(name for name, _ in alike)),)


def _alike(name: str) -> str:
    """A name without what people overlook: case and spaces around it."""
    return name.strip().casefold()
