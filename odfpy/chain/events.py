"""Metadata events: everything that can happen to a dataset (ODF specification, "Metadata Events").

Fields are in the order of the wire format, and `MetadataEvent` is in the order of its union.
"""

from __future__ import annotations

from typing import TypeAlias

from odfpy.chain.read_steps import ReadStep
from odfpy.chain.sources import FetchStep, MergeStrategy, PrepStep
from odfpy.data.attributes import ExtraAttributes
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.scalars import U64
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.dataset.attachments import Attachments
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetRef
from odfpy.dataset.transform import Transform
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class DataSlice:
    """A data file: its hashes, its rows, its size in bytes.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#dataslice

    Attributes:
        logical_hash: hash of the rows, whatever the encoding of the file.
        physical_hash: hash of the file's bytes; it is also its name in the store.
        offset_interval: offsets of the first and the last row, both inclusive.
        size: length of the file in bytes.
    """

    logical_hash: Multihash
    physical_hash: Multihash
    offset_interval: OffsetInterval
    size: U64


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An engine's state file: its hash and its size in bytes.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#checkpoint

    Attributes:
        physical_hash: hash of the file's bytes; it is also its name in the store.
        size: length of the file in bytes.
    """

    physical_hash: Multihash
    size: U64


@dataclass(frozen=True, slots=True)
class SourceState:
    """The progress of a source: the part of it that has been ingested.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#sourcestate

    Attributes:
        source_name: name of the source; `default` for the only one.
        kind: what `value` is, for example `odf/etag` or `odf/last-modified`.
        value: the state itself, opaque to everybody but the source.
    """

    source_name: str
    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class AddData:
    """New data, checkpoint, watermark or source state of a root dataset.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#adddata

    Attributes:
        prev_checkpoint: hash of the checkpoint that was in force before.
        prev_offset: offset of the last row before this block; None if there was none.
        new_data: the slice with the new rows, if there are any.
        new_checkpoint: the checkpoint after this block, if there is one.
        new_watermark: the watermark after this block; it never goes back.
        new_source_state: the progress of the source after this block.
        extra: further attributes, which are stored uninterpreted.
    """

    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None
    new_source_state: SourceState | None = None
    extra: ExtraAttributes | None = None


@dataclass(frozen=True, slots=True)
class ExecuteTransformInput:
    """The part of an input that a transform processed: half-open, by block and by offset.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#executetransforminput

    Attributes:
        dataset_id: the input.
        prev_block_hash: last block of the input that earlier runs processed; None for none.
        new_block_hash: last block of the input that this run processed; None if nothing was new.
        prev_offset: last row of the input that earlier runs processed; None for none.
        new_offset: last row of the input that this run processed; None if no rows were new.
    """

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
    """One run of a derivative dataset's query.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#executetransform

    Attributes:
        query_inputs: the processed part of each input, in the order of the transform.
        prev_checkpoint: hash of the checkpoint that was in force before.
        prev_offset: offset of the last row before this block; None if there was none.
        new_data: the slice with the new rows, if there are any.
        new_checkpoint: the checkpoint after this run, if there is one.
        new_watermark: the watermark after this run; it never goes back.
    """

    query_inputs: tuple[ExecuteTransformInput, ...]
    prev_checkpoint: Multihash | None = None
    prev_offset: U64 | None = None
    new_data: DataSlice | None = None
    new_checkpoint: Checkpoint | None = None
    new_watermark: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """The first event: identity and kind.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#seed

    Attributes:
        dataset_id: the dataset's identity: its public key.
        dataset_kind: root or derivative.
    """

    dataset_id: DatasetId
    dataset_kind: DatasetKind


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPollingSource:
    """The source from which `odf pull` ingests data into a root dataset.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#setpollingsource

    Attributes:
        fetch: origin of the bytes.
        prepare: steps that decompress or pipe the bytes before they are read, in order.
        read: conversion of bytes to rows.
        preprocess: queries over the rows before they are merged.
        merge: relation of the rows to the existing ones.
    """

    fetch: FetchStep
    prepare: tuple[PrepStep, ...] | None = None
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


@dataclass(frozen=True, slots=True)
class TransformInput:
    """An input of a derivative dataset and its name in the query.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#transforminput

    Attributes:
        dataset_ref: id or name of the dataset.
        alias: name of the input in the query; by default its own name.
    """

    dataset_ref: DatasetRef
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class SetTransform:
    """The transform of a derivative dataset and its inputs.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#settransform

    Attributes:
        inputs: the datasets that it reads.
        transform: the queries and the engine that runs them.
    """

    inputs: tuple[TransformInput, ...]
    transform: Transform


@dataclass(frozen=True, slots=True)
class SetVocab:
    """Other names for the system columns.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#setvocab

    Attributes:
        offset_column: name of the column of offsets.
        operation_type_column: name of the column of operation types.
        system_time_column: name of the column of system times.
        event_time_column: name of the column of event times.
    """

    offset_column: str | None = None
    operation_type_column: str | None = None
    system_time_column: str | None = None
    event_time_column: str | None = None

    @property
    def vocabulary(self) -> DatasetVocabulary:
        """The names in force, with defaults for unset ones."""
        return DatasetVocabulary(
            self.offset_column or DEFAULT_VOCABULARY.offset_column,
            self.operation_type_column or DEFAULT_VOCABULARY.operation_type_column,
            self.system_time_column or DEFAULT_VOCABULARY.system_time_column,
            self.event_time_column or DEFAULT_VOCABULARY.event_time_column,
        )


@dataclass(frozen=True, slots=True)
class SetAttachments:
    """Files that belong to the dataset, such as a README.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#setattachments

    Attributes:
        attachments: all files; they replace those of an earlier event.
    """

    attachments: Attachments


@dataclass(frozen=True, slots=True)
class SetInfo:
    """A description of the dataset for people.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#setinfo

    Attributes:
        description: one or two sentences for people.
        keywords: terms to find the dataset by.
    """

    description: str | None = None
    keywords: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLicense:
    """The licence of the data.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#setlicense

    Attributes:
        short_name: abbreviated name, for example `CC-BY-4.0`.
        name: full name.
        spdx_id: identifier in the SPDX list of licences.
        website_url: URL of its text.
    """

    short_name: str
    name: str
    spdx_id: str | None = None
    website_url: str


@dataclass(frozen=True, slots=True)
class SetDataSchema:
    """The schema in force from here on.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#setdataschema

    Attributes:
        raw_arrow_schema: an Arrow schema as an IPC FlatBuffer, as older writers recorded it.
        schema: the schema.
    """

    raw_arrow_schema: bytes | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPushSource:
    """A named source for data that is pushed with `odf ingest`.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#addpushsource

    Attributes:
        source_name: name by which `odf ingest` selects the source.
        read: conversion of bytes to rows.
        preprocess: queries over the rows before they are merged.
        merge: relation of the rows to the existing ones.
    """

    source_name: str
    read: ReadStep
    preprocess: Transform | None = None
    merge: MergeStrategy


@dataclass(frozen=True, slots=True)
class DisablePushSource:
    """Ends a push source.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#disablepushsource

    Attributes:
        source_name: name of the source.
    """

    source_name: str


@dataclass(frozen=True, slots=True)
class DisablePollingSource:
    """Ends the polling source.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#disablepollingsource
    """


Source: TypeAlias = SetPollingSource | AddPushSource
"""The origin of a root dataset's data."""

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
