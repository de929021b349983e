"""Clocks that go back, or are ahead: what is recorded never goes back (ODF specification, "Metadata Chain")."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler
from itertools import pairwise
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.static_server import StaticServer, static_server

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.maintenance.report import Severity
from odfpy.coordinator.storage.clock import ClockAhead
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.data.data_warning import WarningKind
from odfpy.data.timestamp import Timestamp
from odfpy.repository.transfer.clock import FromTheFuture

HOUR = 3_600 * 10**9


def test_system_times_never_go_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = workspace_with(tmp_path, root(), derivative())
    really_now = time.time_ns

    def turn_back(hours: int) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: really_now() - hours * HOUR)

    feed(workspace, "root", "1 a", "2 b")
    list(workspace.pull(["derived"]))
    for hours, rows in ((1, ("2 B", "3 c")), (48, ("3 c", "4 d"))):
        turn_back(hours)
        feed(workspace, "root", *rows)
        list(workspace.pull(["derived"]))
        (changed,) = load_snapshots(root() + f"    - {{kind: SetInfo, description: changed {hours}}}\n", "manifest")
        workspace.add([changed], replace=True)
    workspace.set_watermark("root", Timestamp.parse("2024-02-01T00:00:00Z"))
    for name in ("root", "derived"):
        times = [hashed.block.system_time for hashed in workspace.datasets.log(name)]  # newest first
        assert all(newer >= older for newer, older in pairwise(times))
        recorded = workspace.tail(name, 1000).column("system_time").to_pylist()
        assert recorded == sorted(recorded)
    assert all(report.ok for report in workspace.verify(all=True))


# --- A clock that is ahead -------------------------------------------------------------------------------------------

POLLED = """
kind: DatasetSnapshot
version: 1
content:
  name: polled
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "URL/rows.csv"}
      read: {kind: Csv, header: true, schema: {fields: [{name: id, type: Int64}, {name: event_time, type: Timestamp}]}}
      merge: {kind: Ledger, primaryKey: [id]}
"""
DAY = 24 * HOUR


@pytest.fixture
def advance(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the clock some nanoseconds ahead of what it really is."""
    really_now = time.time_ns
    return lambda nanos: monkeypatch.setattr(time, "time_ns", lambda: really_now() + nanos)


def clock_warnings(result: PullResult) -> list[str]:
    return [warning.message for warning in result.warnings if warning.kind is WarningKind.CLOCK]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    """A server with a file, whose clock is right."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "rows.csv").write_text("id,event_time\n1,2024-01-01\n")
    with static_server(folder) as site:
        yield site


def polled(folder: Path, server: StaticServer) -> Workspace:
    return workspace_with(folder / "workspace", POLLED.replace("URL", server.url))


def pulled(workspace: Workspace, ref: str = "polled", **options: bool) -> PullResult:
    (result,) = workspace.pull([ref], **options)
    return result


Advance = Callable[[int], None]


def test_a_clock_that_is_right_needs_no_word(tmp_path: Path, server: StaticServer) -> None:
    assert clock_warnings(pulled(polled(tmp_path, server))) == []


def test_a_clock_that_is_an_hour_ahead_of_the_source_is_told(
    tmp_path: Path, server: StaticServer, advance: Advance
) -> None:
    workspace = polled(tmp_path, server)
    advance(3 * HOUR)
    (warning,) = clock_warnings(pulled(workspace))
    assert warning.startswith("the local clock is 3 hours ahead of that of the source (20")
    (warning,) = clock_warnings(pulled(workspace))
    assert warning.startswith("the local clock is 3 hours ahead"), "also if there is nothing new"


def test_nothing_is_written_by_a_clock_that_is_days_ahead(
    tmp_path: Path, server: StaticServer, advance: Advance
) -> None:
    workspace = polled(tmp_path, server)
    before = workspace.datasets.state("polled").head
    advance(41 * DAY + HOUR)
    result = pulled(workspace)
    assert isinstance(result.error, ClockAhead)
    assert result.error.message.startswith("The local clock is 41 days ahead of that of the source, which has 20")
    assert workspace.datasets.state("polled").head == before
    (plan,) = workspace.plan_pull(["polled"])
    assert isinstance(plan.error, ClockAhead)
    result = pulled(workspace, allow_future=True)
    assert result.num_records == 1
    assert clock_warnings(result)[0].startswith("the local clock is 41 days ahead of that of the source")


def test_an_answer_from_a_cache_is_as_old_as_it_says(tmp_path: Path, server: StaticServer) -> None:
    def from_cache(handler: SimpleHTTPRequestHandler) -> None:
        body = b"id,event_time\n1,2024-01-01\n"
        handler.send_response_only(200)
        handler.send_header("Date", handler.date_time_string(time.time() - 10 * 86_400))
        handler.send_header("Age", str(10 * 86_400))
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    server.special["/rows.csv"] = from_cache
    result = pulled(polled(tmp_path, server))
    assert (result.error, clock_warnings(result)) == (None, [])


def test_a_watermark_does_not_follow_a_clock_that_is_days_ahead(
    tmp_path: Path, server: StaticServer, advance: Advance
) -> None:
    workspace = polled(tmp_path, server)
    assert pulled(workspace).num_records == 1
    workspace.settings_of("polled").set("watermark.idle", "1h")
    advance(9 * DAY)
    assert isinstance(pulled(workspace).error, ClockAhead)


def test_what_follows_a_block_of_the_future_has_its_time_and_that_is_said(tmp_path: Path, advance: Advance) -> None:
    workspace = workspace_with(tmp_path, root(), derivative())
    advance(3 * DAY + HOUR)
    feed(workspace, "root", "2 b")
    early = workspace.datasets.state("root").system_time
    list(workspace.pull(["derived"]))
    advance(0)
    said = (
        f"the last block is of {early}, 3 days ahead of the local clock: system time never decreases, so blocks that are"
        " written until then get the same time"
    )
    result = feed(workspace, "root", "2 b", "3 c", day=2)
    assert clock_warnings(result) == [said]
    assert workspace.datasets.state("root").system_time == early
    assert clock_warnings(pulled(workspace, "derived"))[0].startswith("the last block is of")
    (changed,) = load_snapshots(root() + "    - {kind: SetInfo, description: changed}\n", "manifest")
    (added,) = workspace.add([changed], replace=True)
    assert said in added.notes
    (report,) = workspace.verify(["root"])
    (finding,) = report.findings
    assert (report.ok, finding.check, finding.severity, finding.code) == (True, "clock", Severity.WARNING, "E661")
    assert finding.message == "The block has a time in the future, as are 3 after it: 3 days ahead of the local clock"


def test_blocks_of_the_future_are_not_copied_unasked(tmp_path: Path, advance: Advance) -> None:
    there = workspace_with(tmp_path / "there", root())
    feed(there, "root", "1 a")
    mirror = str(tmp_path / "mirror" / "root")
    list(there.push(["root"], to=mirror))
    here = Workspace.init(tmp_path / "here")
    assert clock_warnings(pulled(here, mirror)) == []
    advance(3 * DAY + HOUR)
    feed(there, "root", "2 b")
    list(there.push(["root"]))
    advance(0)
    (plan,) = here.plan_pull(["root"])
    assert isinstance(plan.error, FromTheFuture)
    result = pulled(here, "root")
    assert isinstance(result.error, FromTheFuture)
    assert "which is 3 days ahead of the local clock" in result.error.message
    assert pulled(Workspace.init(tmp_path / "other"), mirror).outcome is PullOutcome.FAILED
    assert here.datasets.state("root").num_records == 1
    result = pulled(here, "root", allow_future=True)
    assert (result.outcome, len(clock_warnings(result))) == (PullOutcome.UPDATED, 1)
    feed(there, "root", "2 b", "3 c")  # has the time of the block before
    list(there.push(["root"]))
    assert pulled(here, "root").outcome is PullOutcome.UPDATED, "what is here already was taken in on purpose"


def test_blocks_of_a_few_hours_ahead_are_copied_with_a_warning(tmp_path: Path, advance: Advance) -> None:
    there = workspace_with(tmp_path / "there", root())
    advance(3 * HOUR)
    feed(there, "root", "1 a")
    mirror = str(tmp_path / "mirror" / "root")
    list(there.push(["root"], to=mirror))
    advance(0)
    (warning,) = clock_warnings(pulled(Workspace.init(tmp_path / "here"), mirror))
    assert warning.endswith("ahead of the local clock")


def test_a_file_of_the_future_gives_its_time_to_rows(tmp_path: Path) -> None:
    manifest = root().replace(
        "{name: event_time, type: Timestamp}", "{name: extra, type: {kind: Option, inner: Int64}}"
    )
    manifest = manifest.replace(
        "AddPushSource\n      sourceName: default", "SetPollingSource\n      fetch: {kind: Url, url: 'file:rows'}"
    )
    workspace = workspace_with(tmp_path, manifest)
    file = tmp_path / "rows"
    file.write_text('{"id":1,"name":"a"}\n')
    later = time.time() + 10 * 86_400 + 3_600
    os.utime(file, (later, later))
    (warning,) = clock_warnings(pulled(workspace, "root"))
    assert "10 days ahead of the local clock, and gives its rows that event time" in warning
