"""Settings, layered as git's are: the workspace over folders above it over the user over defaults.

<workspace>/.odf/config.yaml          this workspace
<folder>/.odfconfig.yaml              every workspace in or below that folder, the nearest first
$XDG_CONFIG_HOME/odf/config.yaml      the user (by default ~/.config)

Settings of a single dataset are others, and only in its own folder: `info/config.yaml`. They are never copied anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from odfpy.codec.yaml import dump, load_documents
from odfpy.data.duration import DURATION_FORM
from odfpy.errors import MalformedManifest, OdfError, UsageError, did_you_mean
from odfpy.files import configuration_folder, replace_file

Value = str | int | bool


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that exists.

    Attributes:
        key: dotted name.
        type: what values are.
        default: value where nothing is set, None for none.
        description: one line for people.
        form: what texts are like: a regular expression, and the same in words.
        least: the smallest of numbers.
        secret: whether values may hold tokens, so that they are shown only to who asks for this setting.
    """

    key: str
    type: type[str | int | bool]
    default: Value | None
    description: str
    form: tuple[str, str] = (".*", "text")
    least: int = 0
    secret: bool = False

    @property
    def values(self) -> str:
        """Return what values are, in words."""
        number = f"a whole number from {self.least} on" if self.least else "a whole number"
        return {str: self.form[1], int: number, bool: "true or false"}[self.type]

    def accepts(self, value: object) -> bool:
        """Return whether a value is one for this setting."""
        if isinstance(value, str) and not re.fullmatch(self.form[0], value):
            return False
        return type(value) is self.type and not (isinstance(value, int) and value < self.least)


_LANE = ("auto|local|spark", "auto, local or spark")
_SIZE = ("[0-9]+[kmgtKMGT]", "a size such as 512m or 2g")
_SANDBOX = ("required|best-effort|off", "required, best-effort or off")
_CONTAINER_ENGINE = ("auto|podman|docker", "auto, podman or docker")
_MASTER = (
    r"local(\[(\*|[1-9][0-9]*)\])?|spark://[^\s/,:]+:[0-9]+(,[^\s/,:]+:[0-9]+)*|yarn|k8s://\S+",
    "local[*], local[2], spark://HOST:PORT, yarn or k8s://https://HOST:PORT",
)
_STORAGE = (r"[a-z][a-z0-9+.-]*://(?!\S*:\S*@)\S+", "the URL of a folder without a password, such as s3a://bucket/odf")
_SIGNERS = (
    r"\s*[^\s,][^\s,]*\s*(,\s*[^\s,]+\s*)*",
    "names of trusted keys, keys, or owner, with commas between them, such as owner,alice",
)
_PATTERNS = (
    r"\s*[^\s,][^,]*(,\s*[^\s,][^,]*)*",
    "patterns with commas between them, such as a*,b; none for none",
)
_FOLDERS = (r"\s*(/|~)[^,]*(,\s*(/|~)[^,]*)*", "absolute paths of folders with commas between them")
_PERCENT = ("100%|[0-9]{1,2}%", "a share such as 50%")
_NODES = (r"\s*[0-9]+=[^\s=].*", "chain ids with URLs, such as 1=https://node.example.com")

_SERVE = tuple(
    Setting(f"serve.{name}", int, default, description, least=1)
    for name, default, description in (
        ("queryTimeout", 60, "Seconds that a query over HTTP may take, with the time that it waits"),
        ("runningQueries", 4, "Queries over HTTP that are worked on at the same time"),
        ("maxQueries", 256, "The same and those that wait; more are refused"),
        ("maxQueriesEach", 128, "Those of one token, or one address without a token"),
        ("queryMemory", 2 * 1024**3, "Bytes of memory that a query may take, over HTTP or Flight SQL, but for Spark"),
        ("maxRows", 100_000, "Rows that the answer to a query over HTTP may have"),
        ("maxAnswer", 32 * 1024**2, "Bytes of Arrow data that it may have"),
        ("maxObject", 64 * 1024**3, "Bytes that one pushed object, or the data of one ingest, may have"),
        ("maxConnectionsEach", 500, "Connections of one address at the same time; more are refused"),
        ("maxStrangerBody", 128 * 1024, "Bytes that the body of a request without a token may have"),
        ("requestMemory", 384 * 1024**2, "Bytes of memory for what comes from callers with a token, before it is done"),
        ("requestMemoryEach", 256 * 1024**2, "Bytes of it that one token may take"),
        ("strangerMemory", 64 * 1024**2, "Bytes of memory for what comes from callers without a token"),
        ("strangerMemoryEach", 16 * 1024**2, "Bytes of it that one address may take"),
        ("patience", 60, "Seconds that a client may let the server wait, or a query over Flight SQL its client"),
        ("flightTimeout", 3600, "Seconds that a query over Flight SQL may take, with the time to fetch its rows"),
        ("flightQueries", 256, "Answers over Flight SQL that may be open at the same time; more are refused"),
        ("flightWorking", 8, "How many of these may be computed at the same time"),
    )
)
"""Limits of `odf serve`; what each is about: `odfpy.serving.settings.ServeSettings`."""

SETTINGS = {
    setting.key: setting
    for setting in (
        Setting("engine.idleTimeout", int, 600, "Seconds after which an engine without work ends"),
        Setting("engine.startTimeout", int, 120, "Seconds that the start of an engine may take"),
        Setting("engine.jobTimeout", int, None, "Seconds that one job of an engine may take; unlimited if not set"),
        Setting("engine.memory", str, None, "Greatest heap of the engine's Java process, for example 2g", _SIZE),
        Setting(
            "engine.sandbox",
            str,
            "best-effort",
            "Whether the engine must run in a sandbox, does if it can, or not",
            _SANDBOX,
        ),
        Setting(
            "engine.maxMemory", str, None, "What a sandboxed engine may hold in memory; 9/10 of it if not set", _SIZE
        ),
        Setting("engine.maxDisk", str, None, "What a job of a sandboxed engine may write; unlimited if not set", _SIZE),
        Setting("engine.serveUnconfined", bool, False, "Let strangers' queries into an engine without a whole sandbox"),
        Setting("engine.startupCache", bool, True, "Keep a cache of loaded Java classes that makes starts shorter"),
        Setting(
            "engine.master", str, "local[*]", "Where Spark runs tasks: local[2], or the address of a cluster", _MASTER
        ),
        Setting("engine.host", str, None, "Address at which executors reach this machine; found out if not set"),
        Setting("engine.storage", str, None, "Where a cluster gets files if it does not see the workspace", _STORAGE),
        Setting("engine.properties", str, None, "File with properties of Spark for a cluster"),
        Setting("ingest.lane", str, "auto", "Where ingests run: in this process, or as tasks of the engine", _LANE),
        Setting("ingest.memory", str, "2g", "Memory for an ingest in this process; auto leaves more to Spark", _SIZE),
        Setting("signatures.sign", bool, True, "Sign what is committed here with the key of the user"),
        Setting("signatures.require", str, None, "By whom copies must be signed; by nobody if not set", _SIGNERS),
        Setting("proofs.key", str, None, "File with the key that signs answers to queries; the user's key if not set"),
        *_SERVE,
        Setting("sources.variables", str, None, "Variables that sources may use; any if not set", _PATTERNS),
        Setting("sources.hosts", str, None, "Hosts that sources may ask; any if not set", _PATTERNS),
        Setting("sources.folders", str, None, "Folders that sources may read, besides the workspace", _FOLDERS),
        Setting("sources.images", str, None, "Images that sources may run; any if not set", _PATTERNS),
        Setting("fetch.maxSize", int, 64 * 1024**3, "Bytes that one fetched file may have"),
        Setting("fetch.timeout", int, 30, "Seconds to wait for a server before giving up"),
        Setting("fetch.retries", int, 3, "How often to try again when a source breaks off"),
        Setting("fetch.batchSize", int, 10_000, "Rows after which a stream of rows is committed, before it goes on"),
        Setting("transfer.leastSpeed", int, 4096, "Bytes per second; whoever sends less is given up"),
        Setting("transfer.window", int, 60, "Seconds over which that is measured", least=1),
        Setting("transfer.maxUnpacked", int, 64 * 1024**3, "Bytes that a data file of a copy may have when unpacked"),
        Setting("prepare.maxSize", int, 64 * 1024**3, "Bytes that a prepared file may have"),
        Setting("prepare.maxRatio", int, 200, "How many times larger than a packed file what is in it may be"),
        Setting("prepare.timeout", int, 3600, "Seconds that the command of a Pipe step may take"),
        Setting("container.engine", str, "auto", "What runs the images of Container sources", _CONTAINER_ENGINE),
        Setting("container.timeout", int, None, "Seconds that a container may run; unlimited if not set"),
        Setting("mqtt.idleMillis", int, 1000, "Milliseconds without a message after which a pull from MQTT ends"),
        Setting(
            "ethereum.nodes", str, None, "Nodes of EthereumLogs sources that name only a chain", _NODES, secret=True
        ),
        Setting("ethereum.blocksPerRequest", int, 100_000, "Blocks that an Ethereum node is asked for at once"),
        Setting("ethereum.blocksPerCommit", int, 1_000_000, "Blocks after which progress is committed at the latest"),
        Setting("ethereum.confirmations", int, 0, "Blocks to stay behind the newest one, which may still be replaced"),
        Setting("ethereum.askTimes", bool, False, "Ask for the time of blocks that a node does not tell with the logs"),
    )
}


DATASET_SETTINGS = {
    setting.key: setting
    for setting in (
        Setting(
            "watermark.lag", str, "0s", "How far the watermark stays behind the greatest event time", DURATION_FORM
        ),
        Setting(
            "watermark.idle",
            str,
            None,
            "When nothing new came for that long, a pull lets the watermark follow system time, less the lag",
            DURATION_FORM,
        ),
        Setting(
            "retractions.share",
            str,
            "50%",
            "How much of its current rows one Snapshot may retract without --allow-retractions; 100% for anything",
            _PERCENT,
        ),
    )
}
"""What can be set for one root dataset."""

_DATASET_FILE = Path("info", "config.yaml")


@dataclass(frozen=True, slots=True)
class ConfigItem:
    """A setting with the value in force and where that is from: a file, or `default`."""

    setting: Setting
    value: Value | None
    origin: str


class Config:
    """The settings in force in a workspace, or of one dataset."""

    def __init__(
        self,
        settings: Mapping[str, Setting],
        layers: list[tuple[Path, dict[str, Value]]],
        own_file: Path,
        user_file: Path | None = None,
    ) -> None:
        self._settings = settings
        self._layers = layers
        self._own_file = own_file
        self._user_file = user_file

    @classmethod
    def load(cls, root: Path) -> Config:
        """Read all layers.

        Raises:
            MalformedManifest: a file is damaged; the message names file and key.
        """
        workspace_file = root / ".odf" / "config.yaml"
        user_file = configuration_folder() / "config.yaml"
        folders = [folder / ".odfconfig.yaml" for folder in (root, *root.parents)]
        layers = [(path, _read(path, SETTINGS)) for path in (workspace_file, *folders, user_file)]
        return cls(SETTINGS, [layer for layer in layers if layer[1]], workspace_file, user_file)

    @classmethod
    def of_dataset(cls, folder: Path) -> Config:
        """Read the settings of one dataset.

        Args:
            folder: the dataset's folder in the workspace.

        Raises:
            MalformedManifest: the file is damaged; the message names file and key.
        """
        file = folder / _DATASET_FILE
        return cls(DATASET_SETTINGS, [(file, _read(file, DATASET_SETTINGS))], file)

    def get(self, key: str) -> Any:
        """The value in force, None where nothing is set and there is no default.

        Raises:
            UsageError: there is no such setting.
        """
        return self.item(key).value

    def item(self, key: str) -> ConfigItem:
        """The value in force and where it is from."""
        setting = find(key, self._settings)
        for path, values in self._layers:
            if setting.key in values:
                return ConfigItem(setting, values[setting.key], str(path))
        return ConfigItem(setting, setting.default, "default")

    def items(self) -> Iterator[ConfigItem]:
        """All settings."""
        return (self.item(key) for key in self._settings)

    def set(self, key: str, text: str | None, *, for_user: bool = False) -> None:
        """Set a value in the file of the workspace, dataset or user, or with None take it out there.

        Args:
            key: name of the setting.
            text: the value as text, None to take it out.
            for_user: whether it goes to the file of the user.

        Raises:
            UsageError: no such setting, or not a value of it.
        """
        setting = find(key, self._settings)
        path = self._user_file if for_user else self._own_file
        if path is None:
            raise UsageError("Settings of a dataset are not those of a user", hint="Leave out --user, or --dataset.")
        values = _read(path, self._settings)
        if text is None:
            values.pop(setting.key, None)
        else:
            values[setting.key] = parse(setting, text)
        _write(path, values)
        self._layers = [layer for layer in self._layers if layer[0] != path]
        self._layers.insert(len(self._layers) if for_user else 0, (path, values))


def find(key: str, settings: Mapping[str, Setting] = SETTINGS) -> Setting:
    """The setting of that name, among those of a workspace or of a dataset.

    Raises:
        UsageError: with a suggestion.
    """
    found = _in_context(key, settings)
    if found is not None:
        return found
    if (of_dataset := _in_context(key, DATASET_SETTINGS)) is not None:
        raise UsageError(f"{of_dataset.key} is a setting of single datasets", hint="Say of which: --dataset NAME.")
    if (of_workspace := _in_context(key, SETTINGS)) is not None:
        raise UsageError(f"{of_workspace.key} is no setting of single datasets", hint="Leave out --dataset.")
    listing = "odf config list" if settings is SETTINGS else "odf config list --dataset NAME"
    raise UsageError(
        f"No setting is called {key!r}",
        hint=did_you_mean(key, [*settings, *DATASET_SETTINGS], otherwise=f"`{listing}` shows all of them."),
    )


def _in_context(key: str, settings: Mapping[str, Setting]) -> Setting | None:
    return next((setting for known, setting in settings.items() if known.lower() == key.lower()), None)


def parse(setting: Setting, text: str) -> Value:
    """A value from text.

    Raises:
        UsageError: not a value of the setting.
    """
    value: Value = text
    if setting.type is bool and text.lower() in ("true", "false"):
        value = text.lower() == "true"
    elif setting.type is int and text.isascii() and text.isdecimal():
        value = int(text)
    if not setting.accepts(value):
        raise UsageError(f"{setting.key} is {setting.values}, not {text!r}", hint=f"{setting.description}.")
    return value


def _read(path: Path, settings: Mapping[str, Setting]) -> dict[str, Value]:
    try:
        documents = load_documents(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OdfError(f"Cannot read the configuration {path}: {reason}") from error
    except MalformedManifest as error:
        raise MalformedManifest(error.message, hint="Mend the file, or delete it.") from error
    values: dict[str, Value] = {}
    for document in documents:
        for key, value in _flat(document.tree, ""):
            values[key] = _checked(path, key, value, settings)
    return values


def _flat(tree: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else key)
    elif tree is not None or prefix:
        yield prefix, tree


def _checked(path: Path, key: str, value: Any, settings: Mapping[str, Setting]) -> Value:
    try:
        setting = find(key, settings)
    except UsageError as error:
        raise MalformedManifest(f"{path}: {error.message}", hint=error.hint) from error
    if not setting.accepts(value):
        raise MalformedManifest(
            f"{path}: {key} must be {setting.values}" + ("" if setting.secret else f", not {value!r}"),
            hint=f"{setting.description}.",
        )
    return value  # type: ignore[no-any-return]


def _write(path: Path, values: dict[str, Value]) -> None:
    tree: dict[str, dict[str, Value]] = {}
    for key, value in sorted(values.items()):
        group, _, name = key.partition(".")
        tree.setdefault(group, {})[name] = value
    text = _comments_of(path) + (dump(tree) if tree else "")
    replace_file(path, text.encode(), mode=0o600)  # URLs may hold tokens


def _comments_of(path: Path) -> str:
    """The comments that a file begins with, which outlive changes of what follows."""
    if not path.exists():
        return ""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(takewhile(lambda line: line.startswith("#") or not line.strip(), lines))
