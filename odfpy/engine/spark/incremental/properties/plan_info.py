"""What is known of a part of a plan, and of a block: a part that is processed with one set of keys.

A part is *free* as long as it is row by row: then its rows can be made from any rows of its sources, new ones or old
ones. Where an operator looks at several rows at once (an aggregate, a join...), it stands on *gates*: a gate is a free
part whose rows are kept, or found again, between pulls. The operators above the gates are run over the gates' rows as
they were before a pull and as they are after it.

A *key* is a value by which a part falls apart: what rows with one value give does not depend on rows with another.
So it is enough to look at rows whose keys are touched. Rows of other keys do no harm: they give the same before and
after, and cancel out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

from odfpy.engine.spark.analysis.partial_aggregate import PartialAggregate
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, column_id, expression_name
from odfpy.engine.spark.plan.storable_types import can_be_key
from odfpy.engine.spark.plan.times import Clock, Times

if TYPE_CHECKING:
    from odfpy.engine.spark.incremental.state.groups import Groups


@dataclass(frozen=True, slots=True)
class Trait:
    """Something that an operator needs, as `odf inspect query` says it.

    Attributes:
        name: class of query, for example `event-time window`.
        reason: what in the query makes it so.
        state: what is kept between pulls.
    """

    name: str
    reason: str
    state: str


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """A column that has the times of rows, or the windows that they fall into.

    Attributes:
        watermark: no row with a time at or before it comes later.
        windows: where the column is a window of that time, the expressions that make it.
        reads: the time that these read.
        is_session: whether the window grows with the rows that fall into it.
    """

    watermark: Times
    windows: tuple[Node, ...] = ()
    reads: Node | None = None
    is_session: bool = False


@dataclass(frozen=True, slots=True)
class Due:
    """When rows of a gate are settled: as soon as `value` is at or before (or only before) the limit.

    Attributes:
        value: an expression over the gate's columns.
        limit: moves with the watermarks.
        inclusive: whether a value at the limit is settled.
    """

    value: Node
    limit: Times
    inclusive: bool

    def condition(self, clock: Clock) -> Node:
        """Whether a row is settled, as an expression; FALSE as long as the limit is not known."""
        catalyst, limit = clock.catalyst, self.limit.at(clock)
        if limit is None:
            return catalyst.boolean(False)
        name = "LessThanOrEqual" if self.inclusive else "LessThan"
        return catalyst.expression(name, self.value, catalyst.time(limit, self.value.dataType()))


class Retention(Enum):
    """Which rows of a gate are kept between pulls."""

    NOTHING = "nothing: they are read again from the history of the inputs"
    OPEN = "those that can still matter"
    GROUPS = "what their groups are remembered by"
    BEST = "those that can still matter as long as nothing is taken back"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class LookedUp:
    """How rows of a gate are found by rows of another one, without which they give nothing.

    Attributes:
        by: number of the other gate, whose rows wait.
        condition: which rows belong together, an expression over the columns of both.
        valid: from when and until when a row is valid, where a change of it counts only for the time in which it makes
            a difference; None where every change counts for as long as the row is valid.
    """

    by: int
    condition: Node
    valid: tuple[Node, Node] | None


Best = Callable[[Node, Clock], Node]


@dataclass(frozen=True, slots=True)
class Gate:
    """A free part on which an operator of another kind stands.

    Attributes:
        number: position among the gates of its block.
        plan: the free part.
        columns: its output.
        keys: expressions over its columns, by which what stands on it falls apart.
        due: when its rows are settled, as far as that matters.
        waits: whether rows are let through only when they are settled; else settling only changes what they give.
        retention: which rows are kept.
        forget: when rows are kept no more.
        late: changes that come when this holds may have to do with rows that are kept no more.
        session: where rows are kept by the sessions they belong to, start and end of a session of a single row.
        looked_up: where rows of another gate look up those of this one.
        log: the event time, where the rows are those of the changelog, and not those that the changelog stands for;
            its last columns are then those of `odfpy.engine.spark.incremental.state.log`.
        groups: where not rows are kept but partial results of groups; `keys` are what it groups by.
        best: of a plan with its columns, the rows that are looked at if no row is taken away or late, under these
            columns.
    """

    number: int
    plan: Node
    columns: tuple[Node, ...]
    keys: tuple[Node, ...]
    due: tuple[Due, ...] = ()
    waits: bool = False
    retention: Retention = Retention.NOTHING
    forget: tuple[Due, ...] = ()
    late: tuple[Due, ...] = ()
    session: tuple[Node, Node] | None = None
    looked_up: LookedUp | None = None
    log: Node | None = None
    groups: PartialAggregate | None = None
    best: Best | None = None


@dataclass(frozen=True, slots=True)
class Values:
    """Columns and expressions of a part that have one value.

    Attributes:
        columns: ids of output columns.
        expressions: others, over output columns.
    """

    columns: frozenset[int] = frozenset()
    expressions: tuple[Node, ...] = ()

    @classmethod
    def of(cls, found: Iterable[Node]) -> Values:
        """Some columns and expressions."""
        named = [(expression_name(one) == "AttributeReference", one) for one in found]
        columns = frozenset(column_id(one) for is_column, one in named if is_column)
        return cls(columns, tuple(one for is_column, one in named if not is_column))

    def has(self, expression: Node) -> bool:
        """Tell whether an expression is one of them."""
        if expression_name(expression) == "AttributeReference":
            return column_id(expression) in self.columns
        return any(one.semanticEquals(expression) for one in self.expressions)

    def __or__(self, other: Values) -> Values:
        """All of these and of others."""
        return Values(self.columns | other.columns, self.expressions + other.expressions)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a part.

    Each row of the result is made of rows of gates that have its key. What an operator says of `shown` and of `or_null`
    holds for the rows that it makes itself, too: an outer join makes rows whose columns of one side are NULL, whatever
    the key.

    Attributes:
        at: which of its keys it is at each gate, by number of the gate; gates that are looked up may lack it.
        shown: what has its value in all rows.
        or_null: what has its value in some rows, and is NULL in all others.
    """

    at: Mapping[int, int]
    shown: Values = field(default_factory=Values)
    or_null: Values = field(default_factory=Values)


@dataclass(frozen=True, slots=True)
class Validity:
    """A column that says from when or until when a row of a temporal table is valid.

    Attributes:
        is_end: whether it is the end.
        watermark: no version begins or ends at or before it later.
    """

    is_end: bool
    watermark: Times


class Moment(Protocol):
    """The rows of gates and the watermarks, before a pull or after it."""

    @property
    def clock(self) -> Clock:
        """The watermarks."""
        ...

    def rows(self, gate: Gate) -> Node:
        """The rows of a gate, with its columns (of which unused ones may be missing)."""
        ...

    def groups(self, gate: Gate) -> Groups:
        """The partial results of a gate that has them."""
        ...

    def only_grew(self, gate: Gate) -> bool:
        """Whether all rows of a log that there ever were are known to be appended."""
        ...


Build = Callable[[Any], Node]
"""Makes a plan for a `Moment`."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is known of a part of a plan.

    Attributes:
        columns: its output.
        free: the plan itself, while it is row by row.
        build: makes the plan for a moment; of no use while the part is free.
        product: `build` itself, where each row of the result is made of one row of every gate; else anything.
        keys: keys it falls apart by, once it is not free.
        gates: what it stands on.
        times: columns that have times, by id.
        unique: ids of columns by which a row is known among all others, or None.
        traits: what its operators need, from the sources up.
        validity: columns of a temporal table that say when its rows are valid, by id, while the part is free.
    """

    columns: tuple[Node, ...]
    free: Node | None = None
    build: Build | None = None
    product: Build | None = None
    keys: tuple[Key, ...] = ()
    gates: tuple[Gate, ...] = ()
    times: Mapping[int, TimeColumn] = field(default_factory=dict)
    unique: frozenset[int] | None = None
    traits: tuple[Trait, ...] = ()
    validity: Mapping[int, Validity] = field(default_factory=dict)

    @property
    def is_constant(self) -> bool:
        """Whether the part reads no source: its rows are the same at all moments."""
        return self.free is None and not self.gates

    @property
    def is_product(self) -> bool:
        """Whether each row of the result is made of one row of every gate, so that new rows only add to it."""
        return self.product is not None and self.product is self.build

    def over(self, build: Build, **changes: Any) -> Part:
        """The part with another plan, which makes rows of single rows; changes are attributes."""
        return replace(self, build=build, product=build if self.is_product else None, **changes)

    def built(self, moment: Moment | None) -> Node:
        """The plan for a moment; that of a constant part is the same without any."""
        if self.build is None:
            return self.free
        return self.build(moment)


@dataclass(frozen=True, slots=True)
class Block:
    """A part that is processed by itself, and whose changes are a source of later blocks.

    Attributes:
        source: number of the source that its changes are.
        part: the part; never free.
        keys: for each gate, the expressions by which its rows are found, None for a key that it lacks; empty where
            everything is touched.
        alias: name of the step that it is, None for a part of one.
    """

    source: int
    part: Part
    keys: Mapping[int, tuple[Node | None, ...]]
    alias: str | None = None


def constant(outputs: tuple[Node, ...], plan: Node) -> Part:
    """What is known of a plan that reads no source. One row without columns is known by none."""

    def build(_: Moment | None) -> Node:
        return plan

    return Part(outputs, build=build, product=build, unique=None if outputs else frozenset())


def settled(dues: Sequence[Due], clock: Clock) -> Node:
    """Whether a row is settled by any of several rules."""
    return any_of(clock.catalyst, [due.condition(clock) for due in dues])


def settles(dues: Sequence[Due], was: Clock, now: Clock) -> Node:
    """Whether a row is settled now and was not then."""
    catalyst = now.catalyst
    return catalyst.expression("And", settled(dues, now), catalyst.expression("Not", settled(dues, was)))


def any_of(catalyst: Catalyst, conditions: Sequence[Node]) -> Node:
    """Whether one of several conditions holds."""
    return reduce(lambda one, other: catalyst.expression("Or", one, other), conditions)


def rows_of(gate: Gate, moment: Moment) -> Node:
    """The plan of a part that is a gate."""
    return moment.rows(gate)


def block_of(part: Part, source: int, alias: str | None = None) -> Block:
    """The block of a part, looked up by all keys that the part has, and that rows can be looked up by."""
    keys = {
        gate.number: tuple(_key_at(key, gate) for key in part.keys if _is_of_use(key, part.gates))
        for gate in part.gates
    }
    return Block(source, part, keys, alias)


def _key_at(key: Key, gate: Gate) -> Node | None:
    return gate.keys[key.at[gate.number]] if gate.number in key.at else None


def _is_of_use(key: Key, gates: Sequence[Gate]) -> bool:
    """Whether rows can be looked up by a key; without it, more rows than needed are looked at."""
    return all(can_be_key(found) for gate in gates if (found := _key_at(key, gate)) is not None)
