"""How root datasets take in data: fetch, prepare, read, merge (ODF specification, "Ingestion").

Fields stand in the order of the wire format, and union members in the order of its unions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, ClassVar, TypeAlias

from odfpy.data.scalars import I32, U64, SoleMember
from odfpy.data.schemas.schema import DataSchema

# --- Event time ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventTimeFromMetadata:
    """The source's own modification time."""

    KIND: ClassVar[str] = "FromMetadata"


@dataclass(frozen=True, slots=True)
class EventTimeFromPath:
    """A part of the path: `pattern` is a regular expression with one group, `timestamp_format` is strftime's."""

    KIND: ClassVar[str] = "FromPath"

    pattern: str
    timestamp_format: str | None = None


@dataclass(frozen=True, slots=True)
class EventTimeFromSystemTime:
    """The time of the ingest."""

    KIND: ClassVar[str] = "FromSystemTime"


EventTimeSource: TypeAlias = EventTimeFromMetadata | EventTimeFromPath | EventTimeFromSystemTime


# --- Fetch -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CacheForever:
    """Once fetched, never fetched again."""

    KIND: ClassVar[str] = "Forever"


SourceCaching: TypeAlias = Annotated[CacheForever, SoleMember()]


class SourceOrdering(Enum):
    """Order in which the files of a glob are taken in."""

    BY_EVENT_TIME = "ByEventTime"
    BY_NAME = "ByName"


class MqttQos(Enum):
    """Delivery guarantee of an MQTT subscription."""

    AT_MOST_ONCE = "AtMostOnce"
    AT_LEAST_ONCE = "AtLeastOnce"
    EXACTLY_ONCE = "ExactlyOnce"


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """An HTTP header sent with a request."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class FetchUrl:
    """One file at a URL."""

    KIND: ClassVar[str] = "Url"

    url: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    headers: tuple[RequestHeader, ...] | None = None


@dataclass(frozen=True, slots=True)
class FetchFilesGlob:
    """Files of a folder, each taken in once."""

    KIND: ClassVar[str] = "FilesGlob"

    path: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    order: SourceOrdering | None = None


@dataclass(frozen=True, slots=True)
class EnvVar:
    """An environment variable of a container; without a value it is taken from the coordinator's environment."""

    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class FetchContainer:
    """Standard output of an OCI image."""

    KIND: ClassVar[str] = "Container"

    image: str
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: tuple[EnvVar, ...] | None = None


@dataclass(frozen=True, slots=True)
class MqttTopicSubscription:
    """A topic filter."""

    path: str
    qos: MqttQos | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchMqtt:
    """Messages of an MQTT broker."""

    KIND: ClassVar[str] = "Mqtt"

    host: str
    port: I32
    username: str | None = None
    password: str | None = None
    topics: tuple[MqttTopicSubscription, ...]


@dataclass(frozen=True, slots=True)
class FetchEthereumLogs:
    """Logs of an Ethereum node."""

    KIND: ClassVar[str] = "EthereumLogs"

    chain_id: U64 | None = None
    node_url: str | None = None
    filter: str | None = None
    signature: str | None = None


FetchStep: TypeAlias = FetchUrl | FetchFilesGlob | FetchContainer | FetchMqtt | FetchEthereumLogs


# --- Prepare ---------------------------------------------------------------------------------------------------------


class CompressionFormat(Enum):
    """Formats that `PrepDecompress` opens."""

    GZIP = "Gzip"
    ZIP = "Zip"


@dataclass(frozen=True, slots=True)
class PrepDecompress:
    """Unpacks a compressed file, or one member of an archive."""

    KIND: ClassVar[str] = "Decompress"

    format: CompressionFormat
    sub_path: str | None = None


@dataclass(frozen=True, slots=True)
class PrepPipe:
    """A command from standard input to standard output."""

    KIND: ClassVar[str] = "Pipe"

    command: tuple[str, ...]


PrepStep: TypeAlias = PrepDecompress | PrepPipe


# --- Read ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadCsv:
    """Delimited text."""

    KIND: ClassVar[str] = "Csv"

    ddl_schema: tuple[str, ...] | None = None
    separator: str | None = None
    encoding: str | None = None
    quote: str | None = None
    escape: str | None = None
    header: bool | None = None
    infer_schema: bool | None = None
    null_value: str | None = None
    date_format: str | None = None
    timestamp_format: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadGeoJson:
    """A GeoJSON feature collection."""

    KIND: ClassVar[str] = "GeoJson"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadEsriShapefile:
    """A zipped ESRI shapefile."""

    KIND: ClassVar[str] = "EsriShapefile"

    ddl_schema: tuple[str, ...] | None = None
    sub_path: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadParquet:
    """An Apache Parquet file."""

    KIND: ClassVar[str] = "Parquet"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadJson:
    """A JSON array of objects, possibly below `sub_path`."""

    KIND: ClassVar[str] = "Json"

    sub_path: str | None = None
    ddl_schema: tuple[str, ...] | None = None
    date_format: str | None = None
    encoding: str | None = None
    timestamp_format: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadNdJson:
    """One JSON object a line."""

    KIND: ClassVar[str] = "NdJson"

    ddl_schema: tuple[str, ...] | None = None
    date_format: str | None = None
    encoding: str | None = None
    timestamp_format: str | None = None
    schema: DataSchema | None = None


@dataclass(frozen=True, slots=True)
class ReadNdGeoJson:
    """One GeoJSON feature a line."""

    KIND: ClassVar[str] = "NdGeoJson"

    ddl_schema: tuple[str, ...] | None = None
    schema: DataSchema | None = None


ReadStep: TypeAlias = ReadCsv | ReadGeoJson | ReadEsriShapefile | ReadParquet | ReadJson | ReadNdJson | ReadNdGeoJson


# --- Merge -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergeAppend:
    """Every row is a new event."""

    KIND: ClassVar[str] = "Append"


@dataclass(frozen=True, slots=True)
class MergeLedger:
    """Rows whose key was never seen are new events."""

    KIND: ClassVar[str] = "Ledger"

    primary_key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeSnapshot:
    """The input is the full current state; its difference to the recorded one are the events."""

    KIND: ClassVar[str] = "Snapshot"

    primary_key: tuple[str, ...]
    compare_columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class MergeChangelogStream:
    """The input is already a changelog with operation types."""

    KIND: ClassVar[str] = "ChangelogStream"

    primary_key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeUpsertStream:
    """The last row of a key replaces the one before it."""

    KIND: ClassVar[str] = "UpsertStream"

    primary_key: tuple[str, ...]


MergeStrategy: TypeAlias = MergeAppend | MergeLedger | MergeSnapshot | MergeChangelogStream | MergeUpsertStream
