"""Settings in layers, as in git: the environment, the workspace, the folders above it, the user, defaults.

    ODF_<SECTION>_<NAME>                  this process: `ODF_ENGINE_IDLE_TIMEOUT` is `engine.idleTimeout`
    <workspace>/.odf/config.yaml          this workspace
    <folder>/.odfconfig.yaml              every workspace in or below that folder, the nearest first
    $XDG_CONFIG_HOME/odf/config.yaml      the user (by default ~/.config)

Settings of a single dataset are separate: they are in the dataset's folder, in `info/config.yaml`, and are never
copied. All settings are defined in `odfpy.settings`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from odfpy.codec.yaml import dump, load_documents
from odfpy.errors import MalformedManifest, OdfError, UsageError, did_you_mean
from odfpy.files import config_files, locked_for_change, read_regular, replace_file
from odfpy.settings.sections import DATASET_SETTINGS, SETTINGS, WORKSPACE_SECTIONS
from odfpy.settings.setting import Section, Setting, Value, settings_in
from odfpy.values import dataclass

S = TypeVar("S", bound=Section)

_DATASET_FILE = Path("info", "config.yaml")


@dataclass(frozen=True, slots=True)
class ConfigItem:
    """A setting with its current value and its origin: a variable, a file, or `default`."""

    setting: Setting
    value: Value | None
    origin: str

    @property
    def shown(self) -> Value | None:
        """Return the value for display; a secret value is shown as "(set)"."""
        return "(set)" if self.setting.help.is_secret and self.value is not None else self.value


class Config:
    """The settings of a workspace, or of one dataset."""

    def __init__(
        self,
        settings: Mapping[str, Setting],
        layers: list[tuple[Path, dict[str, Value]]],
        own_file: Path,
        user_file: Path | None = None,
        variables: Mapping[str, Value] | None = None,
    ) -> None:
        self._settings = settings
        self._variables = variables or {}
        self._layers = layers
        self._own_file = own_file
        self._user_file = user_file

    @classmethod
    def load(cls, root: Path) -> Config:
        """Read all layers.

        Raises:
            MalformedManifest: a file is damaged; the message names file and key.
            UsageError: a variable is not a setting, or has an invalid value.
        """
        files = config_files(root)
        layers = [(path, _read(path, SETTINGS)) for path in files]
        variables = _from_environment(os.environ)
        return cls(SETTINGS, [layer for layer in layers if layer[1]], files[0], files[-1], variables)

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

    def section(self, kind: type[S]) -> S:
        """Return a section with the current values."""
        return kind(**{setting.attribute: self.item(setting.key).value for setting in settings_in(kind)})

    def get(self, key: str) -> Any:
        """Return the current value, None if it is not set and has no default.

        Raises:
            UsageError: the setting does not exist.
        """
        return self.item(key).value

    def item(self, key: str) -> ConfigItem:
        """Return the current value and its origin."""
        setting = find(key, self._settings)
        if setting.key in self._variables:
            return ConfigItem(setting, self._variables[setting.key], setting.variable)
        for path, values in self._layers:
            if setting.key in values:
                return ConfigItem(setting, values[setting.key], str(path))
        return ConfigItem(setting, setting.default, "default")

    def items(self) -> Iterator[ConfigItem]:
        """Yield all settings."""
        return (self.item(key) for key in self._settings)

    def set(self, key: str, text: str | None, *, for_user: bool = False) -> None:
        """Set a value in the file of the workspace, dataset or user, or remove it from the file.

        Args:
            key: name of the setting.
            text: the value as text, None to remove it.
            for_user: whether to write to the file of the user.

        Raises:
            UsageError: the setting does not exist, or the value is invalid.
        """
        setting = find(key, self._settings)
        path = self._user_file if for_user else self._own_file
        if path is None:
            raise UsageError("Settings of a dataset are not those of a user", hint="Omit --user or --dataset.")
        value = None if text is None else parse(setting, text)
        with locked_for_change(path):  # prevents lost updates
            values = _read(path, self._settings)
            if value is None:
                values.pop(setting.key, None)
            else:
                values[setting.key] = value
            _write(path, values)
        self._layers = [layer for layer in self._layers if layer[0] != path]
        self._layers.insert(len(self._layers) if for_user else 0, (path, values))


def find(key: str, settings: Mapping[str, Setting] = SETTINGS) -> Setting:
    """Return the setting with a name, among those of a workspace or of a dataset.

    Raises:
        UsageError: the setting does not exist; the message has a suggestion.
    """
    setting = _in_context(key, settings)
    if setting is not None:
        return setting
    if (of_dataset := _in_context(key, DATASET_SETTINGS)) is not None:
        raise UsageError(f"{of_dataset.key} is a setting of single datasets", hint="Add --dataset NAME.")
    if (of_workspace := _in_context(key, SETTINGS)) is not None:
        raise UsageError(f"{of_workspace.key} is not a setting of single datasets", hint="Omit --dataset.")
    listing = "odf config list" if settings is SETTINGS else "odf config list --dataset NAME"
    raise UsageError(
        f"No setting is called {key!r}",
        hint=did_you_mean(key, [*settings, *DATASET_SETTINGS], otherwise=f"`{listing}` shows all of them."),
    )


def _in_context(key: str, settings: Mapping[str, Setting]) -> Setting | None:
    return next((setting for known, setting in settings.items() if known.lower() == key.lower()), None)


def parse(setting: Setting, text: str) -> Value:
    """Parse a value.

    Raises:
        UsageError: the value is invalid for the setting.
    """
    value = setting.read(text)
    if not setting.accepts(value):
        raise UsageError(f"{setting.key} is {setting.values}, not {text!r}", hint=f"{setting.description}.")
    return value


def _from_environment(environment: Mapping[str, str]) -> dict[str, Value]:
    """Return the settings in environment variables; empty variables are ignored."""
    known = {setting.variable: setting for setting in SETTINGS.values()}
    prefixes = tuple(f"ODF_{section.NAME.upper()}_" for section in WORKSPACE_SECTIONS)
    values: dict[str, Value] = {}
    for name in sorted(name for name in environment if name.startswith(prefixes) and environment[name]):
        if name not in known:
            # A misspelt variable must not be ignored: the user expects its value to apply.
            hint = did_you_mean(name, known, otherwise="`odf config list` shows the settings.")
            raise UsageError(f"The variable {name} is not a setting", hint=hint)
        setting = known[name]
        try:
            values[setting.key] = parse(setting, environment[name])
        except UsageError as error:
            shown = "its value is not" if setting.help.is_secret else f"not {environment[name]!r}"
            message = f"The variable {name} is {setting.values}, {shown}"
            raise error.with_message(message, hint=error.hint) from None
    return values


def _read(path: Path, settings: Mapping[str, Setting]) -> dict[str, Value]:
    try:
        documents = load_documents(read_regular(path).decode(), str(path))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OdfError(f"Cannot read the configuration {path}: {reason}") from error
    except MalformedManifest as error:
        raise MalformedManifest(error.message, hint="Correct the file, or delete it.") from error
    values: dict[str, Value] = {}
    for document in documents:
        for key, value in _flat(document.tree, ""):
            setting = _checked(path, key, value, settings)
            values[setting.key] = value
    return values


def _flat(tree: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else key)
    elif tree is not None or prefix:
        yield prefix, tree


def _checked(path: Path, key: str, value: Any, settings: Mapping[str, Setting]) -> Setting:
    try:
        setting = find(key, settings)
    except UsageError as error:
        raise MalformedManifest(f"{path}: {error.message}", hint=error.hint) from error
    if not setting.accepts(value):
        raise MalformedManifest(
            f"{path}: {key} must be {setting.values}" + ("" if setting.help.is_secret else f", not {value!r}"),
            hint=f"{setting.description}.",
        )
    return setting


def _write(path: Path, values: dict[str, Value]) -> None:
    tree: dict[str, dict[str, Value]] = {}
    for key, value in sorted(values.items()):
        group, _, name = key.partition(".")
        tree.setdefault(group, {})[name] = value
    text = _comments_of(path) + (dump(tree) if tree else "")
    replace_file(path, text.encode(), mode=0o600)  # URLs may contain tokens


def _comments_of(path: Path) -> str:
    """Return the comments at the top of a file, which are retained when the file is rewritten."""
    if not path.exists():
        return ""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(takewhile(lambda line: line.startswith("#") or not line.strip(), lines))
