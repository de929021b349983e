"""One pull of a fragment (docs/adr/0013-incremental-engine.md, "One pull of a fragment").

1. Find the affected keys: the keys of new rows, and of rows that become complete because a watermark has advanced.
2. Run the fragment over the rows of these keys as of before the pull, with the watermarks of that time.
3. Run the fragment over the rows of these keys as of after the pull, with the current watermarks.
4. Emit the difference of the two results, and store the rows that later pulls may need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from odfpy.engine.checkpoint import CheckpointFile, CheckpointRows
from odfpy.engine.spark.incremental.properties.plan_info import Fragment, Groups, Lookup, StatefulInput
from odfpy.engine.spark.incremental.properties.row_rules import becomes_complete, is_complete
from odfpy.engine.spark.incremental.state.arranged import ArrangedInputs
from odfpy.engine.spark.incremental.state.changes import Changes, multiset, no_rows, union_changes
from odfpy.engine.spark.incremental.state.difference import by_position, difference
from odfpy.engine.spark.incremental.state.pull import Pull
from odfpy.engine.spark.incremental.state.ranges import Range, of_partners, range_of, within
from odfpy.engine.spark.incremental.state.stateful_inputs import StatefulRows
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns
from odfpy.engine.spark.plan.step import CARRIED_OFFSET, CARRIED_OPERATION
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.rows.batches import write_parquet
from odfpy.engine.spark.rows.parallelism import gather, is_gathered
from odfpy.engine.spark.rows.stored import Stored
from odfpy.stages import stage


class FragmentRun:
    """The processing of one fragment in one pull: computes its changes and stores the state for the next pull."""

    def __init__(self, pull: Pull, fragment: Fragment) -> None:
        self.pull = pull
        self.fragment = fragment
        self.rows = StatefulRows(pull, fragment)
        self.arranged = ArrangedInputs(fragment, self.rows)

    def changes(self) -> Node:
        """Return the changes that the fragment emits: columns `c0`, `c1`... of its plan, and a weight."""
        # Four strategies, the cheapest first; all emit the same rows:
        # 1. No earlier result can change: emit the rows that become complete.
        # 2. Nothing is new: emit nothing.
        # 3. A join product only grows: emit the matches of the new rows.
        # 4. Compare the results over the affected keys before and after the pull.
        if self._emits_only_complete_rows():
            return self._result(_InputsAt(self, self.pull.after, None, is_after=True, only_newly_complete=True))
        if self._has_no_changes():
            wanted = self.fragment.info.columns
            return by_position(self.pull.catalyst, wanted, no_rows(self.pull.catalyst, wanted))
        gained = self._join_additions()
        if gained is not None:
            return gained
        for stateful_input in self.fragment.info.stateful_inputs:
            # Before any job runs: it may turn out that history is needed.
            if stateful_input.is_read_again and not self.arranged.are_arranged(stateful_input):
                self.rows.old(stateful_input)
        with stage("affected keys"):
            affected = self._affected_keys()
        after = self._result(_InputsAt(self, self.pull.after, affected, is_after=True))
        before = self._result(_InputsAt(self, self.pull.before, affected, is_after=False))
        return difference(self.pull.catalyst, before, after)

    def before(self) -> Node | None:
        """Return the result before the pull: its columns, the offset 0 and the operation `+A`; None if there was none.

        Raises:
            HistoryNeeded: it has to be computed from the history of the inputs, which the request lacks.
        """
        if self.pull.is_first:
            return None
        catalyst = self.pull.catalyst
        plan = self._result(_InputsAt(self, self.pull.before, None, is_after=False, in_full=True))
        offset = Builder(catalyst).cast(catalyst.integer(0), "bigint")  # like those of inputs, for a UNION
        marks = [catalyst.alias(offset, CARRIED_OFFSET), catalyst.alias(catalyst.integer(0), CARRIED_OPERATION)]
        return catalyst.project([*columns(plan), *marks], plan)

    def store_state(self) -> CheckpointRows:
        """Store the rows and partial aggregates that the next pull may need."""
        stored = CheckpointRows()
        for stateful_input in self.fragment.info.stateful_inputs:
            self.arranged.update(stateful_input)
            if stateful_input.groups is not None:
                stored.update(self.rows.groups(stateful_input).store_state())
                continue
            extended = self.arranged.extend_stored_rows(stateful_input)
            stored.update(extended if extended is not None else self._store_rows(stateful_input))
        return stored

    def _store_rows(self, stateful_input: StatefulInput) -> CheckpointRows:
        """Store the rows of a stateful input, in the arrangement or in files of the checkpoint."""
        stored = CheckpointRows()
        state = self.rows.next_state(stateful_input)
        if state is None:
            return stored
        stored.files.update({rows.name: (path, rows) for path, rows in state.files})
        plan = state.in_few_partitions(self.pull.catalyst)
        if plan is not None:
            file = self.pull.scratch / f"keep-{state.new_name}"
            if count := write_parquet(file, self.pull.catalyst.dataframe(plan)):
                stored.files[state.new_name] = file, CheckpointFile(state.new_name, state.is_append_only, count)
        return self.arranged.arrange(stateful_input, [*stored.files.values()]) or stored

    def _emits_only_complete_rows(self) -> bool:
        """Return whether no earlier result can change, so that only rows that are complete now are emitted."""
        stateful_inputs = self.fragment.info.stateful_inputs
        if not stateful_inputs or self.pull.is_first:
            return self.pull.is_first  # constants are emitted once
        # Versions that facts look up change no earlier result either: if they concern facts that have been emitted,
        # they are late, and need history.
        return (
            all(
                self._only_adds_results(stateful_input) or stateful_input.looked_up is not None
                for stateful_input in stateful_inputs
            )
            and not self.rows.needs_history()
        )

    def _only_adds_results(self, stateful_input: StatefulInput) -> bool:
        """Return whether the new rows of a stateful input cannot change results that have been emitted."""
        return stateful_input.rules.only_complete and (
            stateful_input.groups is None or self.rows.on_time(stateful_input)
        )

    def _has_no_changes(self) -> bool:
        """Return whether nothing is new and nothing becomes complete: then only a watermark has advanced."""
        stateful_inputs = self.fragment.info.stateful_inputs
        return all(
            self.rows.new(stateful_input) is None and not stateful_input.rules.complete_when
            for stateful_input in stateful_inputs
        )

    def _join_additions(self) -> Node | None:
        """Return what new rows add to a join product of the stateful inputs; None if results may also be retracted."""
        stateful_inputs = self.fragment.info.stateful_inputs
        if not self.fragment.info.is_join_product or any(
            stateful_input.rules.only_complete or stateful_input.rules.complete_when
            for stateful_input in stateful_inputs
        ):
            return None
        if not all(map(self._is_append_only, stateful_inputs)):
            return None
        # Without an arrangement, all earlier rows are read anyway.
        affected = self._affected_keys() if any(map(self.arranged.are_arranged, stateful_inputs)) else None
        additions = [
            self._result(_InputsAt(self, self.pull.after, affected, is_after=True, added=stateful_input.number))
            for stateful_input in stateful_inputs
            if self.rows.new(stateful_input) is not None
        ]
        return self.pull.catalyst.all_of(additions) if additions else None

    def _is_append_only(self, stateful_input: StatefulInput) -> bool:
        """Return whether all rows of a stateful input, earlier and new, are known to be appended."""
        arranged, new = self.arranged.known(stateful_input), self.rows.new(stateful_input)
        if arranged is not None:
            before = arranged.only_appends
        else:
            old = self.rows.old(stateful_input)
            before = old is None or old.is_append_only
        return before and (new is None or new.is_append_only)

    def _result(self, inputs_at: _InputsAt) -> Node:
        info = self.fragment.info
        return by_position(self.pull.catalyst, info.columns, info.built(inputs_at))

    def old(self, stateful_input: StatefulInput, affected: _AffectedKeys | None) -> Changes | None:
        """Return the earlier rows of a stateful input that can matter for the affected keys, and perhaps others.

        Args:
            stateful_input: the stateful input.
            affected: the affected keys, None for all keys.

        Raises:
            HistoryNeeded: they have to be read from the history of the inputs.
        """
        looked_up = self.arranged.old(stateful_input, affected.stored if affected is not None else None)
        return looked_up or self.rows.old(stateful_input)

    def multiset(self, stateful_input: StatefulInput, parts: Sequence[Changes]) -> Node:
        """Return the current rows of a stateful input, given its changes, with its columns."""
        catalyst = self.pull.catalyst
        if parts:
            return multiset(catalyst, union_changes(catalyst, parts), stateful_input.columns)
        return no_rows(catalyst, stateful_input.columns)

    # --- Keys ---

    def _affected_keys(self) -> _AffectedKeys | None:
        """Return the keys that this pull affects; None stands for all keys.

        All keys are affected if the fragment has no keys, or if the stateful inputs that have keys have neither new nor
        stored rows. Processing too many keys is never wrong: a pull emits the difference of two results, in which
        unaffected keys cancel out. Keys only tell which rows need not be read.
        """
        if not any(self.fragment.keys.values()):
            return None
        for stateful_input in self.fragment.info.stateful_inputs:
            self.rows.compute_new(stateful_input)  # both keys and results are computed from them
        parts = [
            keys
            for stateful_input in self.fragment.info.stateful_inputs
            for keys in self._affected_keys_of(stateful_input)
        ]
        if not parts:
            return None
        catalyst = self.pull.catalyst
        keys = catalyst.distinct(gather(catalyst, catalyst.all_of(parts)))
        if all(stateful_input.groups is not None for stateful_input in self.fragment.info.stateful_inputs):
            return _AffectedKeys(keys)  # these plans only read files: computing them twice is cheap
        # Both results read the keys: as a plan, they would be computed twice.
        path, count = self.pull.scratch / f"touched-{self.fragment.source}.parquet", len(columns(keys))
        stored = Stored(catalyst, catalyst.dataframe(self.arranged.with_hashes(keys)), path)
        return _AffectedKeys(catalyst.project(columns(stored.plan)[:count], stored.plan), stored)

    def _affected_keys_of(self, stateful_input: StatefulInput) -> list[Node]:
        """Return plans of the keys that the rows of a stateful input affect."""
        pull, rules = self.pull, stateful_input.rules
        if stateful_input.groups is not None:
            return self._affected_groups(stateful_input)
        keys = []
        new = self.rows.effective_changes(stateful_input)
        if (
            new is not None
            and stateful_input.looked_up is not None
            and None in self.fragment.keys[stateful_input.number]
        ):
            keys += self._keys_looking_up(stateful_input.looked_up, new)
        elif new is not None:
            # Rows that are not complete yet emit nothing: their keys are affected when they become complete.
            condition = is_complete(rules.complete_when, pull.after) if rules.only_complete else None
            keys.append(self._keys(stateful_input, new.plan, condition))
        if rules.complete_when:
            closes = becomes_complete(rules.complete_when, pull.before, pull.after)
            old = self.rows.old(stateful_input)
            keys += [self._keys(stateful_input, rows.plan, closes) for rows in (old, new) if rows is not None]
        return keys

    def _affected_groups(self, stateful_input: StatefulInput) -> list[Node]:
        """Return plans of the keys of groups with new rows, and of groups that become complete."""
        groups, (was, now) = self.rows.groups(stateful_input), (self.pull.before, self.pull.after)
        keys = []
        for plan, is_new in ((groups.old, False), (groups.new, True)):
            if plan is None or not (is_new or stateful_input.rules.complete_when):
                continue
            rows = groups.complete(plan, now, None if is_new else was) if stateful_input.rules.complete_when else plan
            keys.append(self._keys(stateful_input, rows, over=groups.over_groups))
        return keys

    def _keys_looking_up(self, looked_up: Lookup, changed: Changes) -> list[Node]:
        """Return the keys of the rows that look up a changed version."""
        catalyst = self.pull.catalyst
        stateful_input = next(
            candidate for candidate in self.fragment.info.stateful_inputs if candidate.number == looked_up.by
        )
        waiting = [rows for rows in (self.rows.old(stateful_input), self.rows.new(stateful_input)) if rows is not None]
        plans = [
            catalyst.semi_join(
                self._in_ranges_of_partners(rows.plan, changed.plan, looked_up), changed.plan, looked_up.condition
            )
            for rows in waiting
        ]
        return [
            self._keys(stateful_input, plan, is_complete(stateful_input.rules.complete_when, self.pull.after))
            for plan in plans
        ]

    def _in_ranges_of_partners(self, rows: Node, changed: Node, looked_up: Lookup) -> Node:
        """Restrict rows to the value ranges that their partners allow, if it pays to compute these ranges."""
        catalyst = self.pull.catalyst
        if is_gathered(catalyst.spark):
            return rows
        return within(catalyst, rows, of_partners(catalyst, rows, changed, looked_up.condition))

    def _keys(
        self,
        stateful_input: StatefulInput,
        rows: Node,
        condition: Node | None = None,
        over: Callable[[Node], Node] = lambda key: key,
    ) -> Node:
        """Return the keys of rows as columns `k0`, `k1`...; `over` translates keys to the columns of the plan."""
        catalyst = self.pull.catalyst
        plan = rows if condition is None else catalyst.filter(condition, rows)
        keys = [catalyst.alias(over(key), f"k{at}") for at, key in enumerate(self.fragment.keys[stateful_input.number])]
        return catalyst.project(keys, plan)


@dataclass(frozen=True)
class _AffectedKeys:
    """The keys that a pull affects.

    Attributes:
        plan: a column for each key, `k0`, `k1`...
        stored: the materialized keys, with their hashes; None if they are not materialized.
    """

    plan: Node
    stored: Stored | None = None

    @cached_property
    def ranges(self) -> list[Range | None]:
        """Return the range of values of each key, None where it has none; nothing if the keys are not stored."""
        if self.stored is None:
            return []
        return [range_of(self.stored.column(f"k{at}")) for at in range(len(columns(self.plan)))]


@dataclass(frozen=True, slots=True)
class _InputsAt:
    """The rows of the stateful inputs of a fragment before or after a pull; implements `InputsAt`.

    Attributes:
        run: the run of the fragment.
        clock: the watermarks at that moment.
        affected: the keys whose rows are read, None for all keys.
        is_after: whether the moment is after the pull.
        in_full: whether all rows are read from history, also those that are no longer stored.
        only_newly_complete: whether groups that were complete before the pull are left out.
        added: number of a stateful input that is restricted to its new rows, while those after it are restricted to old
            rows: over all stateful inputs, each combination with a new row occurs once.
    """

    run: FragmentRun
    clock: Clock
    affected: _AffectedKeys | None
    is_after: bool
    in_full: bool = False
    only_newly_complete: bool = False
    added: int | None = None

    def groups(self, stateful_input: StatefulInput) -> Groups:
        """Return the partial aggregates of a stateful input."""
        groups = self.run.rows.groups(stateful_input)
        plan = groups.after if self.is_after else groups.all_groups_before if self.in_full else groups.old
        if plan is None:
            return groups.of(None)
        if stateful_input.rules.only_complete:
            # In the first pull, groups may already be behind the watermark: they become complete now, too.
            leaves_out = self.only_newly_complete and not self.run.pull.is_first
            plan = groups.complete(plan, self.clock, self.run.pull.before if leaves_out else None)
        keys = self.run.fragment.keys[stateful_input.number]
        return groups.of(self._of_affected_keys([key and groups.over_groups(key) for key in keys], plan))

    def is_append_only(self, stateful_input: StatefulInput) -> bool:
        """Return whether all rows that a log has ever had are known to be appended."""
        return self.run.rows.is_append_only(stateful_input)

    def rows(self, stateful_input: StatefulInput) -> Node:
        """Return the rows of a stateful input, with its columns."""
        rows, catalyst = self.run.rows, self.run.pull.catalyst
        number = stateful_input.number
        has_old = self.added is None or number != self.added
        has_new = self.is_after and (self.added is None or number <= self.added)
        old = None
        if has_old:
            old = rows.history(stateful_input) if self.in_full else self.run.old(stateful_input, self.affected)
        new = rows.new(stateful_input) if has_new else None
        parts = [rows for rows in (old, new) if rows is not None]
        return self.run.multiset(
            stateful_input,
            [Changes(self._limited(catalyst, stateful_input, rows.plan), rows.is_append_only) for rows in parts],
        )

    def _limited(self, catalyst: Catalyst, stateful_input: StatefulInput, plan: Node) -> Node:
        """Restrict rows to complete ones, if only these count, and to the affected keys."""
        if stateful_input.rules.only_complete:
            plan = catalyst.filter(is_complete(stateful_input.rules.complete_when, self.clock), plan)
        return self._of_affected_keys(self.run.fragment.keys[stateful_input.number], plan)

    def _of_affected_keys(self, keys: Sequence[Node | None], plan: Node) -> Node:
        """Restrict rows to the affected keys."""
        catalyst = self.run.pull.catalyst
        if self.affected is None:
            return plan
        pairs = zip(keys, columns(self.affected.plan), strict=True) if keys else ()
        # NULL is a key like any other: rows without a key value form a group of their own.
        same = [catalyst.expression("EqualNullSafe", key, affected) for key, affected in pairs if key is not None]
        # A stateful input that lacks the key is read in full: surplus rows cancel out in the difference, missing ones
        # would not.
        if not same:
            return plan
        condition = reduce(lambda left, right: catalyst.expression("And", left, right), same)
        are_few = is_gathered(catalyst.spark)
        if not are_few:
            ranges = zip(keys, self.affected.ranges, strict=False)
            plan = within(catalyst, plan, [(key, limits) for key, limits in ranges if key is not None and limits])
        return catalyst.semi_join(plan, self.affected.plan, condition, few=are_few)
