"""The engine where the system does not allow a whole sandbox."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from support.engine.exploited_engine import JOB, start_exploited
from support.engine.session import MEMORY

from odfpy.dataset.transform import TransformSql
from odfpy.engine.contract import PreprocessRequest, PreprocessTable, SqlRequest, SqlResponseSuccess
from odfpy.engine.settings import EngineSettings, SandboxMode
from odfpy.engine.spark.process.java import find_java
from odfpy.engine.worker.admin import engine_status, stop_engine
from odfpy.engine.worker.client import SparkEngine
from odfpy.engine.worker.confined_host import ConfinedHost
from odfpy.engine.worker.run_folder import RunFolder
from odfpy.errors import EngineUnavailable
from odfpy.sandbox.landlock import landlock_version
from odfpy.sandbox.view import View

pytestmark = pytest.mark.spark

SETTINGS = EngineSettings(memory=MEMORY, master="local[2]")


def test_where_it_is_required_the_engine_does_not_start(tmp_path: Path):
    engine = SparkEngine(tmp_path / "run", replace(SETTINGS, sandbox=SandboxMode.REQUIRED))
    worker = start_exploited(engine.run, engine.settings, "refuse")
    with pytest.raises(EngineUnavailable, match=r"user namespaces are not allowed here.*diagnose.*best-effort"):
        engine.sql(SqlRequest("SELECT 1", (), str(tmp_path / "result")))
    assert worker.wait() == 1


def test_on_a_cluster_it_cannot_be_required(tmp_path: Path):
    required = replace(SETTINGS, sandbox=SandboxMode.REQUIRED, master="spark://nobody:7077")
    with pytest.raises(EngineUnavailable, match="executors of a cluster are out of its reach"):
        SparkEngine(tmp_path / "run", required).sql(SqlRequest("SELECT 1", (), str(tmp_path / "result")))


def test_else_landlock_confines_files_and_the_engine_is_let_into_other_folders_when_it_starts_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    odf, elsewhere = tmp_path / ".odf", tmp_path / "elsewhere"
    scratch = odf / "run" / "scratch" / "1-x"
    for folder in (scratch, odf / "keys", odf / "datasets", elsewhere):
        folder.mkdir(parents=True)
    for path in (odf / "keys" / "k", odf / "datasets" / "slice", elsewhere / "file"):
        path.write_text(path.name)
    engine = SparkEngine(odf / "run", SETTINGS)
    worker = start_exploited(engine.run, SETTINGS, "refuse")
    try:

        def exploit(code: str) -> str:
            return engine.run_job(JOB, code, scratch)

        assert exploit(f"open({str(odf / 'datasets' / 'slice')!r}).read()") == "'slice'"
        status = engine_status(engine.run.path)
        assert status is not None
        if landlock_version():
            assert status.sandbox == "Landlock only"
            for hidden in (odf / "keys" / "k", elsewhere / "file", engine.run.log, Path("/etc/passwd")):
                assert "PermissionError" in exploit(f"open({str(hidden)!r}).read()")
            assert "PermissionError" in exploit(f"open({str(elsewhere / 'new')!r}, 'w')")
        with caplog.at_level(logging.WARNING):
            answer = engine.sql(SqlRequest("SELECT 1", (), str(elsewhere / "result")))
        assert answer == SqlResponseSuccess(1)
    finally:
        stop_engine(engine.run.path, force=True)
        worker.wait()


def test_a_folder_that_is_read_from_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where Landlock alone confines, an engine that starts anew is let into other folders, with the rights it needs."""
    run = RunFolder(tmp_path / ".odf" / "run")
    run.path.mkdir(parents=True)
    scratch = run.path / "scratch"
    granted: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def restricted(_work: object, reads: tuple[str, ...], folders: tuple[str, ...], *_: object) -> None:
        granted.append((reads, folders))

    monkeypatch.setattr("odfpy.engine.worker.confined_host.run_restricted", restricted)
    table = PreprocessTable("a", "/reads/slice")
    job = PreprocessRequest(TransformSql("spark", query="select 1"), (table,), "/writes/result")
    for expected in (True, False):
        host = ConfinedHost(replace(SETTINGS, startup_cache=False), find_java(), run, scratch)
        host._confine_files(lambda: 0, View((), str(scratch)), (), "no namespaces")
        assert host.is_out_of_reach(job) is expected
    ((reads, folders), (more_reads, more_folders)) = granted
    assert set(more_reads) - set(reads) == {"/reads"}
    assert set(more_folders) - set(folders) == {"/writes"}


def test_whoever_starts_a_weaker_engine_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    engine = SparkEngine(tmp_path / "run", SETTINGS)
    engine._has_launched = True
    for _ in range(2):
        engine._warn("no namespaces")
    (record,) = caplog.records
    assert "sandbox of the engine is incomplete: no namespaces" in record.getMessage()
    assert "docs/sandbox.md" in record.getMessage()
