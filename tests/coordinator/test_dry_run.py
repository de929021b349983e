"""`plan_pull` says what `pull` would do, and does nothing."""

from __future__ import annotations

import shutil
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.fixtures import KAMU
from support.servers.static_server import endless, send, static_server

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.dry_run import Expectation, PlannedInput, PullPlan
from odfpy.coordinator.status import Condition
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import DatasetNotFound, FetchError, UsageError
from odfpy.repository.transfer.simple import HistoryRewritten

SOURCE = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {fetch}
      read: {{kind: Csv, header: true, schema: {{fields: [{{name: id, type: Int64}}]}}}}
      merge: {{kind: Append}}
"""
GLOB = '{kind: FilesGlob, path: "in/*.csv", order: ByName}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


def polling(fetch: str, name: str = "polled") -> str:
    return SOURCE.format(name=name, fetch=fetch)


def files(workspace: Workspace, *names: str) -> None:
    folder = workspace.root / "in"
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("id\n1\n")


def contents(workspace: Workspace) -> dict[Path, tuple[int, bytes]]:
    """Every file with its time, but for what can be rebuilt."""
    found = (
        path for path in workspace.root.rglob("*") if path.is_file() and workspace.storage.cache not in path.parents
    )
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


def planned(workspace: Workspace, *refs: str, **options: bool) -> list[PullPlan]:
    """The plans; nothing has changed afterwards, and nothing is locked in between."""
    before = contents(workspace)
    plans = list(workspace.plan_pull(refs, **options))
    assert contents(workspace) == before
    return plans


def one(plans: list[PullPlan]) -> PullPlan:
    (plan,) = plans
    return plan


def inputs(plan: PullPlan) -> list[tuple[str, int | None]]:
    return [(item.name, item.size) for item in plan.inputs]


# --- Sources ---------------------------------------------------------------------------------------------------------


def test_new_files_of_a_folder_with_their_sizes(folder: Path) -> None:
    workspace = workspace_with(folder, polling(GLOB))
    files(workspace, "a.csv", "b.csv")
    plan = one(planned(workspace, "polled"))
    assert (plan.name, plan.expectation) == ("polled", Expectation.NEW)
    assert inputs(plan) == [("a.csv", 5), ("b.csv", 5)]
    assert [result.num_records for result in workspace.pull(["polled"])] == [2]
    assert one(planned(workspace, "polled")).expectation is Expectation.UP_TO_DATE
    files(workspace, "c.csv")
    assert inputs(one(planned(workspace, "polled"))) == [("c.csv", 5)]
    assert len(one(planned(workspace, "polled", force=True)).inputs) == 3


def test_who_is_writing_is_not_waited_for(folder: Path) -> None:
    workspace = workspace_with(folder, polling(GLOB))
    files(workspace, "a.csv")
    with workspace.storage.get("polled").writing():
        assert one(list(workspace.plan_pull(["polled"]))).expectation is Expectation.NEW


def test_a_file_of_its_own(folder: Path) -> None:
    workspace = workspace_with(folder, polling("{kind: Url, url: 'file:in/a.csv'}"))
    files(workspace, "a.csv")
    assert inputs(one(planned(workspace, "polled"))) == [("file:in/a.csv", 5)]
    list(workspace.pull(["polled"]))
    assert one(planned(workspace, "polled")).expectation is Expectation.UP_TO_DATE


def test_a_server_is_asked_with_the_conditions_of_a_pull_and_nothing_is_read(folder: Path, tmp_path: Path) -> None:
    site_folder = tmp_path / "site"
    site_folder.mkdir()
    (site_folder / "a.csv").write_text("id\n1\n")
    with static_server(site_folder) as site:
        workspace = workspace_with(folder, polling(f"{{kind: Url, url: '{site.url}/a.csv'}}"))
        assert inputs(one(planned(workspace, "polled"))) == [(f"{site.url}/a.csv", 5)]
        list(workspace.pull(["polled"]))
        assert one(planned(workspace, "polled")).expectation is Expectation.UP_TO_DATE
        assert "If-Modified-Since" in site.headers[-1]
        assert inputs(one(planned(workspace, "polled", force=True))) == [(f"{site.url}/a.csv", 5)]


def test_of_an_endless_answer_only_the_head_is_read(folder: Path, tmp_path: Path) -> None:
    with static_server(tmp_path) as site:
        site.special["/endless.csv"] = endless()
        workspace = workspace_with(folder, polling(f"{{kind: Url, url: '{site.url}/endless.csv'}}"))
        assert inputs(one(planned(workspace, "polled"))) == [(f"{site.url}/endless.csv", None)]


@pytest.mark.parametrize("headers", [{"ETag": '"v1"'}, {}], ids=["version", "no version"])
def test_what_was_fetched_and_not_committed_is_told_and_stays(
    headers: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    with static_server(tmp_path) as site:
        url = f"{site.url}/a.csv"
        site.special["/a.csv"] = lambda handler: send(handler, b"id\nx\n", **headers)
        workspace = workspace_with(folder, polling(f"{{kind: Url, url: '{url}'}}"))
        assert [result.outcome for result in workspace.pull(["polled"])] == [PullOutcome.FAILED]
        for _ in range(2):
            assert one(planned(workspace, "polled")).inputs == (PlannedInput(url, 5, kept=5),)
        assert one(planned(workspace, "polled", force=True)).inputs == (PlannedInput(url, 5),)
        asked = len(site.requests)
        list(workspace.pull(["polled"]))
        assert len(site.requests) == asked + bool(headers)  # neither plan has cost the kept file
        site.special["/a.csv"] = lambda handler: send(handler, b"id\n1\n2\n", ETag='"v2"')
        assert one(planned(workspace, "polled", fetch_uncacheable=True)).inputs == (PlannedInput(url, 7),)


def test_of_an_unfinished_download_it_is_told_how_much_is_there(folder: Path, tmp_path: Path) -> None:
    body = b"id\n" + b"1\n" * 500

    def beginning(handler: SimpleHTTPRequestHandler) -> None:
        send(handler, body[:600], ETag='"v1"', Content_Length=len(body))
        handler.close_connection = True

    def rest(handler: SimpleHTTPRequestHandler) -> None:
        start = int(handler.headers["Range"][6:-1])
        span = f"bytes {start}-{len(body) - 1}/{len(body)}"
        send(handler, body[start:], status=206, ETag='"v1"', Content_Range=span)

    with static_server(tmp_path) as site:
        url = f"{site.url}/a.csv"
        workspace = workspace_with(folder, polling(f"{{kind: Url, url: '{url}'}}"))
        workspace.config.set("fetch.retries", "0")
        site.special["/a.csv"] = beginning
        assert [result.outcome for result in workspace.pull(["polled"])] == [PullOutcome.FAILED]
        site.special["/a.csv"] = rest
        assert one(planned(workspace, "polled")).inputs == (PlannedInput(url, len(body), kept=600),)


def test_what_has_no_versions_is_only_fetched_on_demand(folder: Path, tmp_path: Path) -> None:
    with static_server(tmp_path) as site:
        site.special["/plain.csv"] = lambda handler: send(handler, b"id\n1\n")
        workspace = workspace_with(folder, polling(f"{{kind: Url, url: '{site.url}/plain.csv'}}"))
        assert one(planned(workspace, "polled")).expectation is Expectation.NEW
        list(workspace.pull(["polled"]))
        plan = one(planned(workspace, "polled"))
        assert plan.expectation is Expectation.UP_TO_DATE
        assert "--fetch-uncacheable" in plan.notes[0]
        assert one(planned(workspace, "polled", fetch_uncacheable=True)).expectation is Expectation.NEW


def test_what_would_fail_is_told_and_secrets_are_not(folder: Path, tmp_path: Path) -> None:
    with static_server(tmp_path) as site:
        address = site.url.removeprefix("http://")
        workspace = workspace_with(
            folder,
            polling(f"{{kind: Url, url: 'http://me:secret@{address}/nothing.csv?key=secret'}}", "gone"),
            polling(GLOB, "empty"),
        )
        gone, empty = planned(workspace, "gone", "empty")
    assert (gone.expectation, empty.expectation) == (Expectation.FAILED, Expectation.FAILED)
    assert isinstance(gone.error, FetchError)
    assert "404" in gone.error.message
    assert "secret" not in gone.error.message
    assert isinstance(empty.error, FetchError)


@pytest.mark.parametrize(
    ("fetch", "said"),
    [
        ("{kind: Container, image: 'example.com/image'}", "image would be run"),
        ("{kind: Mqtt, host: 127.0.0.1, port: 1, topics: [{path: a}]}", "broker would be asked"),
        ("{kind: EthereumLogs, chainId: 1, signature: 'event A()'}", "node would be asked"),
    ],
)
def test_some_sources_only_tell_when_they_are_fetched(fetch: str, said: str, folder: Path) -> None:
    workspace = workspace_with(folder, polling(fetch))
    plan = one(planned(workspace, "polled"))
    assert (plan.expectation, plan.inputs) == (Expectation.UNKNOWN, ())
    assert said in plan.notes[0]


def test_push_sources_have_nothing_to_pull_from(folder: Path) -> None:
    workspace = workspace_with(folder, root())
    assert one(planned(workspace, "root")).expectation is Expectation.UP_TO_DATE


# --- Derivatives -----------------------------------------------------------------------------------------------------


def test_a_derivative_says_how_many_records_of_which_input_are_new(folder: Path) -> None:
    workspace = workspace_with(folder, root(), derivative())
    waiting = one(planned(workspace, "derived"))
    assert (waiting.expectation, waiting.notes) == (Expectation.UP_TO_DATE, ("waiting for the first data of root",))
    feed(workspace, "root", "1 a", "2 b")
    assert [(item.name, item.num_records) for item in one(planned(workspace, "derived")).inputs] == [("root", 2)]
    list(workspace.pull(["derived"]))
    assert one(planned(workspace, "derived")).expectation is Expectation.UP_TO_DATE
    feed(workspace, "root", "1 a", "2 b", "3 c", day=2)
    assert [(item.name, item.num_records) for item in one(planned(workspace, "derived")).inputs] == [("root", 1)]


def test_another_query_may_change_the_rows_so_far(folder: Path) -> None:
    workspace = workspace_with(folder, root(), derivative())
    feed(workspace, "root", "1 a", "2 b")
    list(workspace.pull(["derived"]))
    other = derivative(query="select op, event_time, id, lower(name) as name from source")
    workspace.add(load_snapshots(other, "other"), replace=True)
    plan = one(planned(workspace, "derived"))
    assert plan.expectation is Expectation.UNKNOWN
    assert "the query has changed" in plan.notes[0]


def test_what_comes_first_may_bring_more(folder: Path) -> None:
    query = "select event_time, id from source"
    workspace = workspace_with(folder, polling(GLOB), derivative("derived", "polled", query))
    files(workspace, "a.csv")
    list(workspace.pull(["derived"], recursive=True))
    files(workspace, "b.csv")
    polled, derived = planned(workspace, "derived", recursive=True)
    assert (polled.name, polled.expectation) == ("polled", Expectation.NEW)
    assert (derived.expectation, derived.inputs) == (Expectation.UNKNOWN, ())
    assert derived.notes == ("polled would be pulled first, and may have more data",)
    assert [plan.name for plan in planned(workspace, all=True)] == ["polled", "derived"]


# --- Copies ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A dataset in another place."""
    return shutil.copytree(KAMU / "trades", tmp_path / "trades")


def test_a_new_copy(folder: Path, origin: Path) -> None:
    workspace = Workspace.init(folder)
    plan = one(planned(workspace, str(origin)))
    assert plan.expectation is Expectation.NEW
    (result,) = workspace.pull([str(origin)])
    assert plan.notes == (f"{result.num_blocks} blocks",)
    assert one(planned(workspace, "trades")).expectation is Expectation.UP_TO_DATE


def test_what_is_new_of_a_copy(folder: Path, tmp_path: Path) -> None:
    source = workspace_with(tmp_path / "source", root())
    feed(source, "root", "1 a")
    assert [result.outcome for result in source.push(["root"], to=str(tmp_path / "pushed"))] == [PullOutcome.UPDATED]
    workspace = Workspace.init(folder)
    list(workspace.pull([str(tmp_path / "pushed")], as_name="copy"))
    feed(source, "root", "1 a", "2 b", day=2)
    list(source.push(["root"]))
    plan = one(planned(workspace, "copy"))
    assert [item.num_records for item in plan.inputs] == [1]
    assert plan.notes == ("1 block",)
    assert [result.num_records for result in workspace.pull(["copy"])] == [1]


@pytest.mark.parametrize("goes_on", [False, True])
def test_an_origin_that_has_lost_blocks(folder: Path, tmp_path: Path, goes_on: bool) -> None:
    """`odf pull` refuses that, so `--dry-run` and `odf status` report it, too."""
    source = workspace_with(tmp_path / "source", root("root", "{kind: Append}"))
    feed(source, "root", "1 a")
    place = str(tmp_path / "pushed")
    list(source.push(["root"], to=place))
    shutil.copytree(tmp_path / "source", tmp_path / "earlier")
    feed(source, "root", "2 b", day=2)
    list(source.push(["root"]))
    workspace = Workspace.init(folder)
    list(workspace.pull([place], as_name="copy"))
    earlier = Workspace.open(tmp_path / "earlier")
    if goes_on:
        feed(earlier, "root", "3 c", day=3)
    list(earlier.push(["root"], force=True))
    (status,) = workspace.updates.status(["copy"], remote=True)
    assert [remark.condition for remark in status.remarks] == [Condition.DIVERGED]
    plan = one(planned(workspace, "copy"))
    (result,) = workspace.pull(["copy"])
    assert isinstance(plan.error, HistoryRewritten)
    assert plan.error.message == str(result.error)
    (status,) = workspace.updates.status(["copy"], remote=True)
    assert [remark.condition for remark in status.remarks] == [Condition.DIVERGED], "the failed pull says the same"
    forced = one(planned(workspace, "copy", force=True))
    assert forced.expectation is Expectation.NEW
    assert forced.notes == (*(["1 block"] if goes_on else []), "drops 1 block here: the remote has a different history")
    assert [item.num_records for item in forced.inputs] == ([1] if goes_on else [])
    assert next(iter(workspace.pull(["copy"], force=True))).outcome is PullOutcome.UPDATED
    assert one(planned(workspace, "copy")).expectation is Expectation.UP_TO_DATE


def test_a_copy_that_is_ahead_of_its_origin(folder: Path, tmp_path: Path) -> None:
    source = workspace_with(tmp_path / "source", root())
    feed(source, "root", "1 a")
    place = str(tmp_path / "pushed")
    list(source.push(["root"], to=place))
    workspace = Workspace.init(folder)
    list(workspace.pull([place], as_name="copy"))
    feed(workspace, "copy", "2 b", day=2)
    for force in (False, True):
        plan = one(planned(workspace, "copy", force=force))
        assert plan.expectation is Expectation.UP_TO_DATE
        assert plan.notes == ("the remote has nothing new; this copy is ahead",)


def test_places_without_a_dataset_and_words_without_sense(folder: Path, tmp_path: Path) -> None:
    workspace = workspace_with(folder, root())
    assert isinstance(one(planned(workspace, str(tmp_path / "nowhere"))).error, DatasetNotFound)
    with pytest.raises(DatasetNotFound):
        planned(workspace, "nothing")
    with pytest.raises(UsageError):
        planned(workspace)
    with pytest.raises(UsageError):
        list(workspace.plan_pull(["root"], as_name="other"))


# --- What one dataset cannot do, the others can ----------------------------------------------------------------------


def test_an_engine_that_is_not_here(folder: Path) -> None:
    workspace = workspace_with(folder, root(), derivative("flown", engine="flink"), derivative("d", "flown"), root("s"))
    feed(workspace, "root", "1 a")
    plans = {plan.name: plan for plan in planned(workspace, all=True)}
    assert {name for name, plan in plans.items() if plan.expectation is Expectation.FAILED} == {"flown", "d"}
    assert plans["flown"].error is not None
    assert plans["flown"].error.code == "E504"
    assert plans["d"].notes == ("would be skipped, since its input would fail: flown",)
