"""Settings: each is declared once, says what it is for, and refuses what it is not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from odfpy.coordinator.storage.config import Config
from odfpy.errors import MalformedManifest, UsageError
from odfpy.settings.sections import (
    DATASET_SECTIONS,
    DATASET_SETTINGS,
    SETTINGS,
    WORKSPACE_SECTIONS,
    EngineSection,
    FetchSection,
    WatermarkSection,
)
from odfpy.settings.setting import Setting

REPOSITORY = Path(__file__).resolve().parents[2]
ALL = [*SETTINGS.values(), *DATASET_SETTINGS.values()]

# Headings of version 0.39 of the specification.
HEADINGS = {
    "Execution Model",
    "FetchStep",
    "FetchStep::Container",
    "FetchStep::EthereumLogs",
    "FetchStep::FilesGlob",
    "FetchStep::Mqtt",
    "Ingestion",
    "MergeStrategy::Snapshot",
    "PrepStep",
    "PrepStep::Decompress",
    "PrepStep::Pipe",
    "Repository",
    "Watermark",
}
# What the specification leaves to whoever runs a coordinator.
OWN = (
    "commands",
    "copy",
    "engine",
    "signatures",
    "proofs",
    "serve",
    "sharing",
    "relay",
    "automation",
    "mail",
    "openLineage",
    "archive.",
)


def of_key(setting: Setting) -> str:
    return setting.key


# --- Declarations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ALL, ids=of_key)
def test_a_setting_has_one_sentence(setting: Setting) -> None:
    assert re.fullmatch(r"[A-Z][^\n]{10,105}[^\s.]", setting.help.sentence)
    assert ". " not in setting.help.sentence


@pytest.mark.parametrize("setting", ALL, ids=of_key)
def test_a_setting_names_the_section_of_the_specification_that_it_concerns(setting: Setting) -> None:
    allowed = HEADINGS | ({None} if setting.key.startswith(OWN) else set())
    assert setting.help.specification in allowed


@pytest.mark.parametrize("setting", ALL, ids=of_key)
def test_a_default_could_be_set(setting: Setting) -> None:
    assert setting.default is None or setting.accepts(setting.default)
    assert not setting.accepts(None)


@pytest.mark.parametrize("section", [*WORKSPACE_SECTIONS, *DATASET_SECTIONS], ids=lambda section: section.NAME)
def test_a_section_has_a_sentence_and_no_setting_twice(section: type) -> None:
    assert section.__doc__
    assert sum(one.NAME == section.NAME for one in (*WORKSPACE_SECTIONS, *DATASET_SECTIONS)) == 1


def test_the_page_of_commands_has_the_defaults() -> None:
    rows = re.findall(
        r"^\| `([a-z]\w+\.\w+)` \| (.*?) ?\|", (REPOSITORY / "docs/cli.md").read_text("utf-8"), re.MULTILINE
    )
    shown = {key: None if text in {"", "none"} else text for key, text in rows}
    text = {bool: lambda value: str(value).lower()}
    defaults = {one.key: one.default for one in ALL}
    assert shown == {
        key: value if value is None else text.get(type(value), str)(value) for key, value in defaults.items()
    }


# --- Values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "values"),
    [
        ("fetch.timeout", "3", "a whole number"),
        ("fetch.timeout", True, "a whole number"),
        ("fetch.timeout", 1.5, "a whole number"),
        ("fetch.timeout", -1, "a whole number"),
        ("transfer.window", 0, "a whole number, at least 1"),
        ("mail.port", 65536, "a whole number, at least 1 and at most 65535"),
        ("signatures.sign", 1, "true or false"),
        ("signatures.sign", "true", "true or false"),
        ("engine.host", "a\nb", "text"),
        ("engine.host", 1, "text"),
        ("engine.memory", "2g\n", "a size from 700m on, such as 2g"),
        ("engine.memory", "16m", "a size from 700m on, such as 2g"),
        ("engine.memory", "9" * 15 + "t", "a size from 700m on, such as 2g"),
        ("ingest.memory", "129t", "a size such as 512m or 2g, up to 128t"),
        ("engine.sandbox", "auto", "required, best-effort or off"),
        ("container.engine", "Docker", "auto, podman or docker"),
        ("sources.folders", "here", "absolute paths of folders with commas between them"),
    ],
)
def test_a_value_that_is_none_is_refused_by_its_key_and_file(
    key: str, value: object, values: str, tmp_path: Path
) -> None:
    setting = SETTINGS[key]
    assert setting.values == values
    assert not setting.accepts(value)
    section, name = key.split(".")
    file = tmp_path / ".odfconfig.yaml"
    file.write_text(f"{section}: {{{name}: {json.dumps(value)}}}\n")
    with pytest.raises(MalformedManifest, match=re.escape(f"{file}: {key} must be {values}, not {value!r}")) as caught:
        Config.load(tmp_path)
    assert caught.value.hint == f"{setting.description}."


def test_a_secret_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / ".odfconfig.yaml").write_text("ethereum: {nodes: 'https://token@node'}\n")
    with pytest.raises(MalformedManifest) as caught:
        Config.load(tmp_path)
    assert "token@" not in str(caught.value)


def test_a_key_counts_whatever_its_case(tmp_path: Path) -> None:
    (tmp_path / ".odfconfig.yaml").write_text("Fetch: {TIMEOUT: 7}\n")
    assert Config.load(tmp_path).item("fetch.timeout").value == 7


# --- Sections with the values in force -------------------------------------------------------------------------------


def test_a_section_has_the_values_in_force(tmp_path: Path) -> None:
    (tmp_path / ".odfconfig.yaml").write_text("fetch: {timeout: 7, batchSize: 8}\n")
    fetch = Config.load(tmp_path).section(FetchSection)
    assert (fetch.timeout, fetch.batch_size, fetch.retries) == (7, 8, FetchSection.retries)
    with pytest.raises(AttributeError, match=r"fetch\.timeout is set in a file"):
        fetch.timeout = 9


def test_a_section_of_datasets_is_none_of_a_workspace(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"watermark\.lag is a setting of single datasets"):
        Config.load(tmp_path).section(WatermarkSection)


@pytest.mark.parametrize(("text", "is_loaded"), [("# nothing\n", False), ("fetch: {timeout: 7}\n", True)])
def test_pydantic_is_loaded_for_a_value_only(text: str, is_loaded: bool, tmp_path: Path) -> None:
    (tmp_path / ".odfconfig.yaml").write_text(text)
    program = f"""
import sys
from pathlib import Path
from odfpy.coordinator.storage.config import Config
from odfpy.settings.sections import {EngineSection.__name__}
print(Config.load(Path({str(tmp_path)!r})).section(EngineSection).idle_timeout, "pydantic_core" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout.split() == ["600", str(is_loaded)]
