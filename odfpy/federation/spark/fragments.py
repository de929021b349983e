"""Fragments for Spark's `load()`. What cannot be sent to relays is an error: dropping it would give wrong rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from odfpy.errors import UnsupportedQuery, did_you_mean
from odfpy.federation.errors import WebObjectNotFound
from odfpy.federation.spark.options import WebOptions
from odfpy.federation.sql.columns import Columns, columns_of
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Column, Expression
from odfpy.federation.sql.flavors import QUERIES
from odfpy.federation.sql.fragment import Fragment, Output
from odfpy.federation.sql.reading import named_columns, read_text
from odfpy.federation.sql.split import Split, split

DIALECT: Final = "spark"


def fragment_of(options: WebOptions, entities: Mapping[str, pa.Schema]) -> Fragment:
    """Return the fragment of the requested rows.

    Args:
        options: options of the request.
        entities: names and schemas of the relay's model.

    Raises:
        WebObjectNotFound: there is no such entity.
        InvalidFragment: there is no such column, or the condition cannot travel.
        InvalidQuery, UnsupportedQuery: the query is invalid, or more than rows of one entity.
    """
    if options.query is not None:
        return _of_query(options.query, entities)
    entity = _entity(options.entity or "", entities)
    schema = entities[entity]
    columns = columns_of(schema)
    names = options.columns or tuple(schema.names)
    where = None if options.filter is None else _condition(options.filter, columns)
    return Fragment(entity, tuple(map(_output, _found(names, columns))), where, limit=options.limit)


def picked(fragment: Fragment, names: Iterable[str]) -> Fragment:
    """Select the outputs of a fragment that Spark needs, in Spark's order.

    Args:
        fragment: a fragment over one entity.
        names: names of outputs, case-insensitive.

    Raises:
        InvalidFragment: there is no such output.
    """
    by_name = {output.name: output for output in fragment.outputs}
    wanted_columns = _found(names, columns_of({name: candidate.type for name, candidate in by_name.items()}))
    return replace(fragment, outputs=tuple(by_name[candidate.name] for candidate in wanted_columns))


def _output(column: Column) -> Output:
    return Output(column.name, column)


def _found(names: Iterable[str], columns: Columns) -> list[Column]:
    columns_found = [columns(name) for name in names]
    return [column for column in columns_found if isinstance(column, Column)]


def _entity(name: str, entities: Mapping[str, pa.Schema]) -> str:
    folded = [entity for entity in entities if entity.lower() == name.lower()]
    if name in entities or len(folded) == 1:
        return name if name in entities else folded[0]
    known = f"There are {', '.join(sorted(entities)[:20])}." if entities else "The relay shows you none."
    raise WebObjectNotFound(
        f"The relay has no entity {name!r}", hint=did_you_mean(name, list(entities), otherwise=known)
    )


def _condition(text: str, columns: Columns) -> Expression:
    try:
        return read_text(text, named_columns(columns), QUERIES[DIALECT])
    except InvalidFragment as error:
        hint = error.hint or "What cannot travel is done after reading: .load().where(...)."
        raise error.with_message(f"The option filter: {error.message}", hint=hint) from error


def _of_query(query: str, entities: Mapping[str, pa.Schema]) -> Fragment:
    text = query.strip().rstrip(";")
    split(text, entities, DIALECT)  # errors refer to positions in the query as it was written
    parts = split(f"SELECT * FROM ({text}\n) AS q", entities, DIALECT)  # noqa: S608
    names = _names_of_nothing_more(parts)
    if names is None:
        raise UnsupportedQuery(
            "The query is more than rows of one entity, and Spark has to do a part of it",
            hint="odfpy.web.spark_sql(spark, web, query) does the rest in Spark.",
        )
    [fragment] = parts.fragments.values()
    values = {output.name: output for output in fragment.outputs}
    return replace(fragment, outputs=tuple(replace(values[inner], name=outer) for inner, outer in names))


def _names_of_nothing_more(parts: Split) -> list[tuple[str, str]] | None:
    """Return the columns of a rest that only selects and renames them; None where it does more."""
    from sqlglot import exp, parse_one

    rest: Any = parse_one(parts.rest, dialect=QUERIES[DIALECT].sqlglot)
    if len(parts.fragments) != 1 or not isinstance(rest, exp.Select):
        return None
    if {key for key, value in rest.args.items() if value} != {"expressions", "from_"}:
        return None
    table = rest.args["from_"].this
    if not isinstance(table, exp.Table) or any(
        value for key, value in table.args.items() if key not in ("this", "alias")
    ):
        return None
    if any(not isinstance(expression.unalias(), exp.Column) for expression in rest.expressions):
        return None
    return [(expression.unalias().name, expression.alias_or_name) for expression in rest.expressions]
