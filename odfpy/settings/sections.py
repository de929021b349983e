"""All settings, in the order of `odf config list`: those of a workspace, and those of a dataset.

Each setting is declared as `name: Annotated[type, Help(sentence)] = default` in its section. `max_rows` in
`ServeSection` is `serve.maxRows` in files. A new setting also needs a row in `docs/cli.md` and in
`workspace_template/.odf/config.yaml`.
"""

# No `from __future__ import annotations` here: annotations are evaluated at each start, and as text they take longer.

from typing import Annotated, Literal

from odfpy.settings.dataset_sections import CopySection, RetractionsSection, WatermarkSection
from odfpy.settings.forms import (
    Address,
    Count,
    Folders,
    Heap,
    HttpUrl,
    Master,
    Nodes,
    Patterns,
    Port,
    Positive,
    Signers,
    Size,
    Storage,
    Text,
)
from odfpy.settings.setting import Help, Section, Setting, settings_in

# --- Of a workspace --------------------------------------------------------------------------------------------------


class CommandsSection(Section):
    """Execution of commands."""

    NAME = "commands"

    server: Annotated[
        bool, Help("Run a command server: a process that has imported everything, and forks itself for each command")
    ] = False
    idle_timeout: Annotated[Positive, Help("Seconds without a command after which the command server exits")] = 600


class EngineSection(Section):
    """The processes that run queries."""

    NAME = "engine"

    idle_timeout: Annotated[Count, Help("Seconds without work after which an engine exits")] = 600
    start_timeout: Annotated[Count, Help("Maximum seconds for the start of an engine")] = 120
    job_timeout: Annotated[Count | None, Help("Maximum seconds for one job of an engine; unlimited if not set")] = None
    memory: Annotated[Heap | None, Help("Maximum heap of the engine's Java process, for example 2g")] = None
    sandbox: Annotated[
        Literal["required", "best-effort", "off"],
        Help("Run the engine in a sandbox: always, if the system allows it, or never", "Execution Model"),
    ] = "best-effort"
    max_memory: Annotated[
        Size | None, Help("Maximum memory of a sandboxed engine; 9/10 of the machine's memory if not set")
    ] = None
    max_disk: Annotated[
        Size | None, Help("Maximum disk space of a job of a sandboxed engine; unlimited if not set")
    ] = None
    serve_unconfined: Annotated[
        bool, Help("Allow untrusted queries on an engine without a full sandbox", "Execution Model")
    ] = False
    startup_cache: Annotated[bool, Help("Keep a cache of loaded Java classes for faster starts")] = True
    master: Annotated[Master, Help("Where Spark runs tasks: local[2], or the address of a cluster")] = "local[*]"
    host: Annotated[Text | None, Help("Address at which executors reach this machine; detected if not set")] = None
    storage: Annotated[
        Storage | None, Help("URL of a folder for files of a cluster whose executors do not share the workspace")
    ] = None
    properties: Annotated[Text | None, Help("File with Spark properties for a cluster")] = None


class IngestSection(Section):
    """Ingests into root datasets."""

    NAME = "ingest"

    lane: Annotated[
        Literal["auto", "local", "spark"],
        Help("Where ingests run: auto, local (this process) or spark (tasks of the engine)", "Ingestion"),
    ] = "auto"
    memory: Annotated[
        Size, Help("Maximum memory of an ingest in this process; auto runs larger ones on Spark", "Ingestion")
    ] = "2g"


class SignaturesSection(Section):
    """Signatures of blocks."""

    NAME = "signatures"

    sign: Annotated[bool, Help("Sign commits of this workspace with the user's key")] = True
    require: Annotated[Signers | None, Help("Required signers of copies; none if not set")] = None


class ProofsSection(Section):
    """Signed answers to queries."""

    NAME = "proofs"

    key: Annotated[Text | None, Help("File with the key that signs query results; the user's key if not set")] = None


class ServeSection(Section):
    """Limits of `odf serve`; options that cannot be set in a file are in `odfpy.serving.settings.ServeSettings`."""

    NAME = "serve"

    query_timeout: Annotated[Positive, Help("Maximum seconds for a query over HTTP, including waiting time")] = 60
    running_queries: Annotated[Positive, Help("Maximum number of queries over HTTP that run at the same time")] = 4
    max_queries: Annotated[Positive, Help("Maximum number of queries over HTTP that run or wait")] = 256
    max_queries_each: Annotated[
        Positive, Help("Maximum number of queries of one token, or of one address without a token")
    ] = 128
    query_memory: Annotated[
        Positive, Help("Maximum bytes of memory for a query over HTTP or Flight SQL, except on Spark")
    ] = 2 * 1024**3
    max_rows: Annotated[Positive, Help("Maximum number of rows in the answer to a query over HTTP")] = 100_000
    max_answer: Annotated[Positive, Help("Maximum bytes of Arrow data in the answer to a query over HTTP")] = (
        32 * 1024**2
    )
    max_object: Annotated[Positive, Help("Maximum bytes of one pushed object, or of the data of one ingest")] = (
        64 * 1024**3
    )
    max_connections_each: Annotated[Positive, Help("Maximum number of simultaneous connections of one address")] = 500
    max_stranger_body: Annotated[Positive, Help("Maximum bytes in the body of a request without a token")] = 128 * 1024
    request_memory: Annotated[Positive, Help("Maximum bytes of memory for unfinished requests with a token")] = (
        384 * 1024**2
    )
    request_memory_each: Annotated[Positive, Help("Maximum bytes of this memory for one token")] = 256 * 1024**2
    stranger_memory: Annotated[Positive, Help("Maximum bytes of memory for unfinished requests without a token")] = (
        64 * 1024**2
    )
    stranger_memory_each: Annotated[Positive, Help("Maximum bytes of this memory for one address")] = 16 * 1024**2
    patience: Annotated[
        Positive, Help("Seconds that the server waits for a client, and a Flight SQL query for a free slot")
    ] = 60
    flight_timeout: Annotated[
        Positive, Help("Maximum seconds for a query over Flight SQL, including fetching its rows")
    ] = 3600
    flight_queries: Annotated[Positive, Help("Maximum number of open answers over Flight SQL")] = 256
    flight_working: Annotated[
        Positive, Help("Maximum number of answers over Flight SQL that are computed at the same time")
    ] = 8
    passed_bytes: Annotated[
        Positive, Help("Maximum bytes of Arrow data that a relay passes on from one part of another relay")
    ] = 16 * 1024**3


class SharingSection(Section):
    """Sharing over the Delta Sharing protocol."""

    NAME = "sharing"

    database: Annotated[
        Text | None,
        Help("URL of the database of shares, users and grants; a file in the workspace if not set", is_secret=True),
    ] = None
    url: Annotated[Text | None, Help("URL of the server for recipients, for profile files")] = None
    url_lifetime: Annotated[Positive, Help("Seconds for which the URL of a shared file is valid")] = 3600
    login_lifetime: Annotated[Positive, Help("Seconds for which a token from a login with a password is valid")] = (
        43_200
    )
    presigned: Annotated[
        bool, Help("Let clients download fully visible files from object stores, by presigned URLs")
    ] = True
    audit_interval: Annotated[Positive, Help("Maximum seconds until accesses are committed to the audit dataset")] = 10
    cache_size: Annotated[Positive, Help("Maximum bytes of cached files that were created for recipients")] = (
        10 * 1024**3
    )


class RelaySection(Section):
    """The relay of this workspace, in a web of relays."""

    NAME = "relay"

    results: Annotated[
        Text | None,
        Help("Folder or URL (s3, gs, az) of the result store; .odf/relay/results if not set"),
    ] = None
    result_lifetime: Annotated[Positive, Help("Seconds for which a stored result is kept")] = 604_800
    max_result: Annotated[
        Positive, Help("Maximum bytes of one stored result, and of all stored results of one user")
    ] = 64 * 1024**3


class SourcesSection(Section):
    """Limits of what sources may reach from this machine."""

    NAME = "sources"

    variables: Annotated[
        Patterns | None, Help("Environment variables that sources may use; any if not set", "FetchStep")
    ] = None
    hosts: Annotated[Patterns | None, Help("Hosts that sources may connect to; any if not set", "FetchStep")] = None
    folders: Annotated[
        Folders | None,
        Help("Folders that sources may read, besides the workspace; any if not set", "FetchStep::FilesGlob"),
    ] = None
    images: Annotated[
        Patterns | None, Help("Container images that sources may run; any if not set", "FetchStep::Container")
    ] = None


class FetchSection(Section):
    """Fetching from sources."""

    NAME = "fetch"

    max_size: Annotated[Count, Help("Maximum bytes of one fetched file", "FetchStep")] = 64 * 1024**3
    timeout: Annotated[Count, Help("Seconds to wait for a server before giving up", "FetchStep")] = 30
    retries: Annotated[Count, Help("Number of retries after an interrupted fetch", "FetchStep")] = 3
    batch_size: Annotated[
        Count, Help("Number of rows per commit when a source delivers a stream of rows", "FetchStep")
    ] = 10_000


class TransferSection(Section):
    """Copies from repositories."""

    NAME = "transfer"

    least_speed: Annotated[
        Count, Help("Minimum bytes per second that a sender must maintain; 0 for no minimum", "Repository")
    ] = 4096
    window: Annotated[Positive, Help("Seconds over which this speed is measured", "Repository")] = 60
    max_unpacked: Annotated[Count, Help("Maximum unpacked bytes of a data file of a copy", "Repository")] = 64 * 1024**3


class PrepareSection(Section):
    """Preparing fetched files for reading."""

    NAME = "prepare"

    max_size: Annotated[Count, Help("Maximum bytes of a prepared file", "PrepStep")] = 64 * 1024**3
    max_ratio: Annotated[
        Count, Help("Maximum ratio between unpacked and packed size of an archive", "PrepStep::Decompress")
    ] = 200
    timeout: Annotated[Count, Help("Maximum seconds for the command of a Pipe step", "PrepStep::Pipe")] = 3600


class ContainerSection(Section):
    """Container sources."""

    NAME = "container"

    engine: Annotated[
        Literal["auto", "podman", "docker"],
        Help("Program that runs the images of Container sources", "FetchStep::Container"),
    ] = "auto"
    timeout: Annotated[
        Count | None, Help("Maximum seconds for a container; unlimited if not set", "FetchStep::Container")
    ] = None


class MqttSection(Section):
    """MQTT sources."""

    NAME = "mqtt"

    idle_millis: Annotated[
        Count, Help("Milliseconds without a message after which a pull from MQTT ends", "FetchStep::Mqtt")
    ] = 1000


class EthereumSection(Section):
    """EthereumLogs sources."""

    NAME = "ethereum"

    nodes: Annotated[
        Nodes | None,
        Help("Nodes for EthereumLogs sources that name only a chain", "FetchStep::EthereumLogs", is_secret=True),
    ] = None
    blocks_per_request: Annotated[
        Count, Help("Maximum number of blocks per request to an Ethereum node", "FetchStep::EthereumLogs")
    ] = 100_000
    blocks_per_commit: Annotated[
        Count, Help("Maximum number of blocks between two commits", "FetchStep::EthereumLogs")
    ] = 1_000_000
    confirmations: Annotated[
        Count,
        Help("Number of newest blocks to skip, since they may still be replaced", "FetchStep::EthereumLogs"),
    ] = 0
    ask_times: Annotated[
        bool,
        Help("Request the times of blocks if the node does not send them with the logs", "FetchStep::EthereumLogs"),
    ] = False


class AutomationSection(Section):
    """The scheduler, `odf run`."""

    NAME = "automation"

    parallel: Annotated[Positive, Help("Maximum number of simultaneous runs of the scheduler")] = 2
    timeout: Annotated[
        Positive | None, Help("Maximum seconds for a run without a timeout in its schedule; unlimited if not set")
    ] = None
    record_interval: Annotated[Positive, Help("Maximum seconds until runs are committed to the dataset of runs")] = 60


class MailSection(Section):
    """The server that sends mails, for notifications."""

    NAME = "mail"

    server: Annotated[Text | None, Help("Mail server (SMTP) for notifications")] = None
    port: Annotated[
        Port | None, Help("Port of the mail server; 587, 465 or 25, depending on mail.security, if not set")
    ] = None
    security: Annotated[
        Literal["starttls", "tls", "none"],
        Help("Encryption: starttls, tls (from the first byte) or none"),
    ] = "starttls"
    sender: Annotated[Address | None, Help("Sender address of mails")] = None
    user: Annotated[Text | None, Help("User name for the mail server; no login if not set")] = None
    password: Annotated[
        Text | None, Help("Password for the mail server; prefer the environment variable to a file", is_secret=True)
    ] = None
    password_file: Annotated[Text | None, Help("File with this password")] = None


class OpenLineageSection(Section):
    """Events of pulls for a receiver of OpenLineage."""

    NAME = "openLineage"

    url: Annotated[HttpUrl | None, Help("URL of the OpenLineage receiver; no events are sent if not set")] = None
    namespace: Annotated[Text, Help("Namespace of jobs and datasets in the events")] = "odf"
    api_key: Annotated[
        Text | None, Help("API key for the receiver; prefer the environment variable to a file", is_secret=True)
    ] = None
    api_key_file: Annotated[Text | None, Help("File with this API key")] = None
    timeout: Annotated[Positive, Help("Maximum seconds by which events may delay a pull")] = 10


class ArchiveSection(Section):
    """Archives of files."""

    NAME = "archive"

    name: Annotated[
        Text | None, Help("Default archive, if --archive is not given: a name, or the URL of an archive on a server")
    ] = None
    where: Annotated[Text | None, Help("Default origin (where) of pushed files")] = None
    hash: Annotated[Literal["blake3", "sha3-256"], Help("Hash function for the names of stored files")] = "blake3"
    compression: Annotated[
        Literal["plain", "zstd"], Help("Compress stored files if that saves space; hashes and clients are not affected")
    ] = "plain"
    queue: Annotated[Text | None, Help("Folder of the upload queue; .odf/archive/queue if not set")] = None
    queue_files: Annotated[Positive, Help("Maximum number of files in the queue")] = 1_000_000
    queue_bytes: Annotated[Positive, Help("Maximum total bytes of files in the queue")] = 100 * 1024**3
    queue_free: Annotated[Count, Help("Bytes that must stay free on the disk of the queue")] = 1024**3


# --- All of them -----------------------------------------------------------------------------------------------------

WORKSPACE_SECTIONS: tuple[type[Section], ...] = (
    CommandsSection,
    EngineSection,
    IngestSection,
    SignaturesSection,
    ProofsSection,
    ServeSection,
    SharingSection,
    RelaySection,
    SourcesSection,
    FetchSection,
    TransferSection,
    PrepareSection,
    ContainerSection,
    MqttSection,
    EthereumSection,
    AutomationSection,
    MailSection,
    OpenLineageSection,
    ArchiveSection,
)
DATASET_SECTIONS: tuple[type[Section], ...] = (WatermarkSection, RetractionsSection, CopySection)


def _by_key(sections: tuple[type[Section], ...]) -> dict[str, Setting]:
    return {setting.key: setting for section in sections for setting in settings_in(section)}


SETTINGS = _by_key(WORKSPACE_SECTIONS)
DATASET_SETTINGS = _by_key(DATASET_SECTIONS)
"""Settings of one root dataset."""
