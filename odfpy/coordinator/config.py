"""Settings, layered as git's are: the workspace over folders above it over the user over defaults.

<workspace>/.odf/config.yaml          this workspace
<folder>/.odfconfig.yaml              every workspace in or below that folder, the nearest first
$XDG_CONFIG_HOME/odf/config.yaml      the user (by default ~/.config)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from odfpy.chain.files import replace_file
from odfpy.codec.yaml import dump, load_documents
from odfpy.errors import MalformedManifest, OdfError, UsageError, did_you_mean

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
    """

    key: str
    type: type[str | int | bool]
    default: Value | None
    description: str
    form: tuple[str, str] = (".*", "text")

    @property
    def values(self) -> str:
        """What values are, in words."""
        return {str: self.form[1], int: "a whole number", bool: "true or false"}[self.type]

    def accepts(self, value: object) -> bool:
        """Whether a value is one for this setting."""
        if isinstance(value, str) and not re.fullmatch(self.form[0], value):
            return False
        return type(value) is self.type and not (isinstance(value, int) and value < 0)


_LANE = ("auto|local|spark", "auto, local or spark")
_SIZE = ("[0-9]+[kmgtKMGT]", "a size such as 512m or 2g")
_CONTAINER_ENGINE = ("auto|podman|docker", "auto, podman or docker")
_NODES = (r"\s*[0-9]+=[^\s=].*", "chain ids with URLs, such as 1=https://node.example.com")

SETTINGS = {
    setting.key: setting
    for setting in (
        Setting("engine.idleTimeout", int, 600, "Seconds after which an engine without work ends"),
        Setting("engine.startTimeout", int, 120, "Seconds that the start of an engine may take"),
        Setting("engine.jobTimeout", int, None, "Seconds that one job of an engine may take; unlimited if not set"),
        Setting("engine.memory", str, None, "Greatest heap of the engine's Java process, for example 2g", _SIZE),
        Setting("engine.startupCache", bool, True, "Keep a cache of loaded Java classes that makes starts shorter"),
        Setting("engine.master", str, "local[*]", "Where Spark runs its tasks: local[2], or the address of a cluster"),
        Setting("engine.host", str, "127.0.0.1", "Address at which the executors of a cluster reach this machine"),
        Setting("ingest.lane", str, "auto", "Where ingests run: in this process, or as tasks of the engine", _LANE),
        Setting("ingest.memory", str, "2g", "Memory for an ingest in this process; auto leaves more to Spark", _SIZE),
        Setting("fetch.maxSize", int, 64 * 1024**3, "Bytes that one fetched file may have"),
        Setting("fetch.timeout", int, 30, "Seconds to wait for a server before giving up"),
        Setting("fetch.retries", int, 3, "How often to try again when a source breaks off"),
        Setting("fetch.batchSize", int, 10_000, "Rows after which a stream of rows is committed, before it goes on"),
        Setting("prepare.maxSize", int, 64 * 1024**3, "Bytes that a prepared file may have"),
        Setting("prepare.maxRatio", int, 200, "How many times larger than a packed file what is in it may be"),
        Setting("prepare.timeout", int, 3600, "Seconds that the command of a Pipe step may take"),
        Setting("container.engine", str, "auto", "What runs the images of Container sources", _CONTAINER_ENGINE),
        Setting("container.timeout", int, None, "Seconds that a container may run; unlimited if not set"),
        Setting("mqtt.idleMillis", int, 1000, "Milliseconds without a message after which a pull from MQTT ends"),
        Setting("ethereum.nodes", str, None, "Nodes of EthereumLogs sources that name only a chain", _NODES),
        Setting("ethereum.blocksPerRequest", int, 100_000, "Blocks that an Ethereum node is asked for at once"),
        Setting("ethereum.blocksPerCommit", int, 1_000_000, "Blocks after which progress is committed at the latest"),
        Setting("ethereum.confirmations", int, 0, "Blocks to stay behind the newest one, which may still be replaced"),
        Setting("ethereum.askTimes", bool, False, "Ask for the time of blocks that a node does not tell with the logs"),
    )
}


@dataclass(frozen=True, slots=True)
class ConfigItem:
    """A setting with the value in force and where that is from: a file, or `default`."""

    setting: Setting
    value: Value | None
    origin: str


class Config:
    """The settings in force in a workspace."""

    def __init__(self, layers: list[tuple[Path, dict[str, Value]]], workspace_file: Path, user_file: Path) -> None:
        self._layers = layers
        self._files = {"workspace": workspace_file, "user": user_file}

    @classmethod
    def load(cls, root: Path) -> Config:
        """Read all layers.

        Raises:
            MalformedManifest: a file is damaged; the message names file and key.
        """
        workspace_file = root / ".odf" / "config.yaml"
        user_file = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "odf" / "config.yaml"
        folders = [folder / ".odfconfig.yaml" for folder in (root, *root.parents)]
        layers = [(path, _read(path)) for path in (workspace_file, *folders, user_file)]
        return cls([layer for layer in layers if layer[1]], workspace_file, user_file)

    def get(self, key: str) -> Any:
        """The value in force, None where nothing is set and there is no default.

        Raises:
            UsageError: there is no such setting.
        """
        return self.item(key).value

    def item(self, key: str) -> ConfigItem:
        """The value in force and where it is from."""
        setting = find(key)
        for path, values in self._layers:
            if setting.key in values:
                return ConfigItem(setting, values[setting.key], str(path))
        return ConfigItem(setting, setting.default, "default")

    def items(self) -> Iterator[ConfigItem]:
        """All settings."""
        return (self.item(key) for key in SETTINGS)

    def set(self, key: str, text: str | None, *, scope: str = "workspace") -> None:
        """Set a value in one layer's file, or with None take it out there.

        Raises:
            UsageError: no such setting, or not a value of it.
        """
        setting = find(key)
        path = self._files[scope]
        values = _read(path)
        if text is None:
            values.pop(setting.key, None)
        else:
            values[setting.key] = parse(setting, text)
        _write(path, values)
        self._layers = [layer for layer in self._layers if layer[0] != path]
        self._layers.insert(0 if scope == "workspace" else len(self._layers), (path, values))


def find(key: str) -> Setting:
    """The setting of that name.

    Raises:
        UsageError: with a suggestion.
    """
    for known, setting in SETTINGS.items():
        if known.lower() == key.lower():
            return setting
    raise UsageError(
        f"No setting is called {key!r}",
        hint=did_you_mean(key, SETTINGS, otherwise="`odf config list` shows all of them."),
    )


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


def _read(path: Path) -> dict[str, Value]:
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
            values[key] = _checked(path, key, value)
    return values


def _flat(tree: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else key)
    elif tree is not None or prefix:
        yield prefix, tree


def _checked(path: Path, key: str, value: Any) -> Value:
    try:
        setting = find(key)
    except UsageError as error:
        raise MalformedManifest(f"{path}: {error.message}", hint=error.hint) from error
    if not setting.accepts(value):
        raise MalformedManifest(
            f"{path}: {key} must be {setting.values}, not {value!r}", hint=f"{setting.description}."
        )
    return value  # type: ignore[no-any-return]


def _write(path: Path, values: dict[str, Value]) -> None:
    tree: dict[str, dict[str, Value]] = {}
    for key, value in sorted(values.items()):
        group, _, name = key.partition(".")
        tree.setdefault(group, {})[name] = value
    replace_file(path, (_comments_of(path) + (dump(tree) if tree else "")).encode())


def _comments_of(path: Path) -> str:
    """The comments that a file begins with, which outlive changes of what follows."""
    if not path.exists():
        return ""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(takewhile(lambda line: line.startswith("#") or not line.strip(), lines))
