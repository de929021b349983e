"""Query hints about late rows: `SELECT /*+ LATE(ignored), CORRECTABLE('7d') */ ...`.

A hint is part of the query's text, so it is in the chain, and is hashed and replayed with it; to engines that do not
know it, it is a comment. The hints of all steps apply to the whole transform.

    LATE(policy)               all inputs; the policy is `corrected`, `ignored` or `only`
    LATE(policy, a, b)         the inputs `a` and `b`
    CORRECTABLE('7d')          how long windows are correctable after their end
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from odfpy.data.duration import Duration
from odfpy.dataset.transform import TransformSql
from odfpy.engine.lateness.policy import Late, LatePolicy
from odfpy.engine.spark.analysis.determinism import place
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    expression_name,
    expressions_of,
    items,
    operator_name,
    subtree,
    text_range,
)
from odfpy.engine.spark.plan.failures import spark_errors
from odfpy.engine.sql.source_text import SourceText, step_texts
from odfpy.errors import InvalidQuery, InvalidValue, NondeterministicQuery

_LATE: Final = "LATE"
_CORRECTABLE: Final = "CORRECTABLE"
_OURS: Final = (_LATE, _CORRECTABLE)
_BEGIN: Final = "/*+"
_KINDS: Final = ", ".join(f"`LATE({kind.value})`" for kind in Late)
_POLICIES: Final = f"There are: {_KINDS}, each for all inputs, or for those that are named after it."


def late_policy(catalyst: Catalyst, transform: TransformSql, inputs: Sequence[str]) -> LatePolicy:
    """Return the policy for late rows that the hints of a transform set.

    Args:
        catalyst: a session.
        transform: the queries.
        inputs: names of the inputs.

    Raises:
        InvalidQuery: a hint has unknown arguments, or two hints contradict each other.
        NondeterministicQuery: there is a hint of another kind.
    """
    hints = _Hints(tuple(inputs))
    for source in step_texts(transform):
        if _BEGIN in source.text:
            with spark_errors([source]):
                for hint in _hints(catalyst.parse(source.text)):
                    hints.add(hint, source)
    return LatePolicy(tuple(hints.late.get(name, Late.CORRECTED) for name in inputs), hints.correctable)


def check_no_hints(catalyst: Catalyst, source: SourceText) -> None:
    """Refuse all hints; for queries whose inputs have no late rows.

    Raises:
        NondeterministicQuery: there is a hint.
    """
    if _BEGIN in source.text:
        for hint in _hints(catalyst.parse(source.text)):
            raise _not_allowed(hint, source)


def without_hints(catalyst: Catalyst, text: str) -> str:
    """Remove hints from a query, of which Spark would warn; all other text stays at its position."""
    if _BEGIN not in text:
        return text
    for hint in _hints(catalyst.parse(text)):
        if (span := text_range(hint)) is not None:
            start, end = span
            text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text


def _hints(plan: Node) -> Iterator[Node]:
    """Yield the hints of a parsed query, including those of subqueries."""
    name = operator_name(plan)
    if name == "UnresolvedHint":
        yield plan
    below = children(plan) + (items(plan.innerChildren()) if name == "UnresolvedWith" else [])
    for expression in expressions_of(plan):
        below += [node.plan() for kind, node in subtree(expression) if kind in _QUERIES]
    for child in below:
        yield from _hints(child)


_QUERIES: Final = frozenset(("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery"))


class _Hints:
    """The hints found so far."""

    def __init__(self, inputs: tuple[str, ...]) -> None:
        self.inputs = inputs
        self.late: dict[str, Late] = {}
        self.correctable: Duration | None = None

    def add(self, hint: Node, source: SourceText) -> None:
        """Add a hint."""
        name = str(hint.name()).upper()
        if name == _LATE:
            self._add_late(hint, source)
        elif name == _CORRECTABLE:
            self._add_correctable(hint, source)
        else:
            raise _not_allowed(hint, source, near=get_close_matches(name, _OURS, n=1))

    def _add_late(self, hint: Node, source: SourceText) -> None:
        first, *named = _words(hint) or [""]
        kind = first.lower()
        if kind not in {known.value for known in Late}:
            what = f"Late rows cannot be `{first}`" if first else "The hint LATE has no kind of late rows"
            raise InvalidQuery(f"{what}{place(hint, source)}", hint=_POLICIES)
        for name in named:
            if name not in self.inputs:
                known = ", ".join(f"`{input_name}`" for input_name in self.inputs)
                message = f"The hint LATE names `{name}`, which is not an input{place(hint, source)}"
                raise InvalidQuery(message, hint=f"There are: {known}.")
        for name in named or self.inputs:
            if self.late.setdefault(name, Late(kind)) is not Late(kind):
                message = f"Late rows of `{name}` cannot be both `{self.late[name].value}` and `{kind}`"
                raise InvalidQuery(
                    f"{message}{place(hint, source)}", hint="Hints apply to all steps of the transform; omit one."
                )

    def _add_correctable(self, hint: Node, source: SourceText) -> None:
        words = _words(hint)
        try:
            (length,) = map(Duration.parse, words)
        except (InvalidValue, ValueError) as error:
            message = f"CORRECTABLE takes one duration, in quotes{place(hint, source)}"
            raise InvalidQuery(message, hint="For example CORRECTABLE('7d'), '12h' or 'PT30M'.") from error
        if self.correctable not in (None, length):
            message = f"Windows cannot be correctable for both {self.correctable} and {length}{place(hint, source)}"
            raise InvalidQuery(message, hint="The hint applies to all windows of the transform; omit one.")
        self.correctable = length


def _words(hint: Node) -> list[str]:
    """Return the arguments of a hint: names, or text in quotes."""
    return [
        ".".join(items(word.nameParts())) if _is_name(word) else str(word.toString())
        for word in items(hint.parameters())
    ]


def _is_name(word: Node) -> bool:
    return expression_name(word).endswith("UnresolvedAttribute")


def _not_allowed(hint: Node, source: SourceText, near: Sequence[str] = ()) -> NondeterministicQuery:
    advice = "Omit it: it only tells Spark how to run the query."
    for name in near:
        advice = f"Did you mean {name}? Other hints only tell Spark how to run the query."
    return NondeterministicQuery(f"Hints such as {hint.name()} are not allowed{place(hint, source)}", hint=advice)
