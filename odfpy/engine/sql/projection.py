"""Temporal projections: the state of a changelog, as SQL over the log that runs in both engines.

The log is a relation with all columns of a dataset. The result consists of complete rows, including system columns:

current state, no key    rows that are equal in all data columns are counted: if they were added (`+A`, `+C`) more often
                         than removed (`-R`, `-C`), the difference remains: the rows that were added last
current state, a key     the last row of each key, unless that removes it
as of a time, no key     the current state of the rows up to that event time
as of a time, a key      of each key the version in force at that time, as temporal tables have them: see
                         `odfpy.engine.spark.incremental.operators.temporal`

A dataset as at a moment is the same over the rows up to an offset; the log is restricted beforehand.
"""

# ruff: noqa: S608  (SQL is made of quoted names)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from odfpy.data.schemas.arrow import has_within
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary, OperationType
from odfpy.engine.sql.ad_hoc import Projection
from odfpy.errors import InvalidQuery, UnsupportedQuery, did_you_mean

_GAINED: Final = f"({int(OperationType.APPEND)}, {int(OperationType.CORRECT_TO)})"


class Grammar(ABC):
    """The differences between the engines' SQL."""

    @abstractmethod
    def name(self, text: str) -> str:
        """Return a name, exactly as it is."""

    @abstractmethod
    def instant(self, time: Timestamp) -> str:
        """Return a constant instant; below a microsecond is cut off."""

    @abstractmethod
    def as_instant(self, expression: str) -> str:
        """Return a time of any type as an instant."""

    def entries(self, expression: str) -> str:
        """Return the entries of a map, as something that can be compared: in the order of their keys."""
        return f"array_sort(map_entries({expression}))"

    def nested_fractions(self, name: str) -> str:
        """Return a column with fractions within lists, structs or maps, as something that can be compared.

        Raises:
            UnsupportedQuery: the engine treats the two zeros in nested values as different.
        """
        return self.name(name)

    @property
    @abstractmethod
    def millisecond(self) -> str:
        """An interval."""

    @abstractmethod
    def last(self, values: Mapping[str, pa.DataType], by: str) -> Sequence[str] | None:
        """Return aggregates of the values in the row with the greatest `by`; None if a window is equally fast."""


class SparkGrammar(Grammar):
    """Spark SQL, time zone UTC."""

    millisecond = "INTERVAL 1 MILLISECOND"

    def name(self, text: str) -> str:
        return "`" + text.replace("`", "``") + "`"

    def instant(self, time: Timestamp) -> str:
        return f"timestamp_micros({time.nanos // 1000})"

    def as_instant(self, expression: str) -> str:
        return f"CAST({expression} AS TIMESTAMP)"

    def last(self, values: Mapping[str, pa.DataType], by: str) -> Sequence[str] | None:
        """Return aggregates for fixed-width values only: Spark aggregates these by hash, and sorts rows for others."""
        if not all(pa.types.is_primitive(kind) or pa.types.is_decimal(kind) for kind in values.values()):
            return None
        return [f"max_by({self.name(name)}, {by}) AS {self.name(name)}" for name in values]


class DataFusionGrammar(Grammar):
    """DataFusion's SQL."""

    millisecond = "INTERVAL '1 millisecond'"

    def name(self, text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    def instant(self, time: Timestamp) -> str:
        return self.as_instant(f"CAST({time.nanos // 1000} AS BIGINT)")

    def as_instant(self, expression: str) -> str:
        return f"arrow_cast({expression}, 'Timestamp(Microsecond, Some(\"UTC\"))')"

    def nested_fractions(self, name: str) -> str:
        raise UnsupportedQuery(
            f"To find the current state, DataFusion would have to compare the fractions within the column {name!r}, and"
            " it takes the zeros 0.0 and -0.0 there for two",
            hint="Use Spark, or query the table of all changes.",
        )

    def last(self, values: Mapping[str, pa.DataType], by: str) -> None:
        del values, by


SPARK: Final = SparkGrammar()
DATAFUSION: Final = DataFusionGrammar()


def projection_sql(
    projection: Projection, log: str, schema: pa.Schema, vocabulary: DatasetVocabulary, grammar: Grammar
) -> str:
    """Return the query that makes a projection of a log.

    Args:
        projection: which one.
        log: name of the relation.
        schema: schema of the log.
        vocabulary: names of its system columns.
        grammar: grammar of the engine.

    Raises:
        InvalidQuery: a column of the key is not there.
    """
    for name in projection.key or ():
        if name not in schema.names:
            known = f"Its columns are {', '.join(schema.names)}."
            raise InvalidQuery(
                f"There is no column `{name}` to be a primary key",
                hint=did_you_mean(name, schema.names, otherwise=known),
            )
    parts = _Parts(log, schema, vocabulary, grammar)
    if projection.as_of is None:
        return parts.current(projection.key)
    if projection.key is None and projection.only_appends:
        return parts.up_to(projection.as_of)
    if projection.key is None:
        return parts.current(None, up_to=projection.as_of)
    if projection.only_appends:
        return parts.appended_as_of(projection.key, projection.as_of)
    return parts.as_of(projection.key, projection.as_of)


class _Parts:
    """The pieces that the queries of all projections consist of."""

    def __init__(self, log: str, schema: pa.Schema, vocabulary: DatasetVocabulary, grammar: Grammar) -> None:
        quote = grammar.name
        self.grammar = grammar
        self.log = quote(log)
        self.schema = schema
        self.offset = quote(vocabulary.offset_column)
        self.op = quote(vocabulary.operation_type_column)
        self.commit = quote(vocabulary.system_time_column)
        self.time = grammar.as_instant(quote(vocabulary.event_time_column))
        system = vocabulary.changelog_columns
        self.content = ", ".join(self._comparable([name for name in schema.names if name not in system])) or "1"
        self.columns = ", ".join(quote(name) for name in schema.names)
        self.gained = f"{self.op} IN {_GAINED}"
        self.weight = f"CASE WHEN {self.gained} THEN 1 ELSE -1 END"

    def _comparable(self, names: Sequence[str]) -> list[str]:
        """Return columns as they are grouped: both zeros are one, and maps are their entries."""
        comparable = []
        for name in names:
            column, kind = self.grammar.name(name), self.schema.field(name).type
            if pa.types.is_floating(kind):
                column = f"CASE WHEN abs({column}) = 0 THEN abs({column}) ELSE {column} END"
            elif has_within(kind, pa.types.is_floating):
                column = self.grammar.nested_fractions(name)
            comparable.append(self.grammar.entries(column) if pa.types.is_map(kind) else column)
        return comparable

    def _of_key(self, key: Sequence[str]) -> str:
        return f"PARTITION BY {', '.join(self._comparable(key)) or '1'}"

    def up_to(self, at: Timestamp) -> str:
        """Return the changes up to a time."""
        return f"SELECT {self.columns} FROM {self.log} WHERE {self.time} <= {self.grammar.instant(at)}"

    def current(self, key: Sequence[str] | None, up_to: Timestamp | None = None) -> str:
        """Return the current state, of the rows up to an event time."""
        rows = self.log if up_to is None else f"({self.up_to(up_to)})"
        if key is not None:
            last = self._last_of_key(key, rows)
            if last is not None:
                return last
            nth = f"row_number() OVER ({self._of_key(key)} ORDER BY {self.offset} DESC)"
            numbered = f"SELECT {self.columns}, {nth} AS __odf_nth FROM {rows}"
            return f"SELECT {self.columns} FROM ({numbered}) WHERE __odf_nth = 1 AND {self.gained}"
        nth = f"row_number() OVER (PARTITION BY {self.content}, {self.gained} ORDER BY {self.offset} DESC)"
        left = f"sum({self.weight}) OVER (PARTITION BY {self.content})"
        numbered = f"SELECT {self.columns}, {nth} AS __odf_nth, {left} AS __odf_left FROM {rows}"
        return f"SELECT {self.columns} FROM ({numbered}) WHERE {self.gained} AND __odf_nth <= __odf_left"

    def _last_of_key(self, key: Sequence[str], rows: str) -> str | None:
        """Return the same without a window."""
        by = self._comparable(key)
        others = [name for name in self.schema.names if self.grammar.name(name) not in by]
        last = self.grammar.last({name: self.schema.field(name).type for name in others}, self.offset)
        if last is None or not key:
            return None
        kept = [self.grammar.name(name) for name in self.schema.names if name not in others]
        last_rows = f"SELECT {', '.join([*kept, *last])} FROM {rows} GROUP BY {', '.join(by)}"
        return f"SELECT {self.columns} FROM ({last_rows}) WHERE {self.gained}"

    def appended_as_of(self, key: Sequence[str], at: Timestamp) -> str:
        """Return the versions in force if no row removes any: each row begins one, and the last to begin holds."""
        nth = f"row_number() OVER ({self._of_key(key)} ORDER BY {self.time} DESC, {self.offset} DESC)"
        begun = (
            f"SELECT {self.columns}, {nth} AS __odf_nth FROM {self.log} WHERE {self.time} <= {self.grammar.instant(at)}"
        )
        return f"SELECT {self.columns} FROM ({begun}) WHERE __odf_nth = 1"

    def as_of(self, key: Sequence[str], at: Timestamp) -> str:
        """Return the versions in force, from the rows that begin and end them."""
        of_key, so_far = self._of_key(key), "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        in_order = f"{of_key} ORDER BY {self.offset}"
        event = f"CASE WHEN {self.gained} THEN {self.time} END"
        is_pair = (
            f"{self.op} = {int(OperationType.CORRECT_FROM)} AND lead({self.op}) OVER ({in_order}) = "
            f"{int(OperationType.CORRECT_TO)} AND lead({self.offset}) OVER ({in_order}) = {self.offset} + 1"
        )
        is_wrong = "__odf_matched = 1 AND (__odf_corrected IS NOT NULL OR __odf_present > 0)"
        ends = (
            "CASE WHEN __odf_matched = 0 THEN __odf_time "
            "WHEN __odf_again IS NULL OR __odf_again > __odf_ends THEN __odf_ends END"
        )
        nth = f"row_number() OVER ({of_key} ORDER BY __odf_at DESC, {self.offset} DESC)"
        return f"""
WITH commits AS (
  SELECT {self.commit} AS __odf_commit, max({event}) AS __odf_latest FROM {self.log}
  WHERE {self.time} IS NOT NULL GROUP BY {self.commit}
), clocks AS (
  SELECT __odf_commit, max(__odf_latest) OVER (ORDER BY __odf_commit {so_far}) AS __odf_clock,
    max(__odf_latest) OVER (ORDER BY __odf_commit ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS __odf_earlier
  FROM commits
), told AS (
  SELECT {self.columns}, {self.time} AS __odf_time,
    CASE WHEN __odf_earlier IS NULL OR __odf_clock > __odf_earlier THEN __odf_clock
      ELSE __odf_earlier + {self.grammar.millisecond} END AS __odf_ends
  FROM {self.log} JOIN clocks ON {self.commit} = __odf_commit WHERE {self.time} IS NOT NULL
), known AS (
  SELECT *, CASE WHEN {is_pair} THEN lead(__odf_time) OVER ({in_order}) END AS __odf_corrected,
    max(CASE WHEN {self.gained} THEN 1 ELSE 0 END)
      OVER (PARTITION BY {self.content} ORDER BY {self.offset} {so_far}) AS __odf_matched,
    sum({self.weight}) OVER ({of_key} ORDER BY {self.commit}
      RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS __odf_present,
    min(CASE WHEN {self.gained} THEN __odf_time END)
      OVER ({in_order} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS __odf_again
  FROM told
), said AS (
  SELECT *, sum(CASE WHEN {self.gained} THEN 1
      WHEN {is_wrong} AND NOT coalesce(__odf_corrected > __odf_time, FALSE) THEN -1 ELSE 0 END)
      OVER (PARTITION BY {self.content}) AS __odf_weight,
    CASE WHEN {self.gained} THEN __odf_time
      WHEN __odf_corrected IS NULL AND NOT ({is_wrong}) THEN {ends} END AS __odf_at
  FROM known
), events AS (
  SELECT *, {nth} AS __odf_nth FROM said
  WHERE __odf_at <= {self.grammar.instant(at)} AND (NOT ({self.gained}) OR __odf_weight > 0)
)
SELECT {self.columns} FROM events WHERE __odf_nth = 1 AND {self.gained}"""
