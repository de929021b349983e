"""Rules for when the rows of a stateful input are complete, late, and no longer needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from odfpy.engine.spark.plan.catalyst import Catalyst, Node
from odfpy.engine.spark.plan.times import Clock, DerivedWatermark


@dataclass(frozen=True, slots=True)
class CompletenessRule:
    """A rule for when rows of a stateful input are complete: when `value` is at or before a limit.

    Attributes:
        value: an expression over the columns of the stateful input.
        limit: a limit that moves with the watermarks.
        inclusive: whether a row with a value at the limit is complete.
    """

    value: Node
    limit: DerivedWatermark
    inclusive: bool

    def condition(self, clock: Clock) -> Node:
        """Return the condition that a row is complete; FALSE as long as the limit is not known."""
        catalyst, limit = clock.catalyst, self.limit.at(clock)
        if limit is None:
            return catalyst.boolean(False)
        name = "LessThanOrEqual" if self.inclusive else "LessThan"
        return catalyst.expression(name, self.value, catalyst.time(limit, self.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRules:
    """The rules that an operator has for the rows of a stateful input.

    Attributes:
        complete_when: rules of which any one makes a row complete, where the operator depends on completeness.
        only_complete: whether only complete rows count; otherwise completeness only changes their result.
        drop_when: rules for when rows need no longer be stored.
        late_when: rules for changes that may concern rows that are no longer stored.
        session: where rows are stored by the sessions they belong to: start and end of the session of a single row.
    """

    complete_when: tuple[CompletenessRule, ...] = ()
    only_complete: bool = False
    drop_when: tuple[CompletenessRule, ...] = ()
    late_when: tuple[CompletenessRule, ...] = ()
    session: tuple[Node, Node] | None = None

    @property
    def all(self) -> tuple[CompletenessRule, ...]:
        """Return the rules that depend on the watermark."""
        return (*self.complete_when, *self.drop_when, *self.late_when)


NO_RULES: Final = RowRules()


def is_complete(rules: Sequence[CompletenessRule], clock: Clock) -> Node:
    """Return the condition that at least one of several rules makes a row complete."""
    return any_of(clock.catalyst, [rule.condition(clock) for rule in rules])


def becomes_complete(rules: Sequence[CompletenessRule], was: Clock, now: Clock) -> Node:
    """Return the condition that a row is complete now and was not before.

    Args:
        rules: the rules.
        was: the watermarks before the pull.
        now: the watermarks after the pull.
    """
    catalyst = now.catalyst
    return catalyst.expression("And", is_complete(rules, now), catalyst.expression("Not", is_complete(rules, was)))


def any_of(catalyst: Catalyst, conditions: Sequence[Node]) -> Node:
    """Return the condition that at least one of several conditions holds."""
    return reduce(lambda left, right: catalyst.expression("Or", left, right), conditions)
