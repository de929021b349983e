"""Names of the system columns, and the operation types (ODF specification, "Common Data Schema")."""

from __future__ import annotations

from enum import IntEnum

from odfpy.values import dataclass


class OperationType(IntEnum):
    """The effect of a row on the current state; the values are those in the `op` column."""

    APPEND = 0
    RETRACT = 1
    CORRECT_FROM = 2
    CORRECT_TO = 3

    @property
    def symbol(self) -> str:
        """`+A`, `-R`, `-C` or `+C`."""
        return ("+A", "-R", "-C", "+C")[self]

    @property
    def weight(self) -> int:
        """+1 for rows that add to the current state, -1 for rows that are removed from it."""
        return 1 if self in (OperationType.APPEND, OperationType.CORRECT_TO) else -1


@dataclass(frozen=True, slots=True)
class DatasetVocabulary:
    """Names of the four system columns of a dataset, in the order of slices."""

    offset_column: str = "offset"
    operation_type_column: str = "op"
    system_time_column: str = "system_time"
    event_time_column: str = "event_time"

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """All four names, in order."""
        return (*self.changelog_columns, self.event_time_column)

    @property
    def changelog_columns(self) -> tuple[str, str, str]:
        """Names of the system columns other than event time: offset, operation type, system time."""
        return (self.offset_column, self.operation_type_column, self.system_time_column)


DEFAULT_VOCABULARY = DatasetVocabulary()
