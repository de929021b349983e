"""Determinism checks: a step has to be a function of its inputs (ADR 0013, "Determinism").

The flag `deterministic` of Spark's expressions is not enough: by it, the current date, the user and the version of
Spark are constants. So every expression must be on a list, see `odfpy.engine.spark.plan.functions`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odfpy.engine.spark.analysis.arbitrary import arbitrary
from odfpy.engine.spark.plan.arguments import unfit
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, text_range
from odfpy.engine.spark.plan.operators import is_subquery, nested_queries, obstacle, with_subqueries
from odfpy.errors import NondeterministicQuery

if TYPE_CHECKING:
    from odfpy.engine.sql.source_text import SourceText

_CLOCK_WORDS = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_TIME_LITERAL = re.compile(r"""(?:date|timestamp\w*)\s*r?["'](?!\s*(?:[-+]?\d|epoch\b))""", re.IGNORECASE)
_TIME_TYPES = ("date", "timestamp", "timestamp_ntz")
_INSTEAD = "Take the time from a column of an input, for example its event time."


def check_deterministic(catalyst: Catalyst, plan: Node, source: SourceText) -> None:
    """Refuse expressions not known to give the same result everywhere and always, including those in subqueries.

    Args:
        catalyst: the session that analyzed the plan.
        plan: the analyzed plan.
        source: the text it came from.

    Raises:
        NondeterministicQuery: the message names the function and its place, the hint an alternative.
    """
    expressions = [part for operator in with_subqueries(plan) for part in operator.expressions]
    for name, expression in expressions:
        if not is_subquery(name) and (reason := unfit(name, expression)) is not None:
            what = f"`{text_of(expression, source)}` {reason.reason}{place(expression, source)}"
            raise NondeterministicQuery(what, hint=reason.hint)
    for name, expression in expressions:
        if name == "Literal" and _is_clock_literal(expression, source):
            raise _reads_clock(expression, source)
    if any(catalyst.depends_on_clock(query) for query in nested_queries(plan)):
        words = (node for name, node in expressions if name == "Literal" and _CLOCK_WORDS.match(str(node.value())))
        raise _reads_clock(next(words, plan), source)


def check_ordered(plan: Node, source: SourceText) -> None:
    """Refuse what depends on an order of rows that the query does not define, or on a choice among equal values.

    Args:
        plan: the analyzed plan.
        source: the text it came from.

    Raises:
        NondeterministicQuery: the message names the function and its place, the hint an alternative.
    """
    for problem in arbitrary(plan):
        what = f"`{text_of(problem.node, source)}` {problem.reason}{place(problem.node, source)}"
        raise NondeterministicQuery(what, hint=problem.hint)


def check_rows(plan: Node, source: SourceText) -> None:
    """Refuse operators that select some of their rows without defining which: LIMIT without an order, samples.

    Raises:
        NondeterministicQuery: there is such an operator; the hint names an alternative.
    """
    for operator in with_subqueries(plan):
        obstacle_found = obstacle(operator)
        if obstacle_found is not None and not obstacle_found.deterministic:
            message = (
                f"{obstacle_found.what} does not return the same rows every time{place(obstacle_found.node, source)}"
            )
            raise NondeterministicQuery(message, hint=obstacle_found.hint)


def place(node: Node, source: SourceText) -> str:
    """Return the place of a node in the text, as the end of a message."""
    span = text_range(node)
    return source.whole() if span is None else source.at(*span)


def _reads_clock(node: Node, source: SourceText) -> NondeterministicQuery:
    return NondeterministicQuery(f"`{text_of(node, source)}` reads the clock{place(node, source)}", hint=_INSTEAD)


def _is_clock_literal(literal: Node, source: SourceText) -> bool:
    """Return whether a time was written as TIMESTAMP'now' or the like: Spark's parser replaces the word by the time.

    Whatever does not begin with a digit is such a word. (Other literals stand for the defaults of a function.)
    """
    if literal.dataType().typeName() not in _TIME_TYPES or literal.value() is None:
        return False
    span = text_range(literal)
    return span is not None and _TIME_LITERAL.match(source.text[slice(*span)]) is not None


def text_of(node: Node, source: SourceText) -> str:
    """Return the text of a node, in one line."""
    span = text_range(node)
    return str(node.prettyName()) if span is None else " ".join(source.text[slice(*span)].split())
