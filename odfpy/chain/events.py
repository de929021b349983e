"""Metadata events: everything that can happen to a dataset (ODF specification, "Metadata Events").

Fields stand in the order of the wire format, and `MetadataEvent` in the order of its union.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from odfpy.chain.sources import FetchStep, MergeStrategy, PrepStep, ReadStep
from odfpy.data.attributes import ExtraAttributes
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import U64, SoleMember
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetRef
from odfpy.dataset.transform import Transform


@dataclass(frozen=True, slots=True)
class OffsetInterval:
    """Rows `start` to `end`, both inclusive."""

    start: U64
    end: U64


@dataclass(frozen=True, slots=True)
class DataSlice:
    """A data file: its hashes, its rows, its size in bytes."""

    logical_hash: Multihash
    physical_hash: Multihash
    offset_interval: OffsetInterval
    size: U64


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An engine's state file: its hash and its size in bytes."""

    physical_hash: Multihash
    size: U64


@dataclass(frozen=True, slots=True)
class SourceState:
    """How far a source has been taken in."""

    source_name: str
    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class AddData:
    """New data, checkpoint, watermark or source state of a root dataset."""

    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None
    new_source_state: SourceState | None = None
    extra: ExtraAttributes | None = None


@dataclass(frozen=True, slots=True)
class ExecuteTransformInput:
    """The part of an input that a transform processed: half-open, by block and by offset."""

    dataset_id: DatasetId
    prev_block_hash: Multihash | None = None
    new_block_hash: Multihash | None = None
    prev_offset: U64 | None = None
    new_offset: U64 | None = None

    @property
    def last_block_hash(self) -> Multihash | None:
        """The last block of the input that has been processed so far."""
        return self.new_block_hash or self.prev_block_hash

    @property
    def last_offset(self) -> int | None:
        """The last row of the input that has been processed so far."""
        return self.prev_offset if self.new_offset is None else self.new_offset


@dataclass(frozen=True, slots=True)
class ExecuteTransform:
    """One run of a derivative dataset's query."""

    query_inputs: tuple[ExecuteTransformInput, ...]
    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """The first event: identity and kind."""

    dataset_id: DatasetId
    dataset_kind: DatasetKind


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPollingSource:
    """Where `pull` gets the data of a root dataset from."""

    fetch: FetchStep
    prepare: tuple[PrepStep, ...] | None = None
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


@dataclass(frozen=True, slots=True)
class TransformInput:
    """An input of a derivative dataset and its name in the query."""

    dataset_ref: DatasetRef
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class SetTransform:
    """What a derivative dataset computes, and from what."""

    inputs: tuple[TransformInput, ...]
    transform: Transform


@dataclass(frozen=True, slots=True)
class SetVocab:
    """Other names for the system columns."""

    offset_column: str | None = None
    operation_type_column: str | None = None
    system_time_column: str | None = None
    event_time_column: str | None = None

    @property
    def vocabulary(self) -> DatasetVocabulary:
        """The names in force, with defaults for those not given."""
        return DatasetVocabulary(
            self.offset_column or DEFAULT_VOCABULARY.offset_column,
            self.operation_type_column or DEFAULT_VOCABULARY.operation_type_column,
            self.system_time_column or DEFAULT_VOCABULARY.system_time_column,
            self.event_time_column or DEFAULT_VOCABULARY.event_time_column,
        )


@dataclass(frozen=True, slots=True)
class AttachmentEmbedded:
    """A small text file."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class AttachmentsEmbedded:
    """Files inside the event itself."""

    KIND: ClassVar[str] = "Embedded"

    items: tuple[AttachmentEmbedded, ...]


Attachments: TypeAlias = Annotated[AttachmentsEmbedded, SoleMember()]


@dataclass(frozen=True, slots=True)
class SetAttachments:
    """Files that go with the dataset, such as a README."""

    attachments: Attachments


@dataclass(frozen=True, slots=True)
class SetInfo:
    """What the dataset is, in words."""

    description: str | None = None
    keywords: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLicense:
    """The licence of the data."""

    short_name: str
    name: str
    spdx_id: str | None = None
    website_url: str


@dataclass(frozen=True, slots=True)
class SetDataSchema:
    """The schema in force from here on.

    Attributes:
        raw_arrow_schema: an Arrow schema as an IPC FlatBuffer, as older writers recorded it.
        schema: the schema.
    """

    raw_arrow_schema: bytes | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPushSource:
    """A named way to hand in data with `ingest`."""

    source_name: str
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


@dataclass(frozen=True, slots=True)
class DisablePushSource:
    """Ends a push source."""

    source_name: str


@dataclass(frozen=True, slots=True)
class DisablePollingSource:
    """Ends the polling source."""


MetadataEvent: TypeAlias = (
    AddData
    | ExecuteTransform
    | Seed
    | SetPollingSource
    | SetTransform
    | SetVocab
    | SetAttachments
    | SetInfo
    | SetLicense
    | SetDataSchema
    | AddPushSource
    | DisablePushSource
    | DisablePollingSource
)
