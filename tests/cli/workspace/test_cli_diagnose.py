"""`odf system diagnose`: each check says ok, or what to do."""

from __future__ import annotations

import re
from importlib.metadata import requires
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.conftest import dataset_folder
from support.engine.session import MEMORY

from odfpy.codec import flatbuffers_writer
from odfpy.coordinator import diagnosis
from odfpy.coordinator.diagnosis import CheckResult, diagnose
from odfpy.coordinator.tested_versions import TESTED

if TYPE_CHECKING:
    from cli.conftest import Odf

QUICK = ["system", "diagnose", "--quick"]
EVERYWHERE = [
    "python",
    "packages",
    "native code",
    "hashes",
    "java",
    "memory",
    "temporary files",
    "sandbox",
    "containers",
    "workspace",
]


@pytest.fixture(autouse=True)
def modest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that runs tests may be short of everything."""
    monkeypatch.setattr(diagnosis, "MIN_FREE", 0)
    monkeypatch.setattr(diagnosis, "MIN_MEMORY", 0)


def checked(folder: Path) -> dict[str, CheckResult]:
    return {result.name: result for result in diagnose(folder, engines=False)}


def test_a_sound_installation_and_workspace(odf: Odf, workspace: Path) -> None:
    told = odf(*QUICK)
    assert (told.code, told.err) == (0, "")
    names = [line.removeprefix("ok").strip().partition(":")[0] for line in told.out.splitlines()]
    assert names == ["command server", *EVERYWHERE, "settings", "privacy", "disk", "locks", "datasets"]
    assert all(line.startswith("ok ") for line in told.out.splitlines())


def test_for_programs(odf: Odf, workspace: Path) -> None:
    told = odf(*QUICK, "-o", "json")
    assert told.code == 0
    by_name = {item["check"]: item for item in told.json}
    assert all(item["ok"] is True and item["hint"] is None for item in told.json)
    assert "pyarrow " in by_name["packages"]["detail"]
    assert by_name["datasets"]["detail"].startswith("6, all can be read")


def test_outside_of_a_workspace_the_installation_is_checked(tmp_path: Path) -> None:
    found = checked(tmp_path)
    assert list(found) == EVERYWHERE
    assert found["workspace"].detail.startswith("none here")
    assert list(tmp_path.iterdir()) == []


def test_a_java_that_is_none(odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    told = odf(*QUICK)
    assert told.code == 1
    assert "FAILED  java: No Java at /nowhere" in told.out
    assert "hint: Set JAVA_HOME" in told.out


def test_engines_are_tried_and_what_does_not_start_is_told(
    odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    by_name = {item["check"]: item for item in odf("system", "diagnose", "-o", "json").json}
    assert by_name["datafusion"]["ok"]
    assert not by_name["spark"]["ok"]


def test_a_disk_without_room(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "MIN_FREE", 1 << 62)
    found = checked(workspace)["disk"]
    assert not found.ok
    assert "are free" in found.detail
    assert found.hint is not None


def test_a_machine_without_memory(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "MIN_MEMORY", 1 << 62)
    found = checked(workspace)["memory"]
    assert not found.ok
    assert "engine.memory" in (found.hint or "")


def test_a_folder_that_is_a_file(workspace: Path) -> None:
    locks = workspace / ".odf" / "run" / "locks"
    for path in locks.iterdir():
        path.unlink()
    locks.rmdir()
    locks.write_text("")
    found = checked(workspace)["locks"]
    assert not found.ok
    assert str(locks) in found.detail


def test_a_damaged_dataset(odf: Odf, workspace: Path) -> None:
    (dataset_folder(workspace, "com.example.rates") / "refs" / "head").unlink()
    told = odf(*QUICK)
    assert told.code == 1
    assert "FAILED  datasets: 1 of 6 are damaged: com.example.rates\n        hint: odf list\n" in told.out


def test_settings_that_cannot_be_read(workspace: Path) -> None:
    (workspace / ".odf" / "config.yaml").write_text("nonsense: [")
    assert not checked(workspace)["settings"].ok


@pytest.mark.spark
def test_the_engine_is_started_and_ended(odf: Odf, workspace: Path) -> None:
    assert odf("config", "set", "engine.memory", MEMORY).code == 0
    told = odf("system", "diagnose")
    assert told.code == 0, told.out
    assert "ok      spark: odfpy-spark" in told.out
    assert odf("engine", "status", "-o", "json").json == {"running": False}


def test_versions_that_are_newer_than_the_tests_are_named(
    odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "TESTED", {**TESTED, "pyarrow": "1.2.3"})
    told = odf(*QUICK)
    assert told.code == 0, "they may well work"
    assert "(newer than 1.2.3, which was tested)" in told.out
    assert told.out.count("newer than") == 1


def test_every_package_has_a_version_that_was_tested() -> None:
    wanted = (one for one in requires("opendatafabric") or () if "extra ==" not in one)
    bounds = {match[1]: match[2] for one in wanted if (match := re.match(r"([\w.-]+).*?>=([\d.]+)", one))}
    assert bounds.keys() == TESTED.keys()
    assert all(diagnosis._numbers(TESTED[name]) >= diagnosis._numbers(least) for name, least in bounds.items())


def test_a_library_that_writes_other_bytes_is_found_before_it_writes(
    odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flatbuffers_writer, "_EXACT", b"of another release")
    flatbuffers_writer._require_exact_bytes.cache_clear()
    told = odf(*QUICK)
    assert told.code == 1
    assert "FAILED  hashes: flatbuffers " in told.out
    refused = odf(
        "ingest", "com.example.rates", "--stdin", stdin=b'{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}'
    )
    assert (refused.code, "writes blocks with other hashes" in refused.err) == (1, True)
    monkeypatch.undo()
    flatbuffers_writer._require_exact_bytes.cache_clear()
    assert diagnosis._bytes() == "a reference block has the expected hash"
