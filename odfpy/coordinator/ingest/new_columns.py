"""Columns that a dataset gets because a file has them, and that it keeps for ever."""

from __future__ import annotations

from odfpy.data.data_warning import DataWarning, WarningKind
from odfpy.data.schemas.schema import DataSchema, alike_name


def new_columns(before: DataSchema, after: DataSchema | None) -> tuple[str, ...]:
    """Names of columns that have come to those of before; none where nothing says what there is now."""
    if after is None or before == after:
        return ()
    return tuple(name for name in after.names if before.field(name) is None)


def warnings_of_new_columns(new: tuple[str, ...], before: DataSchema) -> tuple[DataWarning, ...]:
    """Return what to say of new columns that most likely are others, whose names somebody has spelt in another way.

    Args:
        new: their names, as a file has them.
        before: the schema of the dataset.
    """
    known = {alike_name(name): name for name in reversed(before.names)}
    alike = [(name, known[alike_name(name)]) for name in new if alike_name(name) in known]
    if not alike:
        return ()
    told = "; ".join(f"{name!r} differs from {other!r} in case or spaces only" for name, other in alike)
    message = f"new columns: {told}. Columns stay for ever: if these are the same, declare them in the source's schema"
    return (DataWarning(WarningKind.COLUMNS, message, len(alike), tuple(name for name, _ in alike)),)
