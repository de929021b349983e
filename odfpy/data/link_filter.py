"""Filter for the linked objects of a copy: all, none, available ones, or those of rows that meet conditions.

    all | none | available | CONDITION;CONDITION...
    CONDITION: COLUMN=VALUE,VALUE... | since=TIME | until=TIME

A row meets the conditions if it meets each of them: its column has one of the values, as text; its event time is at
or after `since`, and before `until`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from odfpy.data.timestamp import NANOS_PER_SECOND, NANOS_PER_UNIT, SECONDS_PER_DAY, Timestamp
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.errors import InvalidValue, SchemaError, did_you_mean
from odfpy.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

RowMask: TypeAlias = "Callable[[pa.RecordBatch], pa.Array]"
"""Function that selects rows of a batch: it returns a boolean for each."""

ALL_WORD: Final = "all"
NONE_WORD: Final = "none"
AVAILABLE_WORD: Final = "available"

_SINCE: Final = "since"
_UNTIL: Final = "until"
_MAX_VALUE: Final = (1 << 63) - 1
_FORM: Final = (
    "Write all, none, available or conditions: what=syslog,nginx;where=web1;since=2024-01-01;until=2024-02-01"
)


@dataclass(frozen=True, slots=True)
class LinkFilter:
    """Selection of linked objects by the rows that link to them.

    Attributes:
        word: `all`, `none` or `available`; None if there are conditions.
        values: accepted values of columns, by name.
        since: earliest event time.
        until: end of the event times, exclusive.
    """

    word: str | None = ALL_WORD
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()
    since: Timestamp | None = None
    until: Timestamp | None = None

    @classmethod
    def parse(cls, text: str) -> LinkFilter:
        """Parse the text of a filter.

        Raises:
            InvalidValue: the text is invalid.
        """
        text = text.strip()
        if text in (ALL_WORD, NONE_WORD, AVAILABLE_WORD):
            return cls(text)
        values: dict[str, tuple[str, ...]] = {}
        times: dict[str, Timestamp] = {}
        for condition in filter(None, map(str.strip, text.split(";"))):
            name, equals, value_text = (part.strip() for part in condition.partition("="))
            if not equals or not name or not value_text or name in values or name in times:
                raise InvalidValue(f"Not a valid value of --files: {text[:200]!r}", hint=_FORM)
            if name in (_SINCE, _UNTIL):
                times[name] = Timestamp.parse(value_text)
            else:
                values[name] = tuple(dict.fromkeys(value.strip() for value in value_text.split(",")))
        if not values and not times:
            raise InvalidValue(f"Not a valid value of --files: {text[:200]!r}", hint=_FORM)
        return cls(None, tuple(values.items()), times.get(_SINCE), times.get(_UNTIL))

    def __str__(self) -> str:
        if self.word is not None:
            return self.word
        conditions = [f"{name}={','.join(values)}" for name, values in self.values]
        times = ((_SINCE, self.since), (_UNTIL, self.until))
        return ";".join([*conditions, *(f"{name}={time}" for name, time in times if time is not None)])

    @property
    def is_whole(self) -> bool:
        """True if a copy has all objects, so that a missing object is an error."""
        return self.word == ALL_WORD

    @property
    def is_empty(self) -> bool:
        """True if a copy has no objects."""
        return self.word == NONE_WORD

    @property
    def allows_missing(self) -> bool:
        """True if it is no error that the other side lacks an object."""
        return self.word == AVAILABLE_WORD

    def columns(self, vocab: DatasetVocabulary) -> list[str]:
        """Return the columns that the conditions need."""
        times = [vocab.event_time_column] if self.since is not None or self.until is not None else []
        return [*(name for name, _ in self.values), *times]

    def require_columns(self, names: list[str], vocab: DatasetVocabulary) -> None:
        """Check that a dataset has the columns that the conditions need.

        Raises:
            SchemaError: a column is missing; the message names it.
        """
        for column in self.columns(vocab):
            if column not in names:
                raise SchemaError(
                    f"There is no column {column!r} to select files by",
                    hint=did_you_mean(column, names, otherwise=f"The columns are {', '.join(names)}."),
                )

    def mask(self, vocab: DatasetVocabulary) -> RowMask | None:
        """Return a function that selects rows of batches with `columns`; None if all rows are selected."""
        if self.word is not None:
            return None

        def chosen(batch: pa.RecordBatch) -> pa.Array:
            import pyarrow as pa
            import pyarrow.compute as pc

            masks = [
                pc.is_in(_as_text(batch.column(name)), value_set=pa.array(values, pa.string()))
                for name, values in self.values
            ]
            if self.since is not None or self.until is not None:
                times, nanos = _counts(batch.column(vocab.event_time_column))
                for limit, compare in ((self.since, pc.greater_equal), (self.until, pc.less)):
                    if limit is not None:  # the first count that is not before the limit
                        count = min(max(-(-limit.nanos // nanos), -_MAX_VALUE - 1), _MAX_VALUE)
                        masks.append(compare(times, pa.scalar(count, pa.int64())))
            found = masks[0]
            for mask in masks[1:]:
                found = pc.and_kleene(found, mask)
            return pc.fill_null(found, fill_value=False)

        return chosen


def _counts(times: pa.Array) -> tuple[pa.Array, int]:
    """Return dates or timestamps as counts of a unit since 1970, and the nanoseconds of the unit."""
    import pyarrow as pa

    if pa.types.is_date(times.type):
        return times.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), SECONDS_PER_DAY * NANOS_PER_SECOND
    return times.cast(pa.int64()), NANOS_PER_UNIT[times.type.unit]


ALL: Final = LinkFilter()
"""Every linked object."""

NONE: Final = LinkFilter(NONE_WORD)
"""No linked object."""

AVAILABLE: Final = LinkFilter(AVAILABLE_WORD)
"""The linked objects that the other side has."""


def _as_text(column: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(column, pa.string())
    except pa.ArrowException as error:
        raise SchemaError(f"A column of type {column.type} cannot select files") from error
