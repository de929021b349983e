"""Rules for when the rows of a stateful input are complete, late, and no longer needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.incremental.properties.plan_info import CompletenessRule
from odfpy.engine.spark.plan.catalyst import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRules:
    """The rules that an operator has for the rows of a stateful input; see `StatefulInput`.

    Attributes:
        complete_when: rules of which any one makes a row complete.
        only_complete: whether only complete rows count.
        drop_when: rules for when rows need no longer be stored.
        late_when: rules for changes that may concern rows that are no longer stored.
        session: start and end of the session of a single row, None for no sessions.
    """

    complete_when: tuple[CompletenessRule, ...] = ()
    only_complete: bool = False
    drop_when: tuple[CompletenessRule, ...] = ()
    late_when: tuple[CompletenessRule, ...] = ()
    session: tuple[Node, Node] | None = None


NO_RULES: Final = RowRules()
