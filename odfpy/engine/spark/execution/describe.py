"""Description of a transform for `odf inspect query`: classes of its steps, their state, its key and its watermark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from odfpy.data.schemas.arrow import from_arrow
from odfpy.data.schemas.primary_key import with_primary_key
from odfpy.data.schemas.schema import DataSchema
from odfpy.engine.contract import ROW_BY_ROW, AnalyzeResponseSuccess, StepAnalysis
from odfpy.engine.lateness.policy import Late, LatePolicy
from odfpy.engine.spark.analysis.event_time import watermark_passes
from odfpy.engine.spark.execution.stateful import Stateful, key_positions
from odfpy.engine.spark.incremental.properties.plan_info import PlanInfo
from odfpy.engine.spark.plan.times import (
    DerivedWatermark,
    FirstOpenWindow,
    FunctionOf,
    LeastOf,
    ShiftedBy,
    SourceWatermark,
    complete_before,
)
from odfpy.engine.spark.rows.tables import Table

if TYPE_CHECKING:
    from odfpy.engine.spark.execution.prepare import PreparedTransform
    from odfpy.engine.spark.plan.catalyst import Node

_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))


def describe(ready: PreparedTransform | Stateful, tables: Sequence[Table]) -> AnalyzeResponseSuccess:
    """Return the response to an analysis."""
    names = [table.name for table in tables]
    key = primary_key(ready)
    if isinstance(ready, Stateful):
        steps = tuple(_stateful_step(part.step.alias, part.step.source.text, part.info) for part in ready.steps.steps)
        watermark = None if ready.watermark is None else in_words(ready.watermark, names)
        reason = (
            "rows of any time may still arrive or be retracted. A window over the event time, or an interval"
            " join, would pass it on."
        )
    else:
        steps = tuple(
            StepAnalysis(part.step.alias, part.step.source.text, ROW_BY_ROW, part.reason, "nothing")
            for part in ready.plan.steps
        )
        watermark = _row_by_row_watermark(ready, tables)
        time = ready.layout.vocab.event_time_column
        reason = (
            f"`{time}` is not an input's event time, nor a function of it that never decreases. Select the input's"
            f" event time as `{time}` to pass it on."
        )
    notes = _on_late_rows(ready.late, names)
    return AnalyzeResponseSuccess(
        steps=steps,
        output_columns=tuple(ready.layout.schema.names),
        output_schema=output_schema(ready),
        notes=notes if watermark is not None else (*notes, f"The watermark will not advance: {reason}"),
        primary_key=key,
        watermark=watermark,
        late=ready.late.in_words(names),
    )


def _on_late_rows(policy: LatePolicy, names: Sequence[str]) -> tuple[str, ...]:
    ignored = [f"`{name}`" for name, kind in zip(names, policy.inputs, strict=True) if kind is Late.IGNORED]
    if not ignored:
        return ()
    what = "are ignored, and so are corrections and retractions of rows at or before the watermark"
    return (f"Late rows of {', '.join(ignored)} {what}.",)


def output_schema(ready: PreparedTransform | Stateful) -> DataSchema:
    """Return the schema of the output, with the primary key that follows from the query."""
    return with_primary_key(from_arrow(ready.layout.schema), primary_key(ready))


def primary_key(ready: PreparedTransform | Stateful) -> tuple[str, ...] | None:
    """Return the columns that identify a row in the state of the output, as far as the query tells."""
    final = {at: ready.layout.schema.field(3 + number).name for number, at in enumerate(ready.layout.sources)}
    positions = key_positions(ready.steps.last.info) if isinstance(ready, Stateful) else ready.plan.key
    return None if positions is None else tuple(final[at] for at in positions)


def _stateful_step(alias: str | None, text: str, info: PlanInfo) -> StepAnalysis:
    if info.stateless_plan is not None:
        return StepAnalysis(alias, text, ROW_BY_ROW, "every result row comes from one row", "nothing")
    if info.is_constant:
        return StepAnalysis(alias, text, "constants", "every result row comes from the query itself", "nothing")
    names, reasons, states = (
        list(dict.fromkeys(getattr(requirement, field) for requirement in info.requirements))
        for field in ("name", "reason", "state")
    )
    return StepAnalysis(alias, text, " + ".join(names), "; ".join(reasons), "; ".join(states))


# --- Watermarks ------------------------------------------------------------------------------------------------------


def in_words(times: DerivedWatermark, names: Sequence[str]) -> str:
    """Return in words how a watermark is derived.

    Args:
        times: the watermark.
        names: names of the inputs.
    """
    match times:
        case SourceWatermark(source):
            return f"the watermark of `{names[source]}`"
        case LeastOf():
            words = list(dict.fromkeys(in_words(bound, names) for bound in _compared(times)))
            return words[0] if len(words) == 1 else "the least of: " + ", ".join(words)
        case ShiftedBy(bound, -1_000):
            return f"just before {in_words(bound, names)}"
        case ShiftedBy(bound, micros):
            return f"{_length(abs(micros))} {'before' if micros < 0 else 'after'} {in_words(bound, names)}"
        case FunctionOf(expression, _, bound):
            return f"{_sql(expression)} at {in_words(complete_before(bound), names)}"
        case FirstOpenWindow(_, _, bound):
            return f"the start of the first window that is open at {in_words(bound, names)}"
    return "a time that follows from the watermarks of the inputs"


def _compared(times: DerivedWatermark) -> Iterator[DerivedWatermark]:
    """Yield the watermarks of which a watermark is the least, with nested minimums flattened."""
    for bound in times.parts if isinstance(times, LeastOf) else (times,):
        yield from _compared(bound) if isinstance(bound, LeastOf) else (bound,)


def _row_by_row_watermark(ready: PreparedTransform, tables: Sequence[Table]) -> str | None:
    origins, branches = ready.plan.time_origins, ready.delta.branches
    if not watermark_passes(ready.catalyst, origins, branches, tables):
        return None
    words = []
    for origin in origins:
        source = 0 if origin.branch is None else branches[origin.branch].input
        functions = "".join(f"{_sql(step.expression)} at " for step in reversed(origin.steps))
        words.append(f"{'just before ' if functions else ''}{functions}the watermark of `{tables[source].name}`")
    used = " ".join(words)
    words += [f"the watermark of `{table.name}`" for table in tables if f"`{table.name}`" not in used]
    distinct = list(dict.fromkeys(words))
    return distinct[0] if len(distinct) == 1 else "the least of: " + ", ".join(distinct)


def _sql(expression: Node) -> str:
    text: str = expression.child().sql() if hasattr(expression, "child") and _is_alias(expression) else expression.sql()
    return f"`{text.replace('`', '')}`"


def _is_alias(expression: Node) -> bool:
    return bool(expression.getClass().getSimpleName() == "Alias")


def _length(micros: int) -> str:
    size, unit = next(unit for unit in _UNITS if micros % unit[0] == 0)
    return f"{micros // size} {unit}"
