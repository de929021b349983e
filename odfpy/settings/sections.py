"""All settings, in the order of `odf config list`: those of a workspace, and those of a dataset.

Each is declared as `name: Annotated[type, Help(sentence)] = default` in its section. `max_rows` in `ServeSection` is
`serve.maxRows` in files. A new setting also has a row in `docs/cli.md` and in `workspace_template/.odf/config.yaml`.
"""

# No `from __future__ import annotations` here: annotations are read when a command starts, and text takes longer.

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
    Positive,
    Signers,
    Size,
    Storage,
    Text,
)
from odfpy.settings.setting import Help, Section, Setting, settings_in

# --- Of a workspace --------------------------------------------------------------------------------------------------


class CommandsSection(Section):
    """Commands, as processes."""

    NAME = "commands"

    server: Annotated[
        bool, Help("Keep a process with everything imported, from which later commands of the session are forked")
    ] = False
    idle_timeout: Annotated[Positive, Help("Seconds after which this process ends without a command")] = 600


class EngineSection(Section):
    """The processes that run queries."""

    NAME = "engine"

    idle_timeout: Annotated[Count, Help("Seconds after which an engine without work ends")] = 600
    start_timeout: Annotated[Count, Help("Seconds that the start of an engine may take")] = 120
    job_timeout: Annotated[Count | None, Help("Seconds that one job of an engine may take; unlimited if not set")] = (
        None
    )
    memory: Annotated[Heap | None, Help("Greatest heap of the engine's Java process, for example 2g")] = None
    sandbox: Annotated[
        Literal["required", "best-effort", "off"],
        Help("Run the engine in a sandbox: always, if the system allows it, or never", "Execution Model"),
    ] = "best-effort"
    max_memory: Annotated[
        Size | None, Help("Memory of a sandboxed engine; 9/10 of the machine's memory if not set")
    ] = None
    max_disk: Annotated[
        Size | None, Help("Disk space that a job of a sandboxed engine may write; unlimited if not set")
    ] = None
    serve_unconfined: Annotated[
        bool, Help("Let strangers' queries into an engine without a whole sandbox", "Execution Model")
    ] = False
    startup_cache: Annotated[bool, Help("Keep a cache of loaded Java classes that makes starts shorter")] = True
    master: Annotated[Master, Help("Place where Spark runs tasks: local[2], or the address of a cluster")] = "local[*]"
    host: Annotated[Text | None, Help("Address at which executors reach this machine; detected if not set")] = None
    storage: Annotated[
        Storage | None, Help("URL of a folder through which a cluster gets files if it does not see the workspace")
    ] = None
    properties: Annotated[Text | None, Help("File with properties of Spark for a cluster")] = None


class IngestSection(Section):
    """Ingests into root datasets."""

    NAME = "ingest"

    lane: Annotated[
        Literal["auto", "local", "spark"],
        Help("Place of ingests: this process, or tasks of the engine", "Ingestion"),
    ] = "auto"
    memory: Annotated[Size, Help("Memory for an ingest in this process; auto leaves more to Spark", "Ingestion")] = "2g"


class SignaturesSection(Section):
    """Signatures of blocks."""

    NAME = "signatures"

    sign: Annotated[bool, Help("Sign commits of this workspace with the key of the user")] = True
    require: Annotated[Signers | None, Help("Signers that copies must have; none if not set")] = None


class ProofsSection(Section):
    """Signed answers to queries."""

    NAME = "proofs"

    key: Annotated[Text | None, Help("File with the key that signs answers to queries; the user's key if not set")] = (
        None
    )


class ServeSection(Section):
    """Limits of `odf serve`; `odfpy.serving.settings.ServeSettings` has what cannot be set in a file."""

    NAME = "serve"

    query_timeout: Annotated[Positive, Help("Seconds that a query over HTTP may take, with its waiting time")] = 60
    running_queries: Annotated[Positive, Help("Queries over HTTP that run at the same time")] = 4
    max_queries: Annotated[Positive, Help("Queries over HTTP that run or wait; the server refuses more")] = 256
    max_queries_each: Annotated[Positive, Help("Queries of one token, or of one address without a token")] = 128
    query_memory: Annotated[
        Positive, Help("Bytes of memory that a query may take, over HTTP or Flight SQL, but for Spark")
    ] = 2 * 1024**3
    max_rows: Annotated[Positive, Help("Rows that the answer to a query over HTTP may have")] = 100_000
    max_answer: Annotated[Positive, Help("Bytes of Arrow data that the answer may have")] = 32 * 1024**2
    max_object: Annotated[Positive, Help("Bytes that one pushed object, or the data of one ingest, may have")] = (
        64 * 1024**3
    )
    max_connections_each: Annotated[
        Positive, Help("Connections of one address at the same time; the server refuses more")
    ] = 500
    max_stranger_body: Annotated[Positive, Help("Bytes that the body of a request without a token may have")] = (
        128 * 1024
    )
    request_memory: Annotated[Positive, Help("Bytes of memory for unfinished requests with a token")] = 384 * 1024**2
    request_memory_each: Annotated[Positive, Help("Bytes of this memory that one token may take")] = 256 * 1024**2
    stranger_memory: Annotated[Positive, Help("Bytes of memory for unfinished requests without a token")] = 64 * 1024**2
    stranger_memory_each: Annotated[Positive, Help("Bytes of this memory that one address may take")] = 16 * 1024**2
    patience: Annotated[
        Positive, Help("Seconds that the server waits for a client, and a query over Flight SQL for a free place")
    ] = 60
    flight_timeout: Annotated[
        Positive, Help("Seconds that a query over Flight SQL may take, with the time to fetch its rows")
    ] = 3600
    flight_queries: Annotated[
        Positive, Help("Answers over Flight SQL that may be open at the same time; the server refuses more")
    ] = 256
    flight_working: Annotated[Positive, Help("Answers over Flight SQL that the server computes at the same time")] = 8
    passed_bytes: Annotated[
        Positive, Help("Bytes of Arrow data that a relay passes on from one part of another relay")
    ] = 16 * 1024**3


class SharingSection(Section):
    """Sharing over the Delta Sharing protocol."""

    NAME = "sharing"

    database: Annotated[
        Text | None,
        Help("URL of the database of shares, users and grants; a file in the workspace if not set", is_secret=True),
    ] = None
    url: Annotated[Text | None, Help("URL of the server as recipients reach it, for profile files")] = None
    url_lifetime: Annotated[Positive, Help("Seconds that the URL of a shared file is good for")] = 3600
    login_lifetime: Annotated[
        Positive, Help("Seconds that a token is good for which a user gets for their password")
    ] = 43_200
    presigned: Annotated[bool, Help("Let stores give out files that show as a whole, by presigned URLs")] = True
    audit_interval: Annotated[
        Positive, Help("Seconds after which accesses are committed to the audit dataset, at most")
    ] = 10
    cache_size: Annotated[Positive, Help("Bytes of files made for recipients that are kept")] = 10 * 1024**3


class RelaySection(Section):
    """The relay of this workspace, in a web of relays."""

    NAME = "relay"

    results: Annotated[
        Text | None,
        Help("Folder or URL (s3, gs, az) for results that are fetched later; .odf/relay/results if not set"),
    ] = None
    result_lifetime: Annotated[Positive, Help("Seconds for which such a result is kept")] = 604_800
    max_result: Annotated[Positive, Help("Bytes that such a result may have, and all of one user together")] = (
        64 * 1024**3
    )


class SourcesSection(Section):
    """Limits of what sources may reach from this machine."""

    NAME = "sources"

    variables: Annotated[Patterns | None, Help("Variables that sources may use; any if not set", "FetchStep")] = None
    hosts: Annotated[Patterns | None, Help("Hosts that sources may ask; any if not set", "FetchStep")] = None
    folders: Annotated[
        Folders | None, Help("Folders that sources may read, besides the workspace", "FetchStep::FilesGlob")
    ] = None
    images: Annotated[Patterns | None, Help("Images that sources may run; any if not set", "FetchStep::Container")] = (
        None
    )


class FetchSection(Section):
    """Fetching from sources."""

    NAME = "fetch"

    max_size: Annotated[Count, Help("Bytes that one fetched file may have", "FetchStep")] = 64 * 1024**3
    timeout: Annotated[Count, Help("Seconds to wait for a server before giving up", "FetchStep")] = 30
    retries: Annotated[Count, Help("Number of retries when a source breaks off", "FetchStep")] = 3
    batch_size: Annotated[
        Count, Help("Rows after which a stream of rows is committed, before it continues", "FetchStep")
    ] = 10_000


class TransferSection(Section):
    """Copies from repositories."""

    NAME = "transfer"

    least_speed: Annotated[Count, Help("Bytes per second that a sender must keep up; 0 for any", "Repository")] = 4096
    window: Annotated[Positive, Help("Seconds over which the speed is measured", "Repository")] = 60
    max_unpacked: Annotated[Count, Help("Bytes that a data file of a copy may have when unpacked", "Repository")] = (
        64 * 1024**3
    )


class PrepareSection(Section):
    """Preparing fetched files for reading."""

    NAME = "prepare"

    max_size: Annotated[Count, Help("Bytes that a prepared file may have", "PrepStep")] = 64 * 1024**3
    max_ratio: Annotated[
        Count, Help("Greatest ratio between the contents of an archive and its packed size", "PrepStep::Decompress")
    ] = 200
    timeout: Annotated[Count, Help("Seconds that the command of a Pipe step may take", "PrepStep::Pipe")] = 3600


class ContainerSection(Section):
    """Container sources."""

    NAME = "container"

    engine: Annotated[
        Literal["auto", "podman", "docker"],
        Help("Program that runs the images of Container sources", "FetchStep::Container"),
    ] = "auto"
    timeout: Annotated[
        Count | None, Help("Seconds that a container may run; unlimited if not set", "FetchStep::Container")
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
        Help("Nodes of EthereumLogs sources that name only a chain", "FetchStep::EthereumLogs", is_secret=True),
    ] = None
    blocks_per_request: Annotated[
        Count, Help("Blocks of one request to an Ethereum node", "FetchStep::EthereumLogs")
    ] = 100_000
    blocks_per_commit: Annotated[
        Count, Help("Blocks after which progress is committed at the latest", "FetchStep::EthereumLogs")
    ] = 1_000_000
    confirmations: Annotated[
        Count,
        Help("Blocks to stay behind the newest one, which may still be replaced", "FetchStep::EthereumLogs"),
    ] = 0
    ask_times: Annotated[
        bool,
        Help("Ask for the time of blocks that a node does not send with the logs", "FetchStep::EthereumLogs"),
    ] = False


class AutomationSection(Section):
    """The scheduler, `odf run`."""

    NAME = "automation"

    parallel: Annotated[Positive, Help("Runs of the scheduler at the same time")] = 2
    timeout: Annotated[
        Positive | None, Help("Seconds that a run may take, if its schedule says nothing; unlimited if not set")
    ] = None
    record_interval: Annotated[
        Positive, Help("Seconds after which runs are committed to the dataset of runs, at most")
    ] = 60


class MailSection(Section):
    """The server that sends mails, for notifications."""

    NAME = "mail"

    server: Annotated[Text | None, Help("Mail server (SMTP) that notifications go out by")] = None
    port: Annotated[Positive | None, Help("Its port; 587, 465 or 25 by mail.security if not set")] = None
    security: Annotated[
        Literal["starttls", "tls", "none"],
        Help("Encryption: after a greeting in the clear, from the first byte, or none"),
    ] = "starttls"
    sender: Annotated[Address | None, Help("Address that mails come from")] = None
    user: Annotated[Text | None, Help("User to log in as; nobody logs in if not set")] = None
    password: Annotated[
        Text | None, Help("Password of this user; better in the variable than in a file", is_secret=True)
    ] = None
    password_file: Annotated[Text | None, Help("File with the password")] = None


class OpenLineageSection(Section):
    """Events of pulls for a receiver of OpenLineage."""

    NAME = "openLineage"

    url: Annotated[HttpUrl | None, Help("Address of the receiver; no events are sent if not set")] = None
    namespace: Annotated[Text, Help("Namespace of jobs and datasets in the events")] = "odf"
    api_key: Annotated[
        Text | None, Help("Key for the receiver; better in the variable than in a file", is_secret=True)
    ] = None
    api_key_file: Annotated[Text | None, Help("File with the key")] = None
    timeout: Annotated[Positive, Help("Seconds that all events of a pull may hold it up")] = 10


class ArchiveSection(Section):
    """Archives of files."""

    NAME = "archive"

    name: Annotated[
        Text | None, Help("Archive that commands mean without --archive: a name, or the URL of one on a server")
    ] = None
    where: Annotated[Text | None, Help("Place that pushed files come from if nobody says otherwise")] = None
    hash: Annotated[Literal["blake3", "sha3-256"], Help("Hash that names the files in the store")] = "blake3"
    compression: Annotated[
        Literal["plain", "zstd"], Help("Keep files that get smaller compressed; hashes and clients do not see it")
    ] = "plain"
    queue: Annotated[
        Text | None, Help("Folder of the queue of files on their way into it; .odf/archive/queue if not set")
    ] = None
    queue_files: Annotated[Positive, Help("Files that the queue takes")] = 1_000_000
    queue_bytes: Annotated[Positive, Help("Bytes that files in the queue may have together")] = 100 * 1024**3
    queue_free: Annotated[Count, Help("Bytes on the disk of the queue that it leaves free")] = 1024**3


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
