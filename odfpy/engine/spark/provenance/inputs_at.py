"""The rows of stateful inputs as they were at a metadata block, with their identifiers; and the result as it was.

The parts of a transform (`incremental.properties.plan_info`) are built over all rows up to then, as in a first pull
with all of them; rows that wait for the watermark wait here, too. Fragments are replaced by their changes, so that rows
of the result are traced to the inputs at once, without intermediate files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path

from odfpy.engine.contract import TransformRequestInput
from odfpy.engine.spark.execution.stateful import Stateful
from odfpy.engine.spark.incremental.properties.keys import sources_read
from odfpy.engine.spark.incremental.properties.plan_info import Groups, InputsAt, PlanInfo, StatefulInput
from odfpy.engine.spark.incremental.properties.row_rules import is_complete
from odfpy.engine.spark.incremental.state.changes import WEIGHT, renamed, weight_of, with_identity_of
from odfpy.engine.spark.incremental.state.correctable import Correctable
from odfpy.engine.spark.incremental.state.log import LOG_OFFSET, LOG_SOURCE, MARKS, log_of, log_over
from odfpy.engine.spark.incremental.state.source_rows import SourceRows, leaf_over
from odfpy.engine.spark.incremental.streams import streams_of
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    columns,
    expression_name,
    number_named,
    operator_name,
    selected,
)
from odfpy.engine.spark.plan.same_bytes import summed_by_row
from odfpy.engine.spark.plan.step import CARRIED_INPUT, CARRIED_OFFSET, CARRIED_OPERATION
from odfpy.engine.spark.plan.times import MILLISECOND, Clock
from odfpy.engine.spark.provenance.annotate import Annotator
from odfpy.engine.spark.provenance.identifiers import IDS, identifier, leaf
from odfpy.engine.spark.provenance.in_force import cites_only_begun_versions
from odfpy.engine.spark.row_by_row.carried import CARRIED, Delta
from odfpy.engine.spark.row_by_row.carry import carry
from odfpy.engine.watermark import input_watermark
from odfpy.errors import UnsupportedQuery


@dataclass
class TransformAt:
    """A transform as of a metadata block: `InputsAt` whose rows have identifiers.

    Attributes:
        ready: the transform.
        sources: the inputs, with all rows up to that block.
        scratch: a folder for temporary files.
    """

    ready: Stateful
    sources: Sequence[TransformRequestInput]
    scratch: Path
    _fragments: dict[int, Node] = field(default_factory=dict)

    @property
    def catalyst(self) -> Catalyst:
        """The session."""
        return self.ready.catalyst

    @cached_property
    def annotator(self) -> Annotator:
        """The annotator of its plans."""
        return Annotator(self.catalyst)

    @cached_property
    def clock(self) -> Clock:
        """The watermarks of then."""
        known = (input_watermark(source) for source in self.sources)
        return Clock(
            self.catalyst, [None if watermark is None else watermark.millis * MILLISECOND for watermark in known]
        )

    def result(self) -> Node:
        """Return the rows of the result, with its columns and the identifiers."""
        for fragment in self.ready.steps.fragments:
            own_rows = cites_only_begun_versions(self.ready.steps, fragment.source)
            annotator = Annotator(self.catalyst, own_rows=True) if own_rows else self.annotator
            self._fragments[fragment.source] = self._annotated(fragment.info, annotator)
        output = self.ready.steps.output
        return self._annotated(self.ready.steps.last.info) if output is None else self._fragments[output.source]

    def _annotated(self, info: PlanInfo, annotator: Annotator | None = None) -> Node:
        plan = self._over_sources(info.stateless_plan) if info.stateless_plan is not None else self._built(info)
        annotated = (annotator or self.annotator).annotate(plan)
        return self.catalyst.project([*info.columns, self.annotator.ids.of(annotated)], annotated)

    def _built(self, info: PlanInfo) -> Node:
        inputs_at: InputsAt = self
        return info.built(inputs_at)

    # --- InputsAt ---

    def rows(self, stateful_input: StatefulInput) -> Node:
        """Return the rows of a stateful input."""
        inputs = all(number < len(self.sources) for number in sources_read(stateful_input.plan))
        if stateful_input.log is not None:
            if not inputs:
                raise UnsupportedQuery("Rows are not traced through the log of a step")
            plan = self._of_log(stateful_input)
        elif inputs:
            plan = self._of_inputs(stateful_input)
        else:
            below = self.annotator.annotate(self._over_sources(stateful_input.plan))
            plan = self.catalyst.project([*stateful_input.columns, self.annotator.ids.of(below)], below)
        if stateful_input.rules.only_complete:
            plan = self.catalyst.filter(is_complete(stateful_input.rules.complete_when, self.clock), plan)
        return leaf(self.catalyst, stateful_input.columns, plan)

    def groups(self, stateful_input: StatefulInput) -> Groups:
        """Partial results of a stateful input's rows."""
        if stateful_input.groups is None:
            raise TypeError("rows of this stateful input are not groups")
        partials = stateful_input.groups.of_rows(self.rows(stateful_input))
        return Groups(stateful_input.groups.with_group_columns(partials), by_value=False)

    def is_append_only(self, stateful_input: StatefulInput) -> bool:
        """Return whether all rows of a log that there ever were are known to be appended."""
        return all(
            rows is None or rows.is_append_only for rows in map(self._rows_of, sources_read(stateful_input.plan))
        )

    # --- Inputs ---

    @property
    def only_appended(self) -> bool:
        """True if no row of the inputs was ever retracted."""
        return all(rows is None or rows.is_append_only for rows in self._known.values())

    @cached_property
    def _known(self) -> Mapping[int, SourceRows | None]:
        streams = streams_of(self.catalyst, self.sources, self.ready.late, self.scratch)
        return {number: _all(self.catalyst, stream.old(), stream.new()) for number, stream in enumerate(streams)}

    def _rows_of(self, number: int) -> SourceRows | None:
        """Return all rows of an input; those of a fragment are its net result, and so append-only."""
        return self._known.get(number)

    def _of_log(self, stateful_input: StatefulInput) -> Node:
        def over(number: int, plan: Node) -> Node:
            return log_over(self.catalyst, plan, self._rows_of(number))

        delta = carry(self.catalyst, stateful_input.plan, over)
        plan = log_of(self.catalyst, stateful_input, delta.plan, None).plan
        from pyspark.sql import functions

        names = [f"c{at}" for at in range(len(stateful_input.columns) - len(MARKS))]
        frame = self.catalyst.dataframe(self.catalyst.project(stateful_input.columns, plan)).toDF(*names, *MARKS)
        number = identifier(functions.col(LOG_OFFSET), functions.col(LOG_SOURCE))
        return self._named(stateful_input.columns, self.catalyst.plan(frame.withColumn(IDS, functions.array(number))))

    def _of_inputs(self, stateful_input: StatefulInput) -> Node:
        """Return the rows of a stateful input over inputs that its entries amount to."""

        def over(number: int, plan: Node) -> Node:
            return leaf_over(self.catalyst, plan, self._rows_of(number))

        delta = carry(self.catalyst, stateful_input.plan, over)
        limit = Correctable.of(self.catalyst, self.ready.late, self.sources, self.scratch)
        if limit is not None:
            delta = limit.limited(stateful_input, delta)
        return self._net(stateful_input.columns, delta, self.is_append_only(stateful_input))

    def _net(self, wanted: Sequence[Node], delta: Delta, is_append_only: bool) -> Node:
        """Return the net rows of entries: of equal rows, the latest ones remain."""
        from pyspark.sql import functions

        catalyst, column = self.catalyst, functions.col
        marks = {
            carried_column.name(): carried_column
            for carried_column in columns(delta.plan)
            if carried_column.name() in CARRIED
        }
        plan = catalyst.project(
            [*wanted, weight_of(catalyst, marks[CARRIED_OPERATION]), marks[CARRIED_OFFSET], marks[CARRIED_INPUT]],
            delta.plan,
        )
        names = [f"c{at}" for at in range(len(wanted))]
        frame = catalyst.dataframe(plan).toDF(*names, WEIGHT, "offset", "source")
        number = identifier(column("offset"), column("source"))
        if is_append_only:
            return self._named(wanted, catalyst.plan(frame.select(*names, functions.array(number).alias(IDS))))
        gained = functions.when(column(WEIGHT) > 0, number)
        totals = {
            WEIGHT: functions.sum(WEIGHT).cast("int"),
            IDS: functions.sort_array(functions.collect_list(gained)),
        }
        netted = summed_by_row(frame, names, totals)
        last = functions.slice(column(IDS), -column(WEIGHT), column(WEIGHT))
        each = netted.where(column(WEIGHT) > 0).select(*names, functions.explode(last).alias(IDS))
        return self._named(wanted, catalyst.plan(each.withColumn(IDS, functions.array(IDS))))

    def _named(self, wanted: Sequence[Node], plan: Node) -> Node:
        """Return columns under other identities, followed by the identifiers."""
        all_columns = columns(plan)
        named = [
            with_identity_of(self.catalyst, column, target) for column, target in zip(all_columns, wanted, strict=False)
        ]
        return self.annotator.ids.with_ids(named, all_columns[-1], plan)

    # --- Steps before ---

    def _over_sources(self, plan: Node) -> Node:
        """Return a row-by-row part over the net rows of its sources, as leaves with identifiers."""
        number = _source_of(plan)
        if number is None:
            below = [self._over_sources(child) for child in children(plan)]
            return plan.withNewChildren(self.catalyst.seq(below)) if below else plan
        data = [column for column in selected(plan) if not column.name().startswith("__odf_")]
        if number < len(self.sources):
            own = [column.toAttribute() for column in data]
            carried = carry(
                self.catalyst, plan, lambda n, source_leaf: leaf_over(self.catalyst, source_leaf, self._rows_of(n))
            )
            rows = self._rows_of(number)
            return leaf(self.catalyst, own, self._net(own, carried, rows is None or rows.is_append_only))
        return self._over_fragment(plan, data, self._fragments[number])

    def _over_fragment(self, plan: Node, data: Sequence[Node], fragment: Node) -> Node:
        catalyst, ids = self.catalyst, self.annotator.ids
        *data_columns, identifiers = columns(fragment)
        marks = [catalyst.alias(catalyst.integer(0), name) for name in (CARRIED_OFFSET, CARRIED_OPERATION)]
        rows = SourceRows(
            catalyst.project([*data_columns, identifiers, *marks], fragment), is_append_only=True, count=0
        )
        over = leaf_over(catalyst, plan, rows)
        named = selected(over)[: len(data)]
        shown = [column.toAttribute() for column in data]
        return leaf(catalyst, shown, ids.with_ids(named, identifiers, over.child()))


def _all(catalyst: Catalyst, old: SourceRows | None, new: SourceRows | None) -> SourceRows | None:
    """Return all rows of an input."""
    parts = [rows for rows in (old, new) if rows is not None]
    if len(parts) < 2:
        return next(iter(parts), None)
    frame = reduce(lambda left, right: left.union(right), (catalyst.dataframe(rows.plan) for rows in parts))
    plan = renamed(catalyst, catalyst.plan(frame), columns(parts[0].plan))
    return SourceRows(plan, all(rows.is_append_only for rows in parts), sum(rows.count for rows in parts))


def _source_of(plan: Node) -> int | None:
    """Return the number of the source that a plan represents, None if it is none."""
    if operator_name(plan) != "Project":
        return None
    for column in selected(plan):
        if column.name() == CARRIED_INPUT and expression_name(column) == "Alias":
            return number_named(column)
    return None
