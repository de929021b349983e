"""The time for which windows stay correctable: `/*+ CORRECTABLE('7d') */`.

An entry of an input's changelog no longer counts for a window whose end the watermark of the input had passed by that
length before the entry came. As with late rows (`odfpy.engine.lateness.policy`), that is a function of the input's
chain: a window is the same whenever it is looked at, from a checkpoint or from history.

It holds where rows of inputs fall into windows, date groupings and sessions; for a session, as if the row were one of
its own. What is made of windows in turn is corrected as long as these are.
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
    """The limit, in one pull.

    Attributes:
        catalyst: the session.
        length: how far the watermark may be past the end of a window.
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
        """The limit that a policy sets, None if it sets none.

        Args:
            catalyst: access to Catalyst.
            policy: the treatment of late rows.
            sources: the inputs, as the request has them.
            scratch: a folder for files on the way.
        """
        return None if policy.correctable is None else cls(catalyst, policy.correctable, sources, scratch)

    def limited(self, stateful_input: StatefulInput, delta: Delta) -> Delta:
        """The rows at a stateful input that count; its carried columns say where they come from."""
        return replace(delta, plan=self._split(stateful_input, delta.plan, late=False))

    def dropped(self, stateful_input: StatefulInput, delta: Delta) -> Node | None:
        """The rows at a stateful input that do not count; None where the files tell that there are none."""
        return self._split(stateful_input, delta.plan, late=True)

    def over(self, stateful_input: StatefulInput, clock: Clock) -> Clock | None:
        """Return the watermarks by which windows of a stateful input are closed for corrections, too; None for none.

        Args:
            stateful_input: the stateful input.
            clock: the watermarks before the entries that are still to come.
        """
        if not has_windows(stateful_input, len(self.sources)):
            return None
        reached = [clock.watermarks[number] for number in sources_read(stateful_input.plan)]
        known = [micros for micros in reached if micros is not None]
        limit = self.length.before(Timestamp.from_millis(min(known) // MILLISECOND)) if known else None
        if limit is None or len(known) < len(reached):
            return None
        return Clock(self.catalyst, [limit.millis * MILLISECOND] * len(self.sources))

    def _split(self, stateful_input: StatefulInput, plan: Node, *, late: bool) -> Node | None:
        ranges = list(self._ranges(stateful_input)) if has_windows(stateful_input, len(self.sources)) else []
        if not ranges:
            return None if late else plan
        by_name = {column.name(): column for column in columns(plan)[len(stateful_input.columns) :]}
        table = LateTable.of(self.catalyst, ranges, self.scratch)
        times = [rule.value for rule in stateful_input.complete_when]
        return table.split(plan, times, by_name[CARRIED_OFFSET], by_name[CARRIED_INPUT], late=late)

    def _ranges(self, stateful_input: StatefulInput) -> Iterator[LateRange]:
        """Up to when windows are no longer correctable, for those slices that may have rows of such windows."""

        @cache
        def limits(micros: int) -> tuple[int | None, ...]:
            clock = Clock(self.catalyst, [micros // MILLISECOND * MILLISECOND] * len(self.sources))
            return tuple(rule.limit.at(clock) for rule in stateful_input.complete_when)

        for number in sorted(sources_read(stateful_input.plan)):
            source = self.sources[number]
            paths = {*source.data_paths, *(source.history_paths or ())}
            for found in late_slices(source.arrivals, paths, source.vocab, behind=self.length):
                yield LateRange(number, found.rows.start, found.rows.end, limits(found.limit))


def has_windows(stateful_input: StatefulInput, num_inputs: int) -> bool:
    """Return whether rows of inputs fall into windows of their event time at a stateful input."""
    if (
        stateful_input.log is not None
        or not stateful_input.complete_when
        or not (stateful_input.only_complete or stateful_input.session is not None)
    ):
        return False
    read = sources_read(stateful_input.plan)
    return all(number < num_inputs for number in read) and all(
        read >= _sources_of(rule.limit) for rule in stateful_input.complete_when
    )


def _sources_of(watermark: DerivedWatermark) -> frozenset[int]:
    """Numbers of the sources whose watermarks a watermark follows from."""
    match watermark:
        case SourceWatermark(source):
            return frozenset([source])
        case LeastOf(parts):
            return frozenset[int]().union(*map(_sources_of, parts))
        case ShiftedBy(part, _) | FunctionOf(_, _, part) | FirstOpenWindow(_, _, part):
            return _sources_of(part)
    return frozenset()


def check_correctable(policy: LatePolicy, fragments: Sequence[Fragment], num_inputs: int) -> None:
    """Check that there are windows if it is said how long they are correctable.

    Args:
        policy: the treatment of late rows.
        fragments: the fragments of the transform.
        num_inputs: number of inputs.

    Raises:
        InvalidQuery: there are none.
    """
    stateful_inputs = (stateful_input for fragment in fragments for stateful_input in fragment.info.stateful_inputs)
    if policy.correctable is not None and not any(
        has_windows(stateful_input, num_inputs) for stateful_input in stateful_inputs
    ):
        raise no_windows()


def no_windows() -> InvalidQuery:
    """Return what is said of a limit without windows."""
    return InvalidQuery(
        "CORRECTABLE says how long windows are correctable, and no step groups rows of an input by a time of theirs",
        hint="Leave it out, or group an input by window(event_time, ...), a session or a date. `LATE(ignored)` is for"
        " any query.",
    )
