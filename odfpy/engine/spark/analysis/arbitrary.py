"""Arbitrary values: those that may be one of several, traced through a plan to where the choice would show.

`collect_list` returns an array in an arbitrary order. That does no harm as long as the array is sorted, counted,
searched or exploded in the end, in the same expression or in an enclosing query. A group of texts that are equal by
their collation is represented by one of them, which does no harm as long as the chosen text is not shown. So such
values are traced from the sources up, to the places where the result depends on the choice, and to the columns that the
query shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from odfpy.engine.spark.analysis.order import is_sortable, may_hide
from odfpy.engine.spark.analysis.unordered import (
    CALL,
    COLLECTED,
    Unordered,
    ambiguous,
    has_plain_order,
    in_group,
    of_equal_rows,
    over_window,
)
from odfpy.engine.spark.plan.catalyst import (
    Node,
    children,
    columns,
    expression_name,
    expressions_of,
    items,
    operator_name,
    selected,
)
from odfpy.engine.spark.plan.operators import INPUT

_OUTER: Final = "OuterReference"
_SCALAR: Final = "ScalarSubquery"
_NESTED: Final = frozenset((_SCALAR, "Exists", "ListQuery", "LateralSubquery"))
_ONE_OF_EQUAL: Final = frozenset(("Distinct", "Deduplicate", "Intersect", "Except"))
_EITHER: Final = frozenset(("Alias", "KnownNotNull", "If", "CaseWhen", "Coalesce", "Nvl"))
_LCASE: Final = "STRING COLLATE UTF8_LCASE"


class Choice(Enum):
    """The kinds of choices among equal rows."""

    ORDER = "the orders of an array"
    TEXT = "texts that are equal by their collation"


_FREE: Final[Mapping[Choice, frozenset[str]]] = {
    Choice.ORDER: frozenset(
        "SortArray Size ArraySize ArrayMin ArrayMax ArrayContains ArraysOverlap IsNull IsNotNull Explode Inline".split()  # noqa: SIM905
    ),
    Choice.TEXT: frozenset(
        """
        EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual In IsNull IsNotNull SortOrder
        """.split()  # noqa: SIM905
    ),
}
"""Expressions whose value does not depend on the choice (`explode` returns rows, which have no order)."""

_STAY_ARRAYS: Final = frozenset("ArrayTransform ArrayFilter ArrayCompact ArrayRemove Concat Reverse".split())  # noqa: SIM905
"""Expressions that turn arrays in arbitrary order into an array in arbitrary order."""

_OF_SETS: Final = frozenset("ArrayDistinct ArrayUnion ArrayIntersect ArrayExcept".split())  # noqa: SIM905
"""The same, provided that equal elements are identical."""


@dataclass(frozen=True, slots=True)
class _ArbitraryValue:
    """A value that may be one of several.

    Attributes:
        choice: the kind of choice.
        problem: the error when the choice makes a difference.
    """

    choice: Choice
    problem: Unordered


def arbitrary(plan: Node) -> Iterator[Unordered]:
    """Yield all places where the result of an analyzed plan depends on a choice that the query does not make."""
    flow = _Flow()
    flow.operator(plan)
    yield from flow.found
    shown = (flow.known.get(_id(column)) for column in columns(plan))
    yield from (value.problem for value in shown if value is not None)


class _Flow:
    """The arbitrary columns of a plan so far, by id, and the problems found."""

    def __init__(self) -> None:
        self.known: dict[int, _ArbitraryValue] = {}
        self.found: list[Unordered] = []
        self._definitions: dict[int, Node] = {}

    # --- Operators ---

    def operator(self, plan: Node) -> None:
        """Trace values through an operator, after all operators below it."""
        name = operator_name(plan)
        if name == INPUT:
            return  # the result of an earlier step has been checked
        if name == "WithCTE":
            for definition in items(plan.cteDefs()):
                self._definitions[definition.id()] = definition.child()
                self.operator(definition.child())
            self.operator(plan.plan())
            return
        for child in children(plan):
            self.operator(child)
        match name:
            case "Project":
                self._made(selected(plan))
            case "Aggregate":
                self._aggregate(plan)
            case "Window":
                self._window(plan)
            case "Union":
                for child in children(plan):
                    self._passed(columns(child), columns(plan))
            case "Expand":
                for copy in items(plan.projections()):
                    self._passed(items(copy), columns(plan))
            case "CTERelationRef":
                self._passed(columns(self._definitions[plan.cteId()]), columns(plan))
            case _ if name in _ONE_OF_EQUAL:
                self.found += of_equal_rows(plan)
                for child in children(plan):
                    self._require_determined(columns(child))
            case _:
                self._require_determined(expressions_of(plan))

    def _made(self, outputs: Sequence[Node], groupings: Sequence[Node] = ()) -> None:
        for output in outputs:
            value = self._value(output, groupings)
            if value is not None:
                self.known[_id(output)] = value

    def _passed(self, values: Sequence[Node], outputs: Sequence[Node]) -> None:
        for expression, output in zip(values, outputs, strict=True):
            value = self._value(expression)
            if value is not None:
                self.known[_id(output)] = value

    def _require_determined(self, expressions: Sequence[Node]) -> None:
        """Require that expressions are not arbitrary, since their values decide about rows."""
        for expression in expressions:
            self._depends_on(self._value(expression))

    def _depends_on(self, value: _ArbitraryValue | None) -> None:
        if value is not None:
            self.found.append(value.problem)

    def _aggregate(self, plan: Node) -> None:
        groupings = items(plan.groupingExpressions())
        for grouping in groupings:
            value = self._value(grouping)
            if value is not None and value.choice is not Choice.TEXT:
                self._depends_on(value)
            if _is_collated(grouping) and not grouping.dataType().sql().startswith("STRING"):
                self.found += filter(None, [ambiguous(grouping, grouping)])
        self._made(items(plan.aggregateExpressions()), groupings)
        outputs = items(plan.aggregateExpressions())
        for output in outputs:
            value = self.known.get(_id(output))
            if value is not None and value.choice is Choice.ORDER and not is_sortable(output):
                self._depends_on(value)

    def _window(self, plan: Node) -> None:
        for key in (*items(plan.partitionSpec()), *items(plan.orderSpec())):
            value = self._value(key)
            if value is not None and value.choice is not Choice.TEXT:
                self._depends_on(value)
        for output in items(plan.windowExpressions()):
            window = output.child()
            problem, function = over_window(window), window.windowFunction()
            self._arguments(function.aggregateFunction() if expression_name(function) == CALL else function)
            if problem is None:
                continue
            if _is_collection(function):
                self.known[_id(output)] = _ArbitraryValue(Choice.ORDER, problem)
            else:
                self.found.append(problem)

    # --- Expressions ---

    def _value(self, expression: Node, groupings: Sequence[Node] = ()) -> _ArbitraryValue | None:
        """Return the value of an expression if it is arbitrary, else None.

        Args:
            expression: the expression.
            groupings: the grouping expressions, whose values stand for all rows of a group.
        """
        collated = next(
            (grouping for grouping in groupings if _is_collated(grouping) and expression.semanticEquals(grouping)), None
        )
        if collated is not None and (problem := ambiguous(collated, collated)) is not None:
            return _ArbitraryValue(Choice.TEXT, problem)
        name = expression_name(expression)
        if name in ("AttributeReference", _OUTER):
            return self.known.get(_id(expression.e() if name == _OUTER else expression))
        if name == CALL:
            return self._call(expression, groupings)
        if name in _NESTED:
            return self._query(name, expression.plan())
        values = [self._value(child, groupings) for child in children(expression)]
        if name == "InSubquery":
            values.append(self._query("ListQuery", expression.query().plan()))
        return self._through(expression, values)

    def _through(self, expression: Node, values: Sequence[_ArbitraryValue | None]) -> _ArbitraryValue | None:
        """Return the value of an expression some of whose arguments are arbitrary."""
        chosen = [value for value in values if value is not None]
        if not chosen:
            return None
        name = expression_name(expression)
        if all(name in _FREE[value.choice] for value in chosen):
            return None
        kept = _stays_arbitrary(expression, chosen[0].choice, values)
        if kept and len({value.choice for value in chosen}) == 1:
            return chosen[0]
        if _is_lower_case(expression) or (name == "ArraySort" and values[1] is None and has_plain_order(expression)):
            return None
        for value in chosen:
            self._depends_on(value)
        return None

    def _query(self, kind: str, plan: Node) -> _ArbitraryValue | None:
        """Return the value of a subquery."""
        self.operator(plan)
        if kind == _SCALAR:
            return self.known.get(_id(columns(plan)[0]))
        if kind == "ListQuery":
            self._require_determined(columns(plan))
        return None

    def _call(self, call: Node, groupings: Sequence[Node]) -> _ArbitraryValue | None:
        """Return the result of an aggregate function."""
        function = call.aggregateFunction()
        self._arguments(function)
        if call.filter().isDefined():
            self._require_determined([call.filter().get()])
        problem = in_group(call, groupings)
        if problem is None:
            return None
        if _is_collection(call) and not _is_collated(children(function)[0]):
            return _ArbitraryValue(Choice.ORDER, problem)
        self.found.append(problem)
        return None

    def _arguments(self, function: Node) -> None:
        counts = expression_name(function) == "aggregate.Count"
        for argument in children(function):
            value = self._value(argument)
            if value is not None and not (counts and value.choice is Choice.TEXT):
                self._depends_on(value)


def leaves_open(parent: Node | None) -> bool:
    """Return whether the result of an expression over an array depends on its order; None stands for no expression."""
    if parent is None:
        return True
    name = expression_name(parent)
    return name not in _FREE[Choice.ORDER] and not (name == "ArraySort" and has_plain_order(parent))


def _stays_arbitrary(expression: Node, choice: Choice, values: Sequence[_ArbitraryValue | None]) -> bool:
    """Return whether the value of an expression is again arbitrary, with each choice as good as the others."""
    name = expression_name(expression)
    if name in _EITHER:
        # Conditions are the first argument, or every other argument.
        conditions = {"If": values[:1], "CaseWhen": values[: len(values) // 2 * 2 : 2]}.get(name, ())
        return not any(conditions)
    if choice is Choice.TEXT or expression.dataType().typeName() != "array":
        return False
    if name in ("ArrayTransform", "ArrayFilter"):
        return values[1] is None and children(expression)[1].arguments().size() == 1  # without the position
    if name == "ArrayRemove":
        return values[1] is None
    return name in _STAY_ARRAYS or (name in _OF_SETS and not may_hide(expression.dataType()))


def _is_lower_case(expression: Node) -> bool:
    """Return whether an expression removes the differences that the collation UTF8_LCASE ignores."""
    return expression_name(expression) in ("Lower", "Upper") and str(expression.dataType().sql()) == _LCASE


def _is_collection(call: Node) -> bool:
    return expression_name(call) == CALL and expression_name(call.aggregateFunction()) in COLLECTED


def _is_collated(expression: Node) -> bool:
    return "COLLATE" in expression.dataType().sql()


def _id(column: Node) -> int:
    """Return the identity of a column within a plan."""
    return int(column.exprId().id())
