"""A dataset as an object: its columns, its state, and its current and past rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING

from odfpy.client.backend import Backend, DatasetFacts
from odfpy.client.html import facts, sparkline
from odfpy.client.lineage import Lineage
from odfpy.client.moments import moment_text
from odfpy.client.rows import SHOWN_ROWS, Rows
from odfpy.data.rows.html_table import cell, table
from odfpy.data.scalars import count_given
from odfpy.data.schemas.schema import DataSchema, Option
from odfpy.data.schemas.type_text import type_text
from odfpy.data.timestamp import Instant, Timestamp
from odfpy.errors import OdfError
from odfpy.query.dialects import Dialect, dialect_named
from odfpy.query.moments import PointInTime
from odfpy.query.query import Query

if TYPE_CHECKING:
    from odfpy.provenance.model import Provenance


_INSTEAD = {
    "columns": "schema.names",
    "dtypes": "schema",
    "head": "current() for the current state, tail(5) for the last rows",
    "shape": "num_records and schema.names",
}
"""Attributes of data frames that a dataset does not have, and what it has."""


class Dataset:
    """A dataset. Its properties are read on each access.

    Attributes:
        name: name or id of the dataset, as given.
    """

    def __init__(self, source: Backend, name: str, engine: str) -> None:
        self._source = source
        self._dialect = dialect_named(engine)
        self.name = name

    def __eq__(self, other: object) -> bool:
        """True if both belong to the same connection and have the same name."""
        if not isinstance(other, Dataset):
            return NotImplemented
        return self._source is other._source and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    if not TYPE_CHECKING:  # type checkers would accept any name

        def __getattr__(self, name: str) -> object:
            """Raise an error for a name that does not exist; it has the name that does."""
            message = f"A dataset has no {name!r}"
            if name in _INSTEAD:
                message += f"; it has {_INSTEAD[name]}"
            elif name.startswith("to_") and hasattr(Rows, name):
                message += f", but its rows have: current().{name}(), changelog().{name}(), tail(5).{name}()"
            raise AttributeError(message, name=name, obj=self)

    # --- Metadata ---

    @property
    def facts(self) -> DatasetFacts:
        """All facts that can be read without rows.

        Raises:
            DatasetNotFound: the dataset no longer exists.
        """
        return self._source.dataset(self.name)

    @property
    def id(self) -> str | None:
        """The id, if the backend reports it."""
        return self.facts.id

    @property
    def kind(self) -> str | None:
        """`Root` or `Derivative`, if the backend reports it."""
        return self.facts.kind

    @property
    def schema(self) -> DataSchema | None:
        """The columns; None if there is no data yet."""
        return self.facts.schema

    @property
    def watermark(self) -> str | None:
        """The event time up to which the data is complete, except for late rows; None if unknown."""
        return self.facts.watermark

    @property
    def num_records(self) -> int:
        """The number of rows in the log."""
        known = self.facts.num_records
        if known is not None:
            return known
        count = self._rows(f"SELECT count(*) FROM {self._dialect.quoted(self.name)}")  # noqa: S608  it is quoted
        return int(count.table.column(0)[0].as_py())

    def lineage(self) -> Lineage:
        """Return the inputs of the dataset, recursively."""
        return Lineage(self._source.lineage(self.name))

    def provenance(
        self, offset: int, *, column: str | None = None, depth: int | None = None, check: bool = True
    ) -> Provenance:
        """Return the provenance of a row; see `odfpy.Workspace.provenance` for errors.

        Args:
            offset: offset of the row.
            column: name of a column, None for whole rows.
            depth: maximum number of hops, None for no limit.
            check: whether to run the query over the cited rows only, to check that they reproduce the row.

        Raises:
            UsageError: the backend is not a local workspace.
        """
        return self._source.provenance(self.name, offset, column, depth, check)

    # --- Rows ---

    def changelog(self) -> Rows:
        """Return the log: all rows ever written."""
        return self._rows(f"SELECT * FROM {self._dialect.quoted(self.name)}")  # noqa: S608  it is quoted

    def tail(self, num_rows: int = SHOWN_ROWS) -> Rows:
        """Return the last rows of the log, in order of offset."""
        log, offset = map(self._dialect.quoted, (self.name, self.facts.vocabulary.offset_column))
        first = max(0, self.num_records - count_given(num_rows, "num_rows"))
        return self._rows(f"SELECT * FROM {log} WHERE {offset} >= {first} ORDER BY {offset}")  # noqa: S608  quoted

    def current(self, *keys: str) -> Rows:
        """Return the current state of the log.

        Args:
            keys: key columns to use instead of the dataset's primary key.
        """
        return self._shown("odf_current", *map(self._dialect.literal, keys))

    def at(self, moment: PointInTime) -> AsAt:
        """**As at**: Return the state known at a moment.

        Args:
            moment: a system time (text, `datetime`, `date`), a block (hash, tag, branch), or an offset.

        Raises:
            InvalidValue: the moment is none of these. Its existence is only checked when rows are read.
        """
        return AsAt(self, moment)

    def as_of(self, time: Instant) -> Rows:
        """**As of**: Return the state at an event time, according to all current data.

        Raises:
            InvalidValue: the value is not a time.
        """
        return self._shown("odf_as_of", self._dialect.literal(str(Timestamp.of(time))))

    def rows_per_day(self) -> Mapping[date, int]:
        """Return the number of log rows per day (UTC) of their event time, in order, without empty days."""
        found = self.facts
        name = found.vocabulary.event_time_column
        if found.schema is None or found.schema.field(name) is None:
            return {}
        day, log = f"CAST({self._dialect.quoted(name)} AS DATE)", self._dialect.quoted(self.name)
        rows = self._rows(
            f"SELECT {day} AS day, count(*) AS num FROM {log}"  # noqa: S608  they are quoted
            f" WHERE {self._dialect.quoted(name)} IS NOT NULL GROUP BY {day} ORDER BY day"
        )
        return dict(zip(*(column.to_pylist() for column in rows.table.columns), strict=True))

    def _shown(self, function: str, *more: str) -> Rows:
        arguments = ", ".join([self._dialect.literal(self.name), *more])
        return self._rows(f"SELECT * FROM {function}({arguments})")  # noqa: S608  they are quoted

    def _rows(self, text: str) -> Rows:
        return Rows(self._source, Query(text, self._dialect.name))

    # --- Display ---

    def __repr__(self) -> str:
        return f"<dataset {self.name} of {self._source.place}>"

    def _repr_html_(self) -> str:
        found = self.facts
        about = facts(
            [
                ("", found.kind.lower() if found.kind else None),
                ("rows", None if found.num_records is None else f"{found.num_records:,}"),
                ("watermark", found.watermark),
            ]
        )
        description = f"<div>{cell(found.description)}</div>" if found.description else ""
        columns = _columns(found) if found.schema else "<div><i>no data yet, and no columns</i></div>"
        return f"<div><b>{cell(found.name)}</b></div>{description}<div>{about}</div>{self._sparkline()}{columns}"

    def _sparkline(self) -> str:
        """Return the chart of rows per day, or the error: other facts are shown even if rows cannot be read."""
        try:
            drawn = sparkline(self.rows_per_day())
        except OdfError as error:
            return f"<div><i>rows per day: {cell(error.message)}</i></div>"
        return f"<div>{drawn}</div>" if drawn else ""


class AsAt(Rows):
    """A dataset as at a moment: the state of the rows recorded until then."""

    def __init__(self, dataset: Dataset, moment: PointInTime) -> None:
        dialect: Dialect = dataset._dialect  # noqa: SLF001  it is a part of it
        self._dataset = dataset
        self._moment = moment_text(moment, dialect)
        rows = dataset._shown("odf_as_at", self._moment)  # noqa: SLF001
        super().__init__(rows._source, rows.query)  # noqa: SLF001

    def as_of(self, time: Instant) -> Rows:
        """Return the state at an event time, according to the rows recorded until the moment.

        Raises:
            InvalidValue: the value is not a time.
        """
        dialect: Dialect = self._dataset._dialect  # noqa: SLF001
        return self._dataset._shown("odf_as_at_of", self._moment, dialect.literal(str(Timestamp.of(time))))  # noqa: SLF001


def _columns(found: DatasetFacts) -> str:
    """Return the columns as an HTML table, with system columns marked."""
    fields = found.schema.fields if found.schema else ()
    system = {*found.vocabulary.columns}
    rows = []
    for field in fields:
        inner = field.type.inner if isinstance(field.type, Option) else field.type
        presence = "optional" if inner is not field.type else "required"
        rows.append((field.name, type_text(inner), presence, "system" if field.name in system else ""))
    return table(["Column", "Type", "Presence", ""], rows)
