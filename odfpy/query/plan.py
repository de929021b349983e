"""Planning of a query: its datasets, the slices to read, and the path of the answer.

1. parameters are replaced by constants, and `EXPLAIN` is removed
2. names of datasets are quoted as in the dialect (`quoting`)
3. temporal projections are replaced by names of tables (`references`)
4. names are resolved to datasets, each at one block (`resolve`)
5. the path is chosen: totals are answered from the chain if it has them, ranges of rows from the slices, and everything
   else by an engine
6. slices without requested rows are pruned (`scan`)

`QueryService` runs a plan. REST and Flight SQL also plan queries to learn their schema, inputs and parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from odfpy.data.sql_text import check_text
from odfpy.dataset.names import did_you_mean_dataset
from odfpy.engine.sql.ad_hoc import SqlTable
from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import (
    DatasetNotFound,
    InvalidQuery,
    InvalidValue,
    NotFound,
    QueryTooDeep,
    UnknownTable,
    WrongProjection,
)
from odfpy.query.answer import AnswerPath, QueryInput
from odfpy.query.counts import count_of, counted
from odfpy.query.dialects import Dialect, dialect_named, parameter_places, with_parameters
from odfpy.query.generated_rows import output_schema
from odfpy.query.log_query import LogQuery, simple_query
from odfpy.query.query import Query
from odfpy.query.quoting import quote_datasets
from odfpy.query.references import LogView, TableReference, find_projections
from odfpy.query.resolve import Resolved, resolve
from odfpy.query.resolver import Dataset, DatasetResolver
from odfpy.query.scan import Scan, plan_scan
from odfpy.query.tables import NamedTable, named_tables

if TYPE_CHECKING:
    import pyarrow as pa

_STATEMENTS: Final = """
    add alter analyze attach begin cache call comment commit copy create deallocate declare delete desc describe drop
    execute explain grant import insert kill load lock merge msck optimize pragma prepare refresh replace reset revoke
    rollback set show truncate uncache unset update use vacuum
""".split()  # noqa: SIM905
_EXPLAIN: Final = re.compile(r"\s*explain\b", re.IGNORECASE)


@dataclass(frozen=True)
class QueryPlan:
    """The plan of a query.

    Attributes:
        query: the query.
        dialect: the SQL dialect of the query.
        text: the text that an engine runs.
        shown: the same text with the original projections, for messages; it has the same length.
        tables: the tables of the query.
        is_explained: whether it is an EXPLAIN.
        num_parameters: number of parameters.
        counts: the counting query, if its form alone shows that it is one.
    """

    query: Query
    dialect: Dialect
    text: str
    shown: str
    tables: tuple[tuple[TableReference, Resolved], ...]
    is_explained: bool = False
    num_parameters: int = 0
    counts: LogQuery | None = None

    @property
    def inputs(self) -> tuple[QueryInput, ...]:
        """The input datasets at their blocks, each once, in the order in which the query names them."""
        names = (reference.dataset if "@" in reference.dataset else "" for reference, _ in self.tables)
        inputs = (replace(resolved.input, name=name) for name, (_, resolved) in zip(names, self.tables, strict=True))
        return tuple(dict.fromkeys(inputs))

    @cached_property
    def simple(self) -> LogQuery | None:
        """The query in the form that needs no engine; None if it has another form."""
        if self.counts is not None or len(self.tables) != 1:
            return self.counts
        (_, resolved) = self.tables[0]
        return simple_query(self.text, self.dialect, resolved.state.vocab.offset_column)

    @cached_property
    def scans(self) -> tuple[Scan, ...]:
        """The scans of slices."""
        return tuple(plan_scan(reference, resolved, self.place(reference)) for reference, resolved in self.tables)

    @cached_property
    def columns(self) -> pa.Schema | None:
        """The schema of an answer from slices; None if it is answered in another way."""
        if self.simple is None or self.simple.totals:
            return None
        (scan,) = self.scans
        if scan.projection is not None or (self.simple.descending and self._max_rows is None):
            return None
        from odfpy.data.slices.slice import slice_schema

        schema = slice_schema(scan.schema_file(), vocab=scan.cut.state.vocab)
        return output_schema(self.simple, schema, self.dialect.name)

    @property
    def _max_rows(self) -> int | None:
        """The maximum number of requested rows, if it is known."""
        limits = (None if self.simple is None else self.simple.limit, self.query.limit)
        return min((most for most in limits if most is not None), default=None)

    @cached_property
    def path(self) -> AnswerPath:
        """The path of the answer."""
        if self.simple is not None and self.simple.totals and self.tables[0][0].shown is LogView.LOG:
            return "chain" if self.tables[0][1].state.schema is not None else self._engine
        return "slices" if self.columns is not None else self._engine

    @property
    def _engine(self) -> AnswerPath:
        return "spark" if self.dialect.name == "spark" else "datafusion"

    def sql_tables(self) -> tuple[SqlTable, ...]:
        """Return the tables that an engine reads."""
        return tuple(scan.table() for scan in self.scans)

    def place(self, reference: TableReference) -> str:
        """Return the position of a table in the text, for messages; empty if it is unknown."""
        return SourceText(self.shown).at(reference.start, reference.end) if reference.end else ""

    def explained(self) -> list[str]:
        """Return an explanation of how the query is answered."""
        how = {
            "chain": "from the metadata chain, no slice is opened",
            "slices": "from the slices themselves, without an engine",
            "spark": "by the Spark engine",
            "datafusion": "by DataFusion, in a separate process",
        }
        lines = [f"path: {self.path}, {how[self.path]}"]
        if self.path == "chain":
            ((_, resolved),) = self.tables
            return [*lines, f"table: {resolved.name}, changelog, block {resolved.head}"]
        if self.path == "slices" and self.simple is not None:
            first, last = self.simple.rows(self.scans[0].cut.num_rows, self.query.skip, self.query.limit)
            lines.append(f"rows: {f'offsets {first} to {last}' if first <= last else 'none'}")
            return [*lines, *self.scans[0].described(first, last)]
        return lines + [line for scan in self.scans for line in scan.described()]


def plan(resolver: DatasetResolver, query: Query, *, is_bound: bool = True) -> QueryPlan:
    """Plan the answer of a query, without running it.

    Args:
        resolver: the datasets.
        query: the query.
        is_bound: whether all parameters have values; otherwise missing ones are null.

    Raises:
        UnknownTable: a name is not that of a dataset.
        WrongProjection, NotYetThen, BlockOfAnother: a projection is invalid.
        NoDataYet: a dataset has no rows.
        QueryTooLong, QueryTooDeep: the text exceeds the limits.
    """
    check_text(query.text, query.text_limits)
    try:
        return _plan(resolver, query, is_bound=is_bound)
    except RecursionError as error:
        raise QueryTooDeep.anywhere() from error


def _plan(resolver: DatasetResolver, query: Query, *, is_bound: bool) -> QueryPlan:
    dialect = dialect_named(query.dialect)
    text = query.text.rstrip().rstrip(";")
    if (count := _plan_of_count(resolver, query, dialect, text)) is not None:
        return count
    # 1. and 2.
    explain = _EXPLAIN.match(text)
    if explain is not None:
        text = " " * explain.end() + text[explain.end() :]
    finder = _DatasetFinder(resolver, query, SourceText(text))
    text = quote_datasets(text, dialect, finder.is_dataset)
    places = parameter_places(text, dialect)
    missing = 0 if is_bound else max(0, len(places) - len(query.parameters))
    shown = with_parameters(text, dialect, (*query.parameters, *[None] * missing))
    _check_one_statement(shown, dialect)
    _check_is_query(shown)
    # 3. and 4.
    plain, projections = find_projections(shown, dialect)
    tables = _resolve_tables(replace(finder, source=SourceText(shown)), plain, projections, dialect)
    return QueryPlan(query, dialect, plain, shown, tables, explain is not None, len(places))


def _resolve_tables(
    finder: _DatasetFinder, text: str, projections: Sequence[TableReference], dialect: Dialect
) -> tuple[tuple[TableReference, Resolved], ...]:
    """Return the tables of a query with their datasets, first those of projections.

    Args:
        finder: finds the datasets.
        text: the query, with projections replaced by names of tables.
        projections: the projections.
        dialect: the dialect of the query.

    Raises:
        UnknownTable: a name is not that of a dataset.
        WrongProjection: a projection is not used as a table.
    """
    tables = [
        (projection, finder.find(NamedTable(projection.dataset, projection.start, projection.end)))
        for projection in projections
    ]
    named = named_tables(text, dialect.sqlglot)
    of_projections = {projection.table for projection in projections}
    unused = of_projections.difference(name.text for name in named)
    if unused and dialect.tree(text) is not None:
        raise _no_table(next(projection for projection in projections if projection.table in unused), finder.source)
    others = [name for name in named if name.text not in of_projections]
    found = ((TableReference(name.text, name.text), finder.find_if_dataset(name)) for name in others)
    return (*tables, *((reference, resolved) for reference, resolved in found if resolved is not None))


def _plan_of_count(resolver: DatasetResolver, query: Query, dialect: Dialect, text: str) -> QueryPlan | None:
    """Return the plan of a query that counts the rows of a dataset; None for other queries and unknown datasets."""
    match = None if query.parameters else counted(text)
    if match is None:
        return None
    name, finder = match[1], _DatasetFinder(resolver, query, SourceText(text))
    resolved = finder.find_if_dataset(NamedTable(name, *match.span(1)))
    if resolved is None or resolved.state.schema is None:
        return None
    quoted = dialect.quoted(name) if "." in name else name
    plain = f"{text[: match.start(1)]}{quoted}"
    return QueryPlan(
        query, dialect, plain, plain, ((TableReference(name, name), resolved),), counts=count_of(name, dialect)
    )


def _no_table(projection: TableReference, source: SourceText) -> WrongProjection:
    written = source.text[projection.start : projection.end]
    return WrongProjection(
        f"A dataset at a time or block is a table, not a value{source.at(projection.start, projection.end)}",
        hint=f"Write it behind FROM or JOIN: FROM {written}.",
    )


def _check_one_statement(text: str, dialect: Dialect) -> None:
    """Reject an empty text or a second statement, with the same message for all engines."""
    from sqlglot.errors import TokenError

    try:
        tokens = dialect.tokens(text)
    except TokenError:
        return  # the engine reports the error
    kinds = [token.token_type.name for token in tokens]
    if all(kind == "SEMICOLON" for kind in kinds):
        raise InvalidQuery("There is no query", hint="Write a SELECT.")
    for token, before in zip(tokens[1:], kinds, strict=False):
        if before == "SEMICOLON" and token.token_type.name != "SEMICOLON":
            where = SourceText(text).at(token.start, token.end + 1)
            raise InvalidQuery(f"A second statement begins{where}", hint="Ask one SELECT at a time.")


def _check_is_query(text: str) -> None:
    """Reject statements that an engine would reject: changes, settings, scripts.

    The engine's own check is authoritative; this one saves its start, and has a better message.
    """
    first = re.compile(r"\s*(\w+)").match(text)
    if first is not None and first.group(1).lower() in _STATEMENTS:
        where = SourceText(text).at(*first.span(1))
        raise InvalidQuery(
            f"Only queries are allowed, not {first.group(1).upper()}{where}",
            hint="Write a SELECT; statements such as SET, CREATE, INSERT or COPY are not run.",
        )


@dataclass(frozen=True)
class _DatasetFinder:
    """Finds datasets by name."""

    resolver: DatasetResolver
    query: Query
    source: SourceText
    missing: set[str] = field(default_factory=set)  # lookups among many datasets are slow

    def is_dataset(self, name: str) -> bool:
        """Return whether a name is that of a dataset."""
        try:
            self._dataset(name)
        except (DatasetNotFound, InvalidValue):
            self.missing.add(name)
            return False
        except NotFound:  # the dataset exists, but the block after its @ does not
            return True
        return True

    def find_if_dataset(self, named: NamedTable) -> Resolved | None:
        """Return the dataset with a name; None for other names, such as those that the query defines."""
        try:
            dataset = self._dataset(named.text)
        except (DatasetNotFound, InvalidValue):
            if named.is_sure:
                raise self._unknown(named) from None
            return None
        return self._resolved(dataset, named)

    def find(self, named: NamedTable) -> Resolved:
        """Return the dataset with a name that must be one of a dataset."""
        try:
            dataset = self._dataset(named.text)
        except (DatasetNotFound, InvalidValue):
            raise self._unknown(named) from None
        return self._resolved(dataset, named)

    def _dataset(self, name: str) -> Dataset:
        if name in self.missing:
            raise DatasetNotFound(f"No dataset {name!r}")
        return self.resolver.find(self.query.names.get(name, name))

    def _resolved(self, dataset: Dataset, named: NamedTable) -> Resolved:
        query = self.query
        pin = query.blocks.get(named.text) if "@" in named.text else query.pins.get(dataset.handle.id)
        return resolve(self.resolver, dataset, pin)

    def _unknown(self, named: NamedTable) -> UnknownTable:
        where = self.source.at(named.start, named.end) if named.end else ""
        names = [*self.query.names, *self.resolver.names()]
        otherwise = f"{self.resolver.listing}; files are not read by path."
        hint = did_you_mean_dataset(named.text, names, otherwise=otherwise)
        return UnknownTable(f"No dataset {named.text!r}{where}", hint=hint)


def schema_only(query: Query) -> Query:
    """Return the same query with a limit of no rows."""
    return replace(query, skip=0, limit=0, max_bytes=None)


def lines_as_rows(lines: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield lines as rows with a single column `plan`."""
    import pyarrow as pa

    yield pa.record_batch([pa.array(lines, pa.string())], names=["plan"])
