"""The rules of a metadata chain, as pure functions over values (ODF specification, "Metadata Chain").

The same rules apply when a block is appended and when a chain from elsewhere is verified. Each has its own error:

    SeedMustBeFirst          the first block is a Seed, and no other is
    SequenceBroken           sequence numbers start at 0 and grow by one
    PreviousBlockMismatch    a block names the block before it
    SystemTimeWentBack       system time never goes back; equal is fine
    WatermarkWentBack        a watermark never goes back, nor from set to unset
    OffsetsNotSequential     rows start where the last slice ended, and end no earlier than they start
    PrevOffsetMismatch       `prevOffset` is the last row so far, carried through blocks without data
    PrevCheckpointMismatch   `prevCheckpoint` is the checkpoint of the last event of the same kind
    NoOpEvent                data events, push sources and schemas change something
    SchemaMissing            the schema is recorded before the first rows
    SchemaEvolutionViolation the schema changes only in allowed ways
    WrongKindOfDataset       sources and AddData belong to root datasets, transforms to derivative ones
    TransformMissing         ExecuteTransform follows a SetTransform
    TransformInputsMismatch  the inputs of a run are those of the transform, in order
    InputIntervalBroken      each input continues where the last run ended
    InvalidTransformInputs   a transform has inputs, each once, with id and alias
    TransformNotNormalized   `query` unset, `queries` not empty, all but the last with an alias
    SourcesExclude           polling and push sources exclude each other until disabled
    SourceUnknown            only an active source can be disabled
    SourceIncomplete         a source of Ethereum logs names its chain
    AmbiguousReadSchema      a read step has `schema` or `ddlSchema`, not both
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Final

from odfpy.chain.block import HashedBlock, MetadataBlock
from odfpy.chain.events import (
    AddData,
    AddPushSource,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    ExecuteTransformInput,
    MetadataEvent,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
)
from odfpy.chain.sources import FetchEthereumLogs
from odfpy.chain.state import ChainState
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.evolution import check_evolution, is_equivalent
from odfpy.data.schemas.raw_arrow import check_upgrade, read_raw_arrow
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.transform import TransformSql
from odfpy.errors import ChainRuleViolation, SchemaError

_LAST_OFFSET: Final = (1 << 63) - 2
"""The maximum offset: a state has the next one, as a signed number."""


class SeedMustBeFirst(ChainRuleViolation, code="E301"):
    """The first block is a Seed, and no other is."""


class SequenceBroken(ChainRuleViolation, code="E302"):
    """Sequence numbers start at 0 and grow by one."""


class PreviousBlockMismatch(ChainRuleViolation, code="E303"):
    """A block contains the hash of the previous block."""


class SystemTimeWentBack(ChainRuleViolation, code="E304"):
    """System time never goes back."""


class WatermarkWentBack(ChainRuleViolation, code="E305"):
    """A watermark never goes back, nor from set to unset."""


class OffsetsNotSequential(ChainRuleViolation, code="E306"):
    """Rows start where the last slice ended, and end no earlier than they start."""


class PrevOffsetMismatch(ChainRuleViolation, code="E307"):
    """`prevOffset` is the last row so far."""


class PrevCheckpointMismatch(ChainRuleViolation, code="E308"):
    """`prevCheckpoint` is the checkpoint of the last event of the same kind."""


class NoOpEvent(ChainRuleViolation, code="E309"):
    """Data events, push sources and schemas change something."""


class SchemaMissing(ChainRuleViolation, code="E310"):
    """The schema is recorded before the first rows."""


class SchemaEvolutionViolation(ChainRuleViolation, code="E311"):
    """The schema changes only in allowed ways."""


class WrongKindOfDataset(ChainRuleViolation, code="E312"):
    """Sources and AddData belong to root datasets, transforms to derivative ones."""


class TransformMissing(ChainRuleViolation, code="E313"):
    """ExecuteTransform follows a SetTransform."""


class TransformInputsMismatch(ChainRuleViolation, code="E314"):
    """The inputs of a run are those of the transform, in order."""


class InputIntervalBroken(ChainRuleViolation, code="E315"):
    """Each input continues where the last run ended."""


class InvalidTransformInputs(ChainRuleViolation, code="E316"):
    """A transform has inputs, each once, with id and alias."""


class TransformNotNormalized(ChainRuleViolation, code="E317"):
    """`query` unset, `queries` not empty, all but the last with an alias."""


class SourcesExclude(ChainRuleViolation, code="E318"):
    """Polling and push sources exclude each other until disabled."""


class SourceUnknown(ChainRuleViolation, code="E319"):
    """Only an active source can be disabled."""


class SourceIncomplete(ChainRuleViolation, code="E320"):
    """A source of Ethereum logs names its chain."""


class AmbiguousReadSchema(ChainRuleViolation, code="E321"):
    """A read step has `schema` or `ddlSchema`, not both."""


def state_after(state: ChainState, hashed: HashedBlock) -> ChainState:
    """Return the state after one more block, if the block may follow.

    Raises:
        ChainRuleViolation: the subclass identifies the violated rule, the message has position and reason.
    """
    try:
        for rule in _BLOCK_RULES:
            rule(state, hashed.block)
        _check_event(hashed.block.event, state)
    except ChainRuleViolation as error:
        number, kind = hashed.block.sequence_number, type(hashed.block.event).__name__
        raise error.with_context(f"Block {number} ({kind}, {hashed.hash})") from error
    return state.after(hashed)


def repeats(event: MetadataEvent, state: ChainState) -> bool:
    """Return whether an event would change nothing.

    No rule forbids this for descriptions, transforms and polling sources, and other implementations write such blocks;
    odfpy does not.
    """
    in_force = (
        state.info,
        state.license,
        state.attachments,
        state.set_vocab,
        state.set_transform,
        state.polling_source,
    )
    return event in in_force


# --- Rules of every block --------------------------------------------------------------------------------------------


def _seed_is_first(state: ChainState, block: MetadataBlock) -> None:
    is_seed = isinstance(block.event, Seed)
    if state.head is None and not is_seed:
        raise SeedMustBeFirst("the first block of a chain must be a Seed")
    if state.head is not None and is_seed:
        raise SeedMustBeFirst("a Seed cannot follow other blocks")


def _previous_is_head(state: ChainState, block: MetadataBlock) -> None:
    if block.prev_block_hash != state.head:
        raise PreviousBlockMismatch(f"the block before it is {state.head}, but it names {block.prev_block_hash}")


def _sequence_is_unbroken(state: ChainState, block: MetadataBlock) -> None:
    if block.sequence_number != state.sequence_number + 1:
        raise SequenceBroken(f"its number must be {state.sequence_number + 1}")


def _system_time_is_monotonic(state: ChainState, block: MetadataBlock) -> None:
    # Not `<=`: all blocks of a commit have the same time.
    if state.system_time is not None and block.system_time < state.system_time:
        raise SystemTimeWentBack(f"its system time {block.system_time} is before {state.system_time}")


_BLOCK_RULES: tuple[Callable[[ChainState, MetadataBlock], None], ...] = (
    _seed_is_first,
    _previous_is_head,
    _sequence_is_unbroken,
    _system_time_is_monotonic,
)


# --- Rules of each event ---------------------------------------------------------------------------------------------


@singledispatch
def _check_event(event: MetadataEvent, state: ChainState) -> None:
    """Check the rules of one kind of event."""


@_check_event.register
def _(event: AddData, state: ChainState) -> None:
    _require_kind(state, DatasetKind.ROOT, "AddData")
    _check_data_event(event, state)
    before = state.last_data_event
    source_state = before.new_source_state if isinstance(before, AddData) else None
    is_empty = _has_nothing_new(event) and event.new_source_state is None
    if is_empty or (event.new_source_state == source_state and not _advances(event, state)):
        raise NoOpEvent("it has no data, and changes neither checkpoint, watermark nor source state")


@_check_event.register
def _(event: ExecuteTransform, state: ChainState) -> None:
    _require_kind(state, DatasetKind.DERIVATIVE, "ExecuteTransform")
    if state.set_transform is None:
        raise TransformMissing("there is no SetTransform before it")
    _check_inputs(event, state)
    _check_data_event(event, state)
    inputs_stay = all(item.new_block_hash is None for item in event.query_inputs)
    if _has_nothing_new(event) or (inputs_stay and not _advances(event, state)):
        raise NoOpEvent("it has no data, and changes neither checkpoint, watermark nor inputs")


@_check_event.register
def _(event: SetDataSchema, state: ChainState) -> None:
    if event.schema is None and event.raw_arrow_schema is None:
        raise SchemaMissing("it has no schema")
    try:
        _check_schema(state.set_schema, event)
    except SchemaError as error:
        raise SchemaEvolutionViolation(error.message, hint=error.hint) from error


def _check_schema(recorded: SetDataSchema | None, event: SetDataSchema) -> None:
    new = event.schema or read_raw_arrow(event.raw_arrow_schema or b"")
    if recorded is None:
        return
    if recorded.schema is None or event.schema is None:
        check_upgrade(recorded.schema or read_raw_arrow(recorded.raw_arrow_schema or b""), new)
        return
    if is_equivalent(recorded.schema, new):
        raise NoOpEvent("the schema is the same as before")
    check_evolution(recorded.schema, new)


@_check_event.register
def _(event: SetTransform, state: ChainState) -> None:
    _require_kind(state, DatasetKind.DERIVATIVE, "SetTransform")
    if not event.inputs:
        raise InvalidTransformInputs("a transform needs at least one input")
    seen: set[DatasetId] = set()
    for item in event.inputs:
        if not isinstance(item.dataset_ref, DatasetId) or item.alias is None:
            raise InvalidTransformInputs(f"the input {item.dataset_ref} must be given by id and with an alias")
        if item.dataset_ref in seen:
            raise InvalidTransformInputs(f"the input {item.dataset_ref} occurs twice")
        seen.add(item.dataset_ref)
    _check_normalized(event.transform)


@_check_event.register
def _(event: SetPollingSource, state: ChainState) -> None:
    _require_kind(state, DatasetKind.ROOT, "SetPollingSource")
    if state.push_sources:
        names = ", ".join(source.source_name for source in state.push_sources)
        raise SourcesExclude(f"a polling source cannot be set while push sources are active: {names}")
    _check_source(event)
    if isinstance(event.fetch, FetchEthereumLogs) and event.fetch.chain_id is None and event.fetch.node_url is None:
        raise SourceIncomplete("its fetch step has neither `chainId` nor `nodeUrl`")


@_check_event.register
def _(event: AddPushSource, state: ChainState) -> None:
    _require_kind(state, DatasetKind.ROOT, "AddPushSource")
    if state.polling_source is not None:
        raise SourcesExclude("a push source cannot be added while a polling source is active")
    _check_source(event)
    if event in state.push_sources:
        raise NoOpEvent(f"the push source {event.source_name!r} is the same as before")


@_check_event.register
def _(event: DisablePushSource, state: ChainState) -> None:
    if state.push_source(event.source_name) is None:
        raise SourceUnknown(f"no active push source is called {event.source_name!r}")


@_check_event.register
def _(event: DisablePollingSource, state: ChainState) -> None:  # noqa: ARG001
    if state.polling_source is None:
        raise SourceUnknown("no polling source is active")


# --- Parts -----------------------------------------------------------------------------------------------------------


def _require_kind(state: ChainState, kind: DatasetKind, what: str) -> None:
    if state.kind is not kind:
        raise WrongKindOfDataset(f"{what} belongs to {kind.value} datasets, this one is {state.kind.value}")


def _check_data_event(event: AddData | ExecuteTransform, state: ChainState) -> None:
    if event.prev_offset != state.last_offset:
        raise PrevOffsetMismatch(f"prevOffset is {event.prev_offset}, but the last row is {state.last_offset}")
    if event.new_data is not None:
        interval = event.new_data.offset_interval
        if interval.start != state.next_offset or interval.end < interval.start:
            raise OffsetsNotSequential(
                f"its rows are {interval.start} to {interval.end}, but the next offset is {state.next_offset}"
            )
        if interval.end > _LAST_OFFSET:
            raise OffsetsNotSequential(f"its rows are {interval.start} to {interval.end}: offsets have 63 bits")
        if state.set_schema is None:
            raise SchemaMissing("rows come before any SetDataSchema")
    expected = _checkpoint_hash(state)
    if event.prev_checkpoint != expected:
        raise PrevCheckpointMismatch(f"prevCheckpoint is {event.prev_checkpoint}, but the last one is {expected}")
    before, now = state.watermark, event.new_watermark
    if before is not None and (now is None or now < before):
        raise WatermarkWentBack(f"its watermark is {now or 'unset'}, but it was {before} already")


def _has_nothing_new(event: AddData | ExecuteTransform) -> bool:
    return event.new_data is None and event.new_checkpoint is None and event.new_watermark is None


def _advances(event: AddData | ExecuteTransform, state: ChainState) -> bool:
    checkpoint = event.new_checkpoint.physical_hash if event.new_checkpoint else None
    return event.new_data is not None or checkpoint != event.prev_checkpoint or event.new_watermark != state.watermark


def _checkpoint_hash(state: ChainState) -> Multihash | None:
    return state.checkpoint.physical_hash if state.checkpoint else None


def _check_inputs(event: ExecuteTransform, state: ChainState) -> None:
    declared = [item.dataset_ref for item in state.set_transform.inputs] if state.set_transform else []
    actual = [item.dataset_id for item in event.query_inputs]
    if actual != declared:
        raise TransformInputsMismatch("its inputs are not those of the transform, in the same order")
    previous = {item.dataset_id: item for item in state.query_inputs}
    for item in event.query_inputs:
        _check_input(item, previous.get(item.dataset_id))


def _check_input(item: ExecuteTransformInput, before: ExecuteTransformInput | None) -> None:
    where = f"input {item.dataset_id}"
    last_block = before.last_block_hash if before else None
    last_offset = before.last_offset if before else None
    if item.prev_block_hash != last_block:
        raise InputIntervalBroken(f"{where}: prevBlockHash is {item.prev_block_hash}, the last was {last_block}")
    if item.prev_offset != last_offset:
        raise InputIntervalBroken(f"{where}: prevOffset is {item.prev_offset}, the last was {last_offset}")
    if item.new_block_hash is not None and item.new_block_hash == item.prev_block_hash:
        raise InputIntervalBroken(f"{where}: newBlockHash is the same as prevBlockHash")
    if item.new_offset is None:
        return
    if item.new_block_hash is None:
        raise InputIntervalBroken(f"{where}: there are new rows, but no new blocks")
    if item.prev_offset is not None and item.new_offset <= item.prev_offset:
        raise InputIntervalBroken(f"{where}: newOffset {item.new_offset} is not after prevOffset {item.prev_offset}")


def _check_source(event: SetPollingSource | AddPushSource) -> None:
    if event.read.schema is not None and event.read.ddl_schema is not None:
        raise AmbiguousReadSchema("its read step has both `schema` and `ddlSchema`")
    if event.preprocess is not None:
        _check_normalized(event.preprocess)


def _check_normalized(transform: TransformSql) -> None:
    steps = transform.queries or ()
    if transform.query is not None or not steps:
        raise TransformNotNormalized("its transform must have `queries`, and no `query`")
    if steps[-1].alias is not None or any(step.alias is None for step in steps[:-1]):
        raise TransformNotNormalized("all queries but the last must have an alias, and the last must have none")
