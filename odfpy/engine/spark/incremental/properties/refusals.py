"""Refusals: the error messages for operators and columns that stateful queries cannot have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from odfpy.engine.spark.analysis.determinism import place
from odfpy.engine.spark.plan.catalyst import Node, operator_name
from odfpy.engine.spark.plan.operators import NO_INPUT, Operator, obstacle, with_subqueries
from odfpy.errors import InvalidQuery, UnsupportedQuery

if TYPE_CHECKING:
    from odfpy.engine.spark.plan.step import Step
    from odfpy.engine.sql.source_text import SourceText

_WRITTEN: Final = {"UnionLoop": re.compile(r"\bwith\s+recursive\b", re.IGNORECASE)}
_UNKNOWN: Final = re.compile(r"name ((?:`[^`]*`\.)*)`([^`]*)` cannot be resolved")


def not_incremental(plan: Node, source: SourceText) -> UnsupportedQuery:
    """Return the error for an operator that cannot be processed incrementally."""
    refusal = obstacle(Operator(operator_name(plan), plan, ()))
    what = operator_name(plan) if refusal is None else refusal.what
    return UnsupportedQuery(
        f"{what[0].upper()}{what[1:]} cannot be processed incrementally{_place_of(plan, source)}",
        hint=None if refusal is None else refusal.hint,
    )


def _place_of(plan: Node, source: SourceText) -> str:
    """Return the position of an operator; for one that Spark generates, the position of the words behind it."""
    words = _WRITTEN.get(operator_name(plan))
    match = None if words is None else words.search(source.text)
    return place(plan, source) if match is None else source.at(*match.span())


def not_of_inputs(step: Step) -> UnsupportedQuery:
    """Return the error for a query none of whose rows comes from an input."""
    constant = next((subquery.node for subquery in with_subqueries(step.plan) if subquery.name in NO_INPUT), step.plan)
    return UnsupportedQuery(
        f"Rows that come from no input cannot be processed incrementally{place(constant, step.source)}",
        hint="Select from an input, too; a query of constants alone is not possible.",
    )


def unordered_limit(plan: Node, source: SourceText) -> UnsupportedQuery:
    """Return the error for a LIMIT in LATERAL whose ORDER BY Spark loses when it rewrites the query as a join."""
    words = re.search(r"\blateral\b", source.text, re.IGNORECASE)
    return UnsupportedQuery(
        "LIMIT in this lateral query cannot be processed incrementally, since ORDER BY does not name what it selects"
        + (_place_of(plan, source) if words is None else source.at(*words.span())),
        hint="Name in ORDER BY what the query selects, as in `SELECT v AS w ... ORDER BY w LIMIT 1`.",
    )


def misplaced_subquery(node: Node, source: SourceText) -> UnsupportedQuery:
    """Return the error for a subquery in a place where its kind is not supported."""
    return UnsupportedQuery(
        f"This subquery cannot be processed incrementally{place(node, source)}",
        hint="Use it in SELECT or WHERE of a query without GROUP BY, around this one or in its FROM; or write a join.",
    )


@contextmanager
def explain_hidden_columns(hidden: Collection[str]) -> Iterator[None]:
    """Explain, in the error for an unknown column, that stateful queries do not see the system columns of inputs.

    Args:
        hidden: their names.

    Raises:
        InvalidQuery: what the fragment raises, with a better message.
    """
    try:
        yield
    except InvalidQuery as error:
        unknown = _UNKNOWN.search(error.message)
        if unknown is None or unknown.group(2) not in hidden:
            raise
        message = f"`{unknown.group(2)}` is not available in queries with state"
        at = error.message.find(" (line")
        raise InvalidQuery(
            message + (error.message[at:] if at >= 0 else ""),
            hint="It belongs to entries of the log, not to rows of the current state. Use a data column.",
        ) from error
