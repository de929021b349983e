"""The state of a metadata chain at one of its blocks.

`ChainState` is a fold over the chain: it is updated by each block, oldest first. Appending, verifying, listing and
pulling all use this value instead of each iterating over the chain in its own way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import (
    AddData,
    AddPushSource,
    Checkpoint,
    DataSlice,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    ExecuteTransformInput,
    MetadataEvent,
    Seed,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
    SetPollingSource,
    SetTransform,
    SetVocab,
    Source,
    SourceState,
)
from odfpy.chain.link_summary import LinkedObjects
from odfpy.chain.source_places import is_same_place
from odfpy.chain.sources import MergeLedger, MergeSnapshot, MergeUpsertStream
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import I64
from odfpy.data.schemas.primary_key import primary_key_of
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import InternalError, NoDataYet
from odfpy.values import dataclass

_ONE_ROW_A_KEY = (MergeLedger, MergeSnapshot, MergeUpsertStream)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainState:
    """The combined result of all blocks up to `head`; cached by `odfpy.coordinator.storage.chain_cache`.

    Attributes:
        head: the last block, or None for an empty chain.
        sequence_number: number of the last block, -1 for an empty chain.
        system_time: time of the last block.
        seed: the Seed event, with identity and kind.
        set_schema: the event with the schema in force.
        push_sources: the push sources that are not disabled, in the order in which they were added.
        run_transform: the transform of the last run.
        last_data_event: the last AddData or ExecuteTransform.
        last_offset: offset of the last row, None before the first.
        source_states: the latest state of each source, by name; omitted if the source is disabled or its origin
            changed.
        data_bytes: total bytes of all slices.
        last_data_time: system time of the last block with rows.
        linked_count: number of objects that rows link to, counted naively, according to the blocks.
        linked_bytes: total bytes of these objects.
    """

    head: Multihash | None = None
    sequence_number: I64 = -1
    system_time: Timestamp | None = None
    seed: Seed | None = None
    set_vocab: SetVocab | None = None
    set_schema: SetDataSchema | None = None
    set_transform: SetTransform | None = None
    run_transform: SetTransform | None = None
    polling_source: SetPollingSource | None = None
    push_sources: tuple[AddPushSource, ...] = ()
    info: SetInfo | None = None
    license: SetLicense | None = None
    attachments: SetAttachments | None = None
    last_data_event: AddData | ExecuteTransform | None = None
    last_offset: I64 | None = None
    source_states: tuple[SourceState, ...] = ()
    data_bytes: I64 = 0
    last_data_time: Timestamp | None = None
    linked_count: I64 = 0
    linked_bytes: I64 = 0

    @property
    def dataset_id(self) -> DatasetId:
        """The dataset's id; the chain must not be empty."""
        return self._seed.dataset_id

    @property
    def kind(self) -> DatasetKind:
        """The dataset's kind; the chain must not be empty."""
        return self._seed.dataset_kind

    @property
    def _seed(self) -> Seed:
        if self.seed is None:
            raise InternalError("An empty chain has neither id nor kind")
        return self.seed

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources of a root dataset that are in force, the polling source first."""
        return (*filter(None, [self.polling_source]), *self.push_sources)

    @property
    def vocab(self) -> DatasetVocabulary:
        """The names of the system columns."""
        return self.set_vocab.vocabulary if self.set_vocab else DEFAULT_VOCABULARY

    @property
    def schema(self) -> DataSchema | None:
        """The schema in force, even if older writers recorded it as a raw Arrow schema.

        Raises:
            SchemaError: a raw Arrow schema cannot be read.
        """
        recorded = self.set_schema
        if recorded is None or recorded.schema is not None or recorded.raw_arrow_schema is None:
            return recorded.schema if recorded else None
        from odfpy.data.schemas.raw_arrow import read_raw_arrow  # only for chains of older writers

        return read_raw_arrow(recorded.raw_arrow_schema)

    def require_schema(self, name: object) -> DataSchema:
        """Return the schema in force, for callers that need one.

        Args:
            name: name of the dataset, for the message.

        Raises:
            NoDataYet: there is no schema.
            SchemaError: a raw Arrow schema cannot be read.
        """
        if (schema := self.schema) is None:
            raise NoDataYet(f"{name} has no data yet, and no schema", hint="Pull or ingest data first.")
        return schema

    @property
    def num_records(self) -> int:
        """The number of rows in all slices."""
        return 0 if self.last_offset is None else self.last_offset + 1

    @property
    def next_offset(self) -> int:
        """The offset of the next row."""
        return self.num_records

    @property
    def watermark(self) -> Timestamp | None:
        """The watermark: later rows with an event time at or before it are late."""
        return self.last_data_event.new_watermark if self.last_data_event else None

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The engine's state after the last transform."""
        return self.last_data_event.new_checkpoint if self.last_data_event else None

    @property
    def query_inputs(self) -> tuple[ExecuteTransformInput, ...]:
        """The inputs that the last transform processed, empty before the first."""
        event = self.last_data_event
        return event.query_inputs if isinstance(event, ExecuteTransform) else ()

    @property
    def primary_key(self) -> tuple[str, ...] | None:
        """The key of the rows of the current state; None if the chain does not declare one.

        For a root dataset it is the common key of all its sources; for a derivative, it is determined by its query.
        """
        if self.kind is DatasetKind.DERIVATIVE:
            return None if self.schema is None else primary_key_of(self.schema)
        keys = {
            source.merge.primary_key if isinstance(source.merge, _ONE_ROW_A_KEY) else None for source in self.sources
        }
        return keys.pop() if len(keys) == 1 else None

    @property
    def query_changed(self) -> bool:
        """True if the transform in force differs from that of the last run."""
        before, now = self.run_transform, self.set_transform
        return before is not None and now is not None and not is_same_query(before, now)

    def source_state(self, source_name: str) -> SourceState | None:
        """Return the latest state of the source with a name."""
        return next((state for state in self.source_states if state.source_name == source_name), None)

    def push_source(self, source_name: str) -> AddPushSource | None:
        """Return the active push source with a name."""
        return next((source for source in self.push_sources if source.source_name == source_name), None)

    def after(self, hashed: HashedBlock) -> ChainState:
        """Return the state after one more block, without checking `odfpy.chain.rules`."""
        block = hashed.block
        changes = _changes(block.event, self)
        if new_data_of(block.event):
            changes["last_data_time"] = block.system_time
        return replace(
            self,
            head=hashed.hash,
            sequence_number=block.sequence_number,
            system_time=block.system_time,
            **changes,
        )


def is_same_query(left: SetTransform, right: SetTransform) -> bool:
    """Return whether two transforms are equal except for the version of the engine."""
    return _any_version(left) == _any_version(right)


def _any_version(event: SetTransform) -> SetTransform:
    return replace(event, transform=replace(event.transform, version=None))


def new_data_of(event: MetadataEvent) -> DataSlice | None:
    """Return the slice of an event, None if it has none."""
    return event.new_data if isinstance(event, (AddData, ExecuteTransform)) else None


@singledispatch
def _changes(event: MetadataEvent, state: ChainState) -> dict[str, Any]:  # noqa: ARG001
    """Return the fields of the state that an event changes."""
    raise InternalError(f"No rule for {type(event).__name__}")


@_changes.register
def _(event: Seed, state: ChainState) -> dict[str, Any]:  # noqa: ARG001
    return {"seed": event}


@_changes.register
def _(event: SetVocab, state: ChainState) -> dict[str, Any]:  # noqa: ARG001
    return {"set_vocab": event}


@_changes.register
def _(event: SetDataSchema, state: ChainState) -> dict[str, Any]:  # noqa: ARG001
    return {"set_schema": event}


@_changes.register
def _(event: SetTransform, state: ChainState) -> dict[str, Any]:  # noqa: ARG001
    return {"set_transform": event}


@_changes.register
def _(event: SetInfo, state: ChainState) -> dict[str, Any]:  # noqa: ARG001
    return {"info": event}


@_changes.register
def _(event: SetLicense, state: ChainState) -> dict[str, Any]:  # noqa: ARG001
    return {"license": event}


@_changes.register
def _(event: SetAttachments, state: ChainState) -> dict[str, Any]:  # noqa: ARG001
    return {"attachments": event}


@_changes.register
def _(event: SetPollingSource, state: ChainState) -> dict[str, Any]:
    before = state.polling_source
    if before is None or is_same_place(before.fetch, event.fetch):
        return {"polling_source": event}
    return {"polling_source": event, "source_states": ()}


@_changes.register
def _(event: DisablePollingSource, state: ChainState) -> dict[str, Any]:  # noqa: ARG001
    return {"polling_source": None, "source_states": ()}


@_changes.register
def _(event: AddPushSource, state: ChainState) -> dict[str, Any]:
    sources = {source.source_name: source for source in state.push_sources}
    return {"push_sources": tuple({**sources, event.source_name: event}.values())}


@_changes.register
def _(event: DisablePushSource, state: ChainState) -> dict[str, Any]:
    return {
        "push_sources": tuple(s for s in state.push_sources if s.source_name != event.source_name),
        "source_states": tuple(s for s in state.source_states if s.source_name != event.source_name),
    }


@_changes.register
def _(event: AddData, state: ChainState) -> dict[str, Any]:
    changes = _data_changes(event, state)
    if event.new_source_state is not None:
        others = tuple(s for s in state.source_states if s.source_name != event.new_source_state.source_name)
        changes["source_states"] = (*others, event.new_source_state)
    return changes


@_changes.register
def _(event: ExecuteTransform, state: ChainState) -> dict[str, Any]:
    return {**_data_changes(event, state), "run_transform": state.set_transform}


def _data_changes(event: AddData | ExecuteTransform, state: ChainState) -> dict[str, Any]:
    if event.new_data is None:
        return {"last_data_event": event}
    links = LinkedObjects.of(event)
    return {
        "linked_count": state.linked_count + links.count,
        "linked_bytes": state.linked_bytes + links.size,
        "last_data_event": event,
        "last_offset": event.new_data.offset_interval.end,
        "data_bytes": state.data_bytes + event.new_data.size,
    }
