"""Progress: what is told, how often, and that it is seen on a terminal while the work goes on."""

from __future__ import annotations

import threading
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import root, workspace_with
from support.processes.terminal import PATIENCE, start, terminal
from support.servers.static_server import static_server

from odfpy.cli.screen.progress import ProgressLine, describe
from odfpy.coordinator.maintenance.report import VerifyReport
from odfpy.coordinator.maintenance.verify import verify
from odfpy.coordinator.requests import VerifyRequest
from odfpy.coordinator.storage.results import ENGINE_ACTIONS, Progress
from odfpy.coordinator.workspace import Workspace
from odfpy.engine.cancellation import JobProgress, Stage
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.worker.client import SparkEngine

MEBI = 1 << 20


@pytest.mark.parametrize(
    ("progress", "rate", "words"),
    [
        (Progress("x", "asking"), None, "x: asking"),
        (Progress("x", "fetching", 3 * MEBI, 12 * MEBI, "bytes"), None, "x: fetching 3.0 MiB of 12.0 MiB"),
        (Progress("x", "fetching", 3 * MEBI, None, "bytes"), 2.0 * MEBI, "x: fetching 3.0 MiB, 2.0 MiB/s"),
        (Progress("x", "ingesting a.csv", 1234567, None, "rows"), 9.0, "x: ingesting a.csv 1,234,567 rows"),
        (Progress("x", "ingesting b.csv", 1, 3, "files"), None, "x: ingesting b.csv 1 of 3 files"),
    ],
)
def test_words(progress: Progress, rate: float | None, words: str) -> None:
    assert describe(progress, rate) == words


def test_a_rate_is_that_of_the_step_and_lines_do_not_come_faster_than_people_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    line = ProgressLine(shown=True, clock=lambda: now[0])

    def told(at: float, done: int, action: str = "fetching") -> str:
        now[0] = at
        line(Progress("x", action, done, 10 * MEBI, "bytes"))
        return capsys.readouterr().err.strip("\r ")

    assert told(0, 2 * MEBI) == "x: fetching 2.0 MiB of 10.0 MiB", "the first 2 MiB were there before"
    assert told(0.05, 3 * MEBI) == ""
    assert told(2, 6 * MEBI) == "x: fetching 6.0 MiB of 10.0 MiB, 2.0 MiB/s (2 s)"
    assert told(2.01, 10 * MEBI) == "x: fetching 10.0 MiB of 10.0 MiB, 4.0 MiB/s (2 s)", "the end is always shown"
    assert told(2.02, 1 * MEBI, "pulling").startswith("x: pulling 1.0 MiB of 10.0 MiB")


def test_an_engine_is_heard_by_whoever_waits_for_it(tmp_path: Path) -> None:
    heard: list[object] = []
    engines = EngineRegistry.standard(tmp_path)
    spark = engines.get("spark")
    assert isinstance(spark, SparkEngine)
    assert spark._on_progress is not None
    with engines.reporting_to(heard.append):
        spark._on_progress(JobProgress(Stage.STARTING))
    spark._on_progress(JobProgress(Stage.RUNNING))
    assert heard == [JobProgress(Stage.STARTING)]
    assert {stage.value for stage in Stage} == set(ENGINE_ACTIONS)


def test_a_verification_tells_how_the_engine_gets_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = workspace_with(tmp_path, root("feed", "{kind: Append}"))
    heard: list[Progress] = []

    def verified(*arguments: Any, **more: Any) -> VerifyReport:
        if more["engine_for"] is not None:
            workspace.engines.registry._report(JobProgress(Stage.STARTING))
        return verify(*arguments, **more)

    monkeypatch.setattr("odfpy.coordinator.maintenance.verify.verify", verified)
    for integrity_only in (True, False):
        list(workspace.maintenance.verify(VerifyRequest(all=True, integrity_only=integrity_only), heard.append))
        assert ("starting Spark" in {one.action for one in heard}) is not integrity_only
    workspace.engines.registry._report(JobProgress(Stage.RUNNING))
    assert "Spark works" not in {one.action for one in heard}


# --- At a terminal ---------------------------------------------------------------------------------------------------

WEB = """
kind: DatasetSnapshot
version: 1
content:
  name: com.example.web
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "URL"}
      read: {kind: Csv, header: true, schema: {fields: [{name: id, type: Int64}]}}
      merge: {kind: Append}
"""


@pytest.fixture
def large(tmp_path: Path) -> bytes:
    """Some megabytes of CSV."""
    return b"id\n" + b"".join(b"%012d\n" % number for number in range(300_000))


def test_bytes_are_seen_while_they_are_fetched_and_rows_while_they_are_read(
    workspace: Path, tmp_path: Path, large: bytes
) -> None:
    seen = threading.Event()

    def slowly(handler: SimpleHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(large)))
        handler.end_headers()
        handler.wfile.write(large[: 2 * MEBI])
        seen.wait(60)
        handler.wfile.write(large[2 * MEBI :])

    with static_server(tmp_path) as site:
        site.special["/large.csv"] = slowly
        (workspace / "web.yaml").write_text(WEB.lstrip().replace("URL", f"{site.url}/large.csv"))
        process = start("add", "web.yaml", cwd=workspace)
        assert process.wait(60) == 0
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()  # type: ignore[union-attr]
        with terminal("pull", "com.example.web", cwd=workspace, columns=200, NO_COLOR="1") as screen:
            screen.wait_for(" of 3.7 MiB")
            seen.set()
            screen.wait_for(" rows")
            assert screen.wait() == 0
    assert f"com.example.web: ingesting {site.url}/large.csv " in screen.plain
    *_, told, warning = screen.plain.splitlines()
    assert "com.example.web: updated, 300000 records" in told
    assert "warning: no row has an 'event_time'" in warning


def test_nothing_of_it_where_there_is_no_terminal(workspace: Path) -> None:
    (workspace / "large.ndjson").write_text('{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}\n' * 30_000)
    process = start("ingest", "com.example.cities", "large.ndjson", cwd=workspace)
    _, err = process.communicate(timeout=PATIENCE)
    assert "\r" not in err
    assert len(err.splitlines()) == 2, "the error that a snapshot has a key twice, and its hint"


def test_programs_hear_of_rows_too(workspace: Path) -> None:
    (workspace / "large.ndjson").write_text(
        "".join(f'{{"event_time":"2024-02-01T00:00:00Z","id":{key},"name":"z"}}\n' for key in range(100, 40_100))
    )
    heard: list[Progress] = []
    list(Workspace.open(workspace).ingest("com.example.rates", [workspace / "large.ndjson"], progress=heard.append))
    rows = [progress.done for progress in heard if progress.unit == "rows"]
    assert len(rows) > 2
    assert rows == sorted(rows)
    assert rows[-1] == 40_000
