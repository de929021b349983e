"""Sources of root datasets: fetch, prepare, merge (ODF specification, "Ingestion"); `read_steps` has the read steps.

Fields are in the order of the wire format, and union members in the order of its unions: their index is their number in
the wire format, so new members are added at the end.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, ClassVar, TypeAlias

from odfpy.data.scalars import I32, U64, SingleMemberUnion
from odfpy.values import dataclass

# --- Event time ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventTimeFromMetadata:
    """The source's own modification time.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#eventtimesourcefrommetadata
    """

    KIND: ClassVar[str] = "FromMetadata"


@dataclass(frozen=True, slots=True)
class EventTimeFromPath:
    """A part of the path: `pattern` is a regular expression with one group, `timestamp_format` is strftime's.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#eventtimesourcefrompath

    Attributes:
        pattern: regular expression with one group, which contains the time.
        timestamp_format: format of the group, in strftime's notation; ISO 8601 by default.
    """

    KIND: ClassVar[str] = "FromPath"

    pattern: str
    timestamp_format: str | None = None


@dataclass(frozen=True, slots=True)
class EventTimeFromSystemTime:
    """The time of the ingest.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#eventtimesourcefromsystemtime
    """

    KIND: ClassVar[str] = "FromSystemTime"


EventTimeSource: TypeAlias = EventTimeFromMetadata | EventTimeFromPath | EventTimeFromSystemTime


# --- Fetch -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CacheForever:
    """A file is never fetched again.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#sourcecachingforever
    """

    KIND: ClassVar[str] = "Forever"


SourceCaching: TypeAlias = Annotated[CacheForever, SingleMemberUnion()]


class SourceOrdering(Enum):
    """Order in which the files of a glob are ingested."""

    BY_EVENT_TIME = "ByEventTime"
    BY_NAME = "ByName"


class MqttQos(Enum):
    """Delivery guarantee of an MQTT subscription."""

    AT_MOST_ONCE = "AtMostOnce"
    AT_LEAST_ONCE = "AtLeastOnce"
    EXACTLY_ONCE = "ExactlyOnce"


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """An HTTP header sent with a request.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#requestheader

    Attributes:
        name: name of the header.
        value: its value; `${{ env.NAME }}` stands for a variable.
    """

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class FetchUrl:
    """One file at a URL.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#fetchstepurl

    Attributes:
        url: address of the file: http, https, ftp, file, s3, gs or az.
        event_time: source of the event time of rows without one.
        cache: whether the file is fetched again.
        headers: headers of the request.
    """

    KIND: ClassVar[str] = "Url"

    url: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    headers: tuple[RequestHeader, ...] | None = None


@dataclass(frozen=True, slots=True)
class FetchFilesGlob:
    """Files of a folder, each ingested once.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#fetchstepfilesglob

    Attributes:
        path: path with wildcards, on this machine.
        event_time: source of the event time of rows without one.
        cache: whether files are read again.
        order: order in which new files are ingested.
    """

    KIND: ClassVar[str] = "FilesGlob"

    path: str
    event_time: EventTimeSource | None = None
    cache: SourceCaching | None = None
    order: SourceOrdering | None = None


@dataclass(frozen=True, slots=True)
class EnvVar:
    """An environment variable of a container; without a value it is taken from the coordinator's environment.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#envvar

    Attributes:
        name: name of the variable.
        value: its value; None takes it from the coordinator's own environment.
    """

    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class FetchContainer:
    """Standard output of an OCI image.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#fetchstepcontainer

    Attributes:
        image: name of the image, with its tag or digest.
        command: program to run instead of the image's entry point.
        args: arguments of the program.
        env: its environment variables.
    """

    KIND: ClassVar[str] = "Container"

    image: str
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    env: tuple[EnvVar, ...] | None = None


@dataclass(frozen=True, slots=True)
class MqttTopicSubscription:
    """A topic filter.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#mqtttopicsubscription

    Attributes:
        path: topic filter, with MQTT's wildcards `+` and `#`.
        qos: delivery guarantee; at most once by default.
    """

    path: str
    qos: MqttQos | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchMqtt:
    """Messages of an MQTT broker.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#fetchstepmqtt

    Attributes:
        host: name or address of the broker.
        port: its TCP port.
        username: name to log in with.
        password: password to log in with.
        topics: topics to subscribe to.
    """

    KIND: ClassVar[str] = "Mqtt"

    host: str
    port: I32
    username: str | None = None
    password: str | None = None
    topics: tuple[MqttTopicSubscription, ...]


@dataclass(frozen=True, slots=True)
class FetchEthereumLogs:
    """Logs of an Ethereum node.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#fetchstepethereumlogs

    Attributes:
        chain_id: identifier of the chain (EIP-155), checked against the node.
        node_url: address of the JSON-RPC node.
        filter: SQL condition on logs, as far as nodes can evaluate it.
        signature: event in Solidity's notation, to decode logs by.
    """

    KIND: ClassVar[str] = "EthereumLogs"

    chain_id: U64 | None = None
    node_url: str | None = None
    filter: str | None = None
    signature: str | None = None


FetchStep: TypeAlias = FetchUrl | FetchFilesGlob | FetchContainer | FetchMqtt | FetchEthereumLogs


# --- Prepare ---------------------------------------------------------------------------------------------------------


class CompressionFormat(Enum):
    """Formats that `PrepDecompress` supports."""

    GZIP = "Gzip"
    ZIP = "Zip"


@dataclass(frozen=True, slots=True)
class PrepDecompress:
    """Unpacks a compressed file, or one member of an archive.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#prepstepdecompress

    Attributes:
        format: format of the file.
        sub_path: member of the archive, may contain `*`; required if it has several.
    """

    KIND: ClassVar[str] = "Decompress"

    format: CompressionFormat
    sub_path: str | None = None


@dataclass(frozen=True, slots=True)
class PrepPipe:
    """A command that converts standard input to standard output.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#prepsteppipe

    Attributes:
        command: program and its arguments; no shell is involved.
    """

    KIND: ClassVar[str] = "Pipe"

    command: tuple[str, ...]


PrepStep: TypeAlias = PrepDecompress | PrepPipe


# --- Merge -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergeAppend:
    """Every row is a new event.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#mergestrategyappend
    """

    KIND: ClassVar[str] = "Append"


@dataclass(frozen=True, slots=True)
class MergeLedger:
    """Rows whose key was never seen are new events.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#mergestrategyledger

    Attributes:
        primary_key: columns whose values identify rows.
    """

    KIND: ClassVar[str] = "Ledger"

    primary_key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeSnapshot:
    """The input is the full current state; its difference to the recorded one are the events.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#mergestrategysnapshot

    Attributes:
        primary_key: columns whose values identify rows.
        compare_columns: columns that determine whether a row has changed; all by default.
    """

    KIND: ClassVar[str] = "Snapshot"

    primary_key: tuple[str, ...]
    compare_columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class MergeChangelogStream:
    """The input is already a changelog with operation types.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#mergestrategychangelogstream

    Attributes:
        primary_key: columns whose values identify rows.
    """

    KIND: ClassVar[str] = "ChangelogStream"

    primary_key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeUpsertStream:
    """The last row of a key replaces the previous one.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#mergestrategyupsertstream

    Attributes:
        primary_key: columns whose values identify rows.
    """

    KIND: ClassVar[str] = "UpsertStream"

    primary_key: tuple[str, ...]


MergeStrategy: TypeAlias = MergeAppend | MergeLedger | MergeSnapshot | MergeChangelogStream | MergeUpsertStream
