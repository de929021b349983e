"""Limit on corrections: for how long windows stay correctable, as in `/*+ CORRECTABLE('7d') */`.

An entry of an input's changelog does not count for a window if, when the entry came, the input's watermark had passed
the end of the window by more than the limit. As with late rows (`odfpy.engine.lateness.policy`), this is a function of
the input's chain: a window has the same result whenever it is computed, from a checkpoint or from history.

The limit applies where rows of inputs are grouped by windows, dates and sessions (to a session as if the row were one
of its own). Results computed from windows are corrected as long as the windows are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.engine.contract import TransformRequestInput
from odfpy.engine.lateness.policy import LatePolicy
from odfpy.engine.lateness.slices import late_slices
from odfpy.engine.spark.incremental.properties.keys import sources_read
from odfpy.engine.spark.incremental.properties.plan_info import Fragment, StatefulInput
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns
from odfpy.engine.spark.plan.step import CARRIED_INPUT, CARRIED_OFFSET
from odfpy.engine.spark.plan.times import (
    MILLISECOND,
    Clock,
    DerivedWatermark,
    FirstOpenWindow,
    FunctionOf,
    LeastOf,
    ShiftedBy,
    SourceWatermark,
)
from odfpy.engine.spark.row_by_row.carried import Delta
from odfpy.engine.spark.rows.late_table import LateRange, LateTable
from odfpy.errors import InvalidQuery


@dataclass(frozen=True, slots=True)
class Correctable:
    """The limit on corrections, during one pull.

    Attributes:
        catalyst: the session.
        length: by how much the watermark may have passed the end of a window.
        sources: the inputs.
        scratch: a folder for temporary files.
    """

    catalyst: Catalyst
    length: Duration
    sources: Sequence[TransformRequestInput]
    scratch: Path

    @classmethod
    def of(
        cls, catalyst: Catalyst, policy: LatePolicy, sources: Sequence[TransformRequestInput], scratch: Path
    ) -> Correctable | None:
        """Return the limit that a policy sets, None if it sets none.

        Args:
            catalyst: access to Catalyst.
            policy: the treatment of late rows.
            sources: the inputs, as the request has them.
            scratch: a folder for temporary files.
        """
        return None if policy.correctable is None else cls(catalyst, policy.correctable, sources, scratch)

    def limited(self, stateful_input: StatefulInput, delta: Delta) -> Delta:
        """Return the rows of a stateful input that count for their windows, by their input and offset."""
        return replace(delta, plan=self._split(stateful_input, delta.plan, late=False))

    def dropped(self, stateful_input: StatefulInput, delta: Delta) -> Node | None:
        """Return the rows of a stateful input that no longer count; None if, by the slices, there are none."""
        return self._split(stateful_input, delta.plan, late=True)

    def over(self, stateful_input: StatefulInput, clock: Clock) -> Clock | None:
        """Return the watermarks up to which windows are closed for corrections; None if all are correctable.

        Args:
            stateful_input: the stateful input.
            clock: the watermarks before the pull.
        """
        if not has_windows(stateful_input, len(self.sources)):
            return None
        reached = [clock.watermarks[number] for number in sources_read(stateful_input.plan)]
        watermarks = [micros for micros in reached if micros is not None]
        limit = self.length.before(Timestamp.from_millis(min(watermarks) // MILLISECOND)) if watermarks else None
        if limit is None or len(watermarks) < len(reached):
            return None
        return Clock(self.catalyst, [limit.millis * MILLISECOND] * len(self.sources))

    def _split(self, stateful_input: StatefulInput, plan: Node, *, late: bool) -> Node | None:
        ranges = list(self._ranges(stateful_input)) if has_windows(stateful_input, len(self.sources)) else []
        if not ranges:
            return None if late else plan
        by_name = {column.name(): column for column in columns(plan)[len(stateful_input.columns) :]}
        table = LateTable.of(self.catalyst, ranges, self.scratch)
        times = [rule.value for rule in stateful_input.rules.complete_when]
        return table.split(plan, times, by_name[CARRIED_OFFSET], by_name[CARRIED_INPUT], late=late)

    def _ranges(self, stateful_input: StatefulInput) -> Iterator[LateRange]:
        """Yield the ranges of rows that may be of closed windows, with the time up to which windows were closed."""

        @cache
        def limits(micros: int) -> tuple[int | None, ...]:
            clock = Clock(self.catalyst, [micros // MILLISECOND * MILLISECOND] * len(self.sources))
            return tuple(rule.limit.at(clock) for rule in stateful_input.rules.complete_when)

        for number in sorted(sources_read(stateful_input.plan)):
            source = self.sources[number]
            paths = {*source.data_paths, *(source.history_paths or ())}
            for late in late_slices(source.arrivals, paths, source.vocab, behind=self.length):
                yield LateRange(number, late.rows.start, late.rows.end, limits(late.limit))


def has_windows(stateful_input: StatefulInput, num_inputs: int) -> bool:
    """Return whether a stateful input groups rows of inputs into windows of their event time."""
    if (
        stateful_input.log is not None
        or not stateful_input.rules.complete_when
        or not (stateful_input.rules.only_complete or stateful_input.rules.session is not None)
    ):
        return False
    read = sources_read(stateful_input.plan)
    return all(number < num_inputs for number in read) and all(
        read >= _sources_of(rule.limit) for rule in stateful_input.rules.complete_when
    )


def _sources_of(watermark: DerivedWatermark) -> frozenset[int]:
    """Return the numbers of the sources from whose watermarks a watermark is derived."""
    match watermark:
        case SourceWatermark(source):
            return frozenset([source])
        case LeastOf(parts):
            return frozenset[int]().union(*map(_sources_of, parts))
        case ShiftedBy(part, _) | FunctionOf(_, _, part) | FirstOpenWindow(_, _, part):
            return _sources_of(part)
    return frozenset()


def check_correctable(policy: LatePolicy, fragments: Sequence[Fragment], num_inputs: int) -> None:
    """Check that a limit on corrections comes with windows that it can apply to.

    Args:
        policy: the treatment of late rows.
        fragments: the fragments of the transform.
        num_inputs: number of inputs.

    Raises:
        InvalidQuery: there are no such windows.
    """
    stateful_inputs = (stateful_input for fragment in fragments for stateful_input in fragment.info.stateful_inputs)
    if policy.correctable is not None and not any(
        has_windows(stateful_input, num_inputs) for stateful_input in stateful_inputs
    ):
        raise no_windows()


def no_windows() -> InvalidQuery:
    """Return the error for a limit on corrections in a query without windows."""
    return InvalidQuery(
        "CORRECTABLE says how long windows are correctable, and no step groups rows of an input by a time of theirs",
        hint="Omit it, or group an input by window(event_time, ...), a session or a date. `LATE(ignored)` is for"
        " any query.",
    )
