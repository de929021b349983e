"""Queries for engines that are not here, translated to Spark SQL.

An ingest preprocesses its rows only once, and records the result. So a query for another engine may be run by Spark if
it can be translated. Its meaning may differ slightly, so users are told. The queries of derivative datasets are never
translated, since others replay them for verification.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from odfpy.dataset.transform import SqlQueryStep, TransformSql
from odfpy.engine.sql.source_text import SourceText, step_texts
from odfpy.errors import EngineNotFound, InvalidQuery, QueryTooDeep, UnsupportedQuery

TARGET: Final = "spark"
NATIVE: Final = ("datafusion", TARGET)
"""Engines whose queries run unchanged."""

KNOWN: Final = ("flink", "risingwave")
"""Engines of the reference implementation that are not here."""

_GRAMMARS: Final = {"flink": "spark", "postgresql": "postgres"}
"""Engines that go by another name in sqlglot. Flink's SQL has Spark's quotes, and its patterns of times."""


def translate(transform: TransformSql) -> tuple[TransformSql, tuple[str, ...]]:
    """Return the transform for an available engine, with a remark for the user if it had to be translated.

    Raises:
        EngineNotFound: nothing is known of the engine's SQL.
        InvalidQuery: a query does not parse; the message names the step.
        UnsupportedQuery: a query has something that Spark SQL has not; the message names it.
    """
    name = transform.engine.lower()
    if name in NATIVE:
        return transform, ()
    grammar = _grammar(transform.engine)
    queries = tuple(
        SqlQueryStep(alias=step.alias, query=_to_spark(source, grammar, transform.engine))
        for step, source in zip(transform.steps, step_texts(transform), strict=True)
    )
    remark = f"the preprocessing query for {transform.engine} was translated to Spark SQL: check that it means the same"
    return replace(transform, engine=TARGET, query=None, queries=queries), (remark,)


def _grammar(engine: str) -> str:
    from sqlglot.dialects.dialect import Dialect

    name = _GRAMMARS.get(engine.lower(), engine.lower())
    if not name or Dialect.get(name) is None:
        raise EngineNotFound(
            f"No engine is called {engine!r}, and its SQL is not known, so it cannot be translated",
            hint=f"Preprocess with: {', '.join(NATIVE)}; queries for {', '.join(KNOWN)} and others are translated.",
        )
    return name


def _to_spark(source: SourceText, grammar: str, engine: str) -> str:
    from sqlglot import ErrorLevel
    from sqlglot.errors import UnsupportedError

    try:
        query = _parsed(source, grammar)
        _check_aggregates(query)
        return str(query.sql(dialect=TARGET, unsupported_level=ErrorLevel.RAISE, pretty=True, comments=False))
    except RecursionError as error:
        raise QueryTooDeep.anywhere() from error
    except UnsupportedError as error:
        raise UnsupportedQuery(
            f"The query for {engine} cannot be translated to Spark SQL: {error}{source.whole()}",
            hint="Write it for `engine: spark` or `engine: datafusion`.",
        ) from error


def _check_aggregates(query: Any) -> None:
    """Reject aggregates that sqlglot would silently drop."""
    from sqlglot import exp
    from sqlglot.errors import UnsupportedError

    within = any(aggregate.find(exp.Order) for aggregate in query.find_all(exp.AggFunc))
    if within or query.find(exp.WithinGroup):
        raise UnsupportedError("ORDER BY inside of an aggregate function has no equivalent there")


def _parsed(source: SourceText, grammar: str) -> Any:
    """Parse the single query of a text; names are resolved as its engine does, since Spark takes them literally."""
    import sqlglot
    from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
    from sqlglot.errors import ParseError, SqlglotError
    from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

    try:
        queries = [query for query in sqlglot.parse(source.text, dialect=grammar) if query is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        line, column = first.get("line"), first.get("col")
        where = source.at_line(line, max(0, column - 1)) if line and column is not None else source.whole()
        raise InvalidQuery(f"{first.get('description') or 'The query does not parse'}{where}") from error
    except SqlglotError as error:
        raise InvalidQuery(f"The query does not parse: {error}{source.whole()}") from error
    if len(queries) != 1:
        raise InvalidQuery(f"A step is one SELECT, not {len(queries)} statements{source.whole()}")
    # In dialects that fold names to upper case, the declared tables and columns here are still in lower case.
    folds = Dialect.get_or_raise(grammar).normalization_strategy is NormalizationStrategy.LOWERCASE
    return normalize_identifiers(queries[0], dialect=grammar) if folds else queries[0]
