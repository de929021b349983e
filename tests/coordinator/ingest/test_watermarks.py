"""Watermarks of root datasets: by policy, however rows come in; by system time, when nothing comes; by hand.

System time is what the test makes it: `later` moves the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.fixtures import KAMU
from support.servers.static_server import send, static_server

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import AddData
from odfpy.chain.rules import WatermarkWentBack
from odfpy.coordinator.dry_run import Expectation
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.data.duration import Duration
from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.data.watermark import WatermarkPolicy
from odfpy.errors import MalformedManifest, UsageError

POLLED = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {fetch}
      read:
        kind: NdJson
        schema:
          fields: [{{name: event_time, type: Timestamp}}, {{name: id, type: Int64}}, {{name: name, type: String}}]
      merge: {{kind: Ledger, primaryKey: [id]}}
"""
FILES = '{kind: FilesGlob, path: "in/*.ndjson", order: ByName}'
HOUR = 3600
DAY = 24 * HOUR
Later = Callable[[int], Timestamp]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Moves the clock, which begins at noon of 1 March 2024 and stands still; gives back the time."""
    clock = [Timestamp.parse("2024-03-01T12:00:00Z").nanos]
    monkeypatch.setattr(time, "time_ns", lambda: clock[0])

    def call(seconds: int) -> Timestamp:
        clock[0] += seconds * NANOS_PER_SECOND
        return Timestamp(clock[0])

    return call


def at(text: str) -> Timestamp:
    return Timestamp.parse(text)


def polled(fetch: str = FILES, name: str = "root") -> str:
    return POLLED.format(fetch=fetch, name=name)


def configure(workspace: Workspace, name: str = "root", **values: str | None) -> None:
    for key, value in values.items():
        workspace.settings_of(name).set(f"watermark.{key}", value)


def watermark(workspace: Workspace, name: str = "root") -> str:
    return str(workspace.datasets.state(name).watermark)


def pull(workspace: Workspace, *names: str) -> list[PullResult]:
    results = list(workspace.pull(names, all=not names))
    assert [result.error for result in results if result.error] == []
    return results


def put(folder: Path, *event_times: str, name: str = "1", first: int = 0) -> Path:
    """A whole file in the folder `in`, with rows whose ids count from `first`."""
    path = folder / "in" / f"{name}.ndjson"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "".join(f'{{"event_time":"{text}","id":{first + i},"name":"x"}}\n' for i, text in enumerate(event_times))
    )
    return path


# --- A lag -----------------------------------------------------------------------------------------------------------


def test_by_default_the_watermark_is_the_greatest_event_time(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root())
    feed(workspace, "root", "1 a", day=3)
    assert watermark(workspace) == "2024-01-03T00:00:00Z"


@pytest.mark.parametrize("way", ["ingest", "stdin", "pull", "watch"])
def test_a_lag_applies_however_rows_come_in(way: str, tmp_path: Path) -> None:
    manifest = polled() if way == "pull" else root(merge="{kind: Append}")
    workspace = workspace_with(tmp_path, manifest)
    configure(workspace, lag="1d12h")
    file = put(tmp_path, "2024-01-02T00:00:00Z", "2024-01-04T00:00:00Z")
    if way == "ingest":
        list(workspace.ingest("root", [file]))
    elif way == "stdin":
        with file.open("rb") as stream:
            list(workspace.ingest("root", stdin=stream))
    elif way == "watch":
        next(workspace.watch("root", tmp_path / "in", settle=0, pause=lambda: None))
    else:
        pull(workspace)
    assert watermark(workspace) == "2024-01-02T12:00:00Z"


def test_late_are_rows_behind_the_watermark_not_behind_other_rows(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(merge="{kind: Append}"))
    configure(workspace, lag="1d")
    feed(workspace, "root", "1 a", day=5)
    assert feed(workspace, "root", "2 b", day=5).counts["late"] == 0
    assert feed(workspace, "root", "3 c", day=4).counts["late"] == 1
    assert feed(workspace, "root", "4 d", "5 e", day=3).counts["late"] == 2
    assert watermark(workspace) == "2024-01-04T00:00:00Z"


def test_another_lag_moves_it_forward_with_the_next_rows_and_never_back(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(merge="{kind: Append}"))
    feed(workspace, "root", "1 a", day=5)
    configure(workspace, lag="2d")
    feed(workspace, "root", "2 b", day=6)
    assert watermark(workspace) == "2024-01-05T00:00:00Z"
    configure(workspace, lag="12h")
    feed(workspace, "root", "3 c", day=6)
    assert watermark(workspace) == "2024-01-05T12:00:00Z"


def test_a_lag_of_more_than_all_time_leaves_no_watermark(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root())
    configure(workspace, lag="999999w")
    assert feed(workspace, "root", "1 a").watermark is None


# --- Nothing comes ---------------------------------------------------------------------------------------------------


def test_a_pull_that_finds_nothing_for_long_lets_the_watermark_follow_system_time(tmp_path: Path, later: Later) -> None:
    workspace = workspace_with(tmp_path, polled())
    configure(workspace, lag="1d", idle="1h")
    put(tmp_path, "2024-02-20T00:00:00Z")
    pull(workspace)
    later(HOUR - 1)
    (early,) = pull(workspace)
    assert (early.outcome, watermark(workspace)) == (PullOutcome.UP_TO_DATE, "2024-02-19T00:00:00Z")
    for _ in range(2):  # it goes on following
        now = later(HOUR)
        (result,) = pull(workspace)
        assert (result.outcome, result.num_blocks, result.num_records) == (PullOutcome.UPDATED, 1, 0)
        assert result.notes == ("nothing new for longer than watermark.idle, so the watermark follows system time",)
        assert workspace.datasets.state("root").watermark == result.watermark == Duration(DAY).before(now)
        event = next(workspace.datasets.log("root")).block.event
        assert event == AddData(prev_offset=0, new_watermark=result.watermark)
    assert pull(workspace)[0].outcome is PullOutcome.UP_TO_DATE, "no time has passed"
    assert all(report.ok for report in workspace.verify(all=True))


def test_rows_that_come_after_that_are_late_and_leave_it(tmp_path: Path, later: Later) -> None:
    workspace = workspace_with(tmp_path, polled())
    configure(workspace, idle="1h")
    put(tmp_path, "2024-02-20T00:00:00Z")
    pull(workspace)
    later(HOUR)
    pull(workspace)
    put(tmp_path, "2024-02-21T00:00:00Z", name="2", first=1)
    (result,) = pull(workspace)
    assert (result.counts["late"], watermark(workspace)) == (1, "2024-03-01T13:00:00Z")


def test_without_the_setting_the_watermark_waits(tmp_path: Path, later: Later) -> None:
    workspace = workspace_with(tmp_path, polled())
    put(tmp_path, "2024-02-20T00:00:00Z")
    pull(workspace)
    later(1000 * DAY)
    assert pull(workspace)[0].outcome is PullOutcome.UP_TO_DATE


def test_before_the_first_rows_nothing_moves(tmp_path: Path, later: Later) -> None:
    workspace = workspace_with(tmp_path, polled())
    configure(workspace, idle="0s")
    put(tmp_path)
    pull(workspace)
    later(DAY)
    assert pull(workspace)[0].outcome is PullOutcome.UP_TO_DATE
    assert workspace.datasets.state("root").watermark is None


def test_a_pull_of_several_files_moves_it_only_when_all_of_them_have_nothing(tmp_path: Path, later: Later) -> None:
    workspace = workspace_with(tmp_path, polled())
    configure(workspace, idle="1h")
    put(tmp_path, "2024-02-20T00:00:00Z")
    pull(workspace)
    later(DAY)
    put(tmp_path, "2024-02-20T00:00:00Z", name="2")  # a key that the ledger has
    put(tmp_path, "2024-02-25T00:00:00Z", name="3", first=1)
    (result,) = pull(workspace)
    assert (result.counts["unchanged"], result.counts["late"], result.num_records) == (1, 0, 1)
    assert watermark(workspace) == "2024-02-25T00:00:00Z"
    now = later(DAY)
    put(tmp_path, "2024-02-20T00:00:00Z", name="4")
    (result,) = pull(workspace)
    assert (result.num_records, result.num_blocks, result.watermark) == (0, 2, now)


def test_a_failed_pull_moves_nothing(tmp_path: Path, later: Later) -> None:
    workspace = workspace_with(tmp_path, polled())
    configure(workspace, idle="1h")
    put(tmp_path, "2024-02-20T00:00:00Z")
    pull(workspace)
    head = workspace.datasets.state("root").head
    later(DAY)
    put(tmp_path, "never", name="2")
    (result,) = workspace.pull(["root"])
    assert (result.outcome, workspace.datasets.state("root").head) == (PullOutcome.FAILED, head)


def test_a_source_that_is_not_asked_is_not_idle(tmp_path: Path, later: Later) -> None:
    (tmp_path / "site").mkdir()
    with static_server(tmp_path / "site") as server:
        workspace = workspace_with(tmp_path / "workspace", polled(f'{{kind: Url, url: "{server.url}/a"}}'))
        configure(workspace, idle="1h")
        workspace.set_watermark("root", at("2024-01-01"))  # which brings no data
        body = b'{"event_time":"2024-02-20T00:00:00Z","id":1,"name":"x"}\n'
        server.special["/a"] = lambda handler: send(handler, body)  # without any version
        assert pull(workspace)[0].num_records == 1
        now = later(DAY)
        (result,) = pull(workspace)
        assert (result.outcome, watermark(workspace)) == (PullOutcome.UP_TO_DATE, "2024-02-20T00:00:00Z")
        assert "--fetch-uncacheable" in result.notes[0]
        (plan,) = workspace.plan_pull(["root"])
        assert plan.expectation is Expectation.UP_TO_DATE
        (result,) = workspace.pull(["root"], fetch_uncacheable=True)
        assert (result.num_records, result.watermark) == (0, now)


def test_a_pull_moves_it_where_data_is_handed_in(tmp_path: Path, later: Later) -> None:
    workspace = workspace_with(tmp_path, root())
    configure(workspace, idle="1d")
    feed(workspace, "root", "1 a")
    now = later(DAY)
    (result,) = pull(workspace)
    assert (result.watermark, len(result.notes)) == (now, 2)


def test_an_ingest_of_nothing_new_is_a_look_too(tmp_path: Path, later: Later) -> None:
    workspace = workspace_with(tmp_path, root())
    configure(workspace, idle="1d")
    feed(workspace, "root", "1 a")
    now = later(DAY)
    result = feed(workspace, "root", "1 a")
    assert (result.num_records, result.watermark, result.counts["unchanged"]) == (0, now, 1)
    empty = put(tmp_path)
    new = put(tmp_path, "2024-02-20T00:00:00Z", name="2", first=2)
    later(DAY)
    assert [result.watermark for result in workspace.ingest("root", [new, empty])] == [now, now], "some came"


def test_a_watch_moves_it_sparingly_and_not_while_files_are_missing(tmp_path: Path, later: Later) -> None:
    workspace = workspace_with(tmp_path, root(merge="{kind: Append}"))
    configure(workspace, lag="1d", idle="1h")
    put(tmp_path, "2024-02-20T00:00:00Z", name="1")
    bad = tmp_path / "in" / "bad.ndjson"

    def story() -> Iterator[None]:
        for seconds in (HOUR - 1, 1, 1, HOUR - 2, 1):  # due at the second and the last
            later(seconds)
            yield
        bad.write_text("{]\n")
        later(HOUR)
        yield
        later(HOUR)
        yield
        bad.unlink()
        yield

    steps = story()

    def pause() -> None:
        if next(steps, steps) is steps:
            raise KeyboardInterrupt

    found = list(workspace.watch("root", tmp_path / "in", settle=0, pause=pause))
    assert [(result.outcome.value, str(result.watermark)) for result in found] == [
        ("updated", "2024-02-19T00:00:00Z"),
        ("updated", "2024-02-29T13:00:00Z"),
        ("updated", "2024-02-29T14:00:00Z"),
        ("failed", "None"),
        ("updated", "2024-02-29T16:00:00Z"),
    ]


def test_a_dry_run_tells(tmp_path: Path, later: Later) -> None:
    workspace = workspace_with(tmp_path, polled(), root("pushed"))
    configure(workspace, idle="1h")
    configure(workspace, "pushed", idle="1h")
    put(tmp_path, "2024-02-20T00:00:00Z")
    feed(workspace, "pushed", "1 a")
    pull(workspace)
    assert {plan.expectation for plan in workspace.plan_pull(all=True)} == {Expectation.UP_TO_DATE}
    now = later(HOUR)
    plans = list(workspace.plan_pull(all=True))
    assert {plan.expectation for plan in plans} == {Expectation.NEW}
    assert all(plan.notes[-1] == f"it would be {now}" for plan in plans)
    assert {result.watermark for result in pull(workspace)} == {now}


def test_a_clock_that_goes_back_does_not_take_it_along(tmp_path: Path, later: Later) -> None:
    workspace = workspace_with(tmp_path, polled())
    configure(workspace, idle="1h")
    put(tmp_path, "2024-02-20T00:00:00Z")
    pull(workspace)
    now = later(DAY)
    pull(workspace)
    later(-10 * DAY)
    assert pull(workspace)[0].outcome is PullOutcome.UP_TO_DATE
    assert workspace.datasets.state("root").watermark == now


def test_a_slow_input_does_not_stall_what_is_downstream(tmp_path: Path, later: Later) -> None:
    union = (
        derivative("both")
        .replace("[{datasetRef: root, alias: source}]", "[{datasetRef: fast}, {datasetRef: slow}]")
        .replace("from source where id > 1", "from fast union all select op, event_time, id, name from slow")
    )
    workspace = workspace_with(tmp_path, root("fast"), root("slow"), union, derivative("deep", "both"))
    feed(workspace, "slow", "1 a", day=2)
    feed(workspace, "fast", "2 b", day=20)
    pull(workspace)
    assert watermark(workspace, "deep") == "2024-01-02T00:00:00Z"
    configure(workspace, "slow", idle="1d", lag="2d")
    later(DAY)
    results = {result.name: result for result in pull(workspace)}
    assert (results["both"].num_records, results["deep"].num_blocks) == (0, 1)
    assert watermark(workspace, "slow") == "2024-02-29T12:00:00Z"
    assert watermark(workspace, "both") == watermark(workspace, "deep") == "2024-01-20T00:00:00Z"
    assert all(report.ok for report in workspace.verify(all=True))


def test_a_slower_input_that_is_added_later_does_not_take_it_back(tmp_path: Path) -> None:
    one = derivative("both", "fast", "select op, event_time, id, name from fast").replace(
        "alias: source", "alias: fast"
    )
    workspace = workspace_with(tmp_path, root("fast"), root("slow"), one)
    feed(workspace, "slow", "1 a", day=2)
    feed(workspace, "fast", "2 b", day=20)
    pull(workspace)
    two = one.replace("alias: fast}]", "alias: fast}, {datasetRef: slow}]").replace(
        "from fast", "from fast union all select op, event_time, id, name from slow"
    )
    workspace.add(load_snapshots(two, "manifest"), replace=True)
    pull(workspace)
    feed(workspace, "slow", "1 b", day=3)
    pull(workspace)
    assert watermark(workspace, "both") == "2024-01-20T00:00:00Z"
    assert [report.findings for report in workspace.verify(["both"])] == [()]


# --- Whatever happens ------------------------------------------------------------------------------------------------

steps = st.tuples(
    st.sampled_from(["rows", "nothing", "by hand"]), st.integers(0, 3 * DAY), st.integers(1, 28), st.integers(0, 3)
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(story=st.lists(steps, min_size=1, max_size=8))
def test_the_watermark_is_a_function_of_blocks_policy_and_system_time(
    story: list[tuple[str, int, int, int]], tmp_path_factory: pytest.TempPathFactory, later: Later
) -> None:
    """Told again by the policy alone, from what the blocks say, the story has the same watermarks: never one goes back."""
    workspace = workspace_with(tmp_path_factory.mktemp("story"), root(merge="{kind: Append}"))
    expected: Timestamp | None = None
    last_rows: Timestamp | None = None
    for what, waited, day, days in story:
        policy = WatermarkPolicy(Duration(days * DAY), Duration(days * HOUR) if days else None)
        configure(workspace, lag=str(policy.lag), idle=None if policy.idle is None else str(policy.idle))
        now = later(waited)
        before = expected
        if what == "rows":
            feed(workspace, "root", "1 a", day=day)
            expected, last_rows = policy.after_rows(before, [at(f"2024-01-{day:02d}")]), now
        elif what == "nothing":
            pull(workspace)
            expected = policy.when_idle(before, last_rows, now)
        elif before is None or at(f"2024-01-{day:02d}") >= before:
            expected = workspace.set_watermark("root", at(f"2024-01-{day:02d}")).watermark
        assert workspace.datasets.state("root").watermark == expected
        assert before is None or (expected is not None and expected >= before)


# --- By hand ---------------------------------------------------------------------------------------------------------


def test_by_hand_it_moves_forward_whatever_the_policy(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, polled())
    configure(workspace, lag="1d")
    put(tmp_path, "2024-02-20T00:00:00Z")
    pull(workspace)
    assert workspace.set_watermark("root", at("2024-03-01")).num_blocks == 1
    with pytest.raises(WatermarkWentBack, match="at 2024-03-01T00:00:00Z already and cannot go back to 2024-02-29"):
        workspace.set_watermark("root", at("2024-02-29"))
    put(tmp_path, "2024-02-28T00:00:00Z", name="2", first=1)
    assert pull(workspace)[0].counts["late"] == 1
    assert watermark(workspace) == "2024-03-01T00:00:00Z"


def test_by_hand_to_where_it_is_makes_no_block(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, polled())
    put(tmp_path, "2024-02-20T00:00:00Z")
    pull(workspace)  # with a state of the source, which the block of a watermark has not
    assert workspace.set_watermark("root", at("2024-02-20")).outcome is PullOutcome.UP_TO_DATE


@pytest.fixture
def others(tmp_path: Path) -> Workspace:
    """A derivative dataset and a copy, which have no watermark of their own."""
    workspace = workspace_with(tmp_path / "workspace", root(), derivative())
    pull(workspace, str(KAMU / "trades"))
    return workspace


@pytest.mark.parametrize(("name", "words"), [("derived", "is derivative"), ("trades", "is a copy of")])
def test_only_root_datasets_that_are_at_home_have_one_of_their_own(name: str, words: str, others: Workspace) -> None:
    for attempt in (lambda: others.set_watermark(name, at("2030-01-01")), lambda: others.settings_of(name)):
        with pytest.raises(UsageError, match=words):
            attempt()
    assert [result.outcome.value for result in others.pull(["trades"])] == ["up to date"], "it has not diverged"


# --- Where the policy is ---------------------------------------------------------------------------------------------


def test_the_policy_stays_with_the_dataset_and_only_here(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path / "workspace", root())
    configure(workspace, lag="1d")
    feed(workspace, "root", "1 a", day=2)
    changed = load_snapshots(root() + "    - {kind: SetInfo, description: changed}\n", "manifest")
    workspace.add(changed, replace=True)
    workspace.datasets.rename("root", "renamed")
    assert workspace.settings_of("renamed").get("watermark.lag") == "1d"
    list(workspace.push(["renamed"], to=str(tmp_path / "pushed")))
    assert not [path for path in (tmp_path / "pushed").rglob("*") if path.is_file() and b"lag" in path.read_bytes()]
    workspace.datasets.delete(["renamed"])
    workspace.add(load_snapshots(root(), "manifest"))
    assert workspace.settings_of("root").get("watermark.lag") == "0s"


def test_settings_of_a_dataset_are_not_those_of_a_workspace(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root())
    own = workspace.settings_of("root")
    with pytest.raises(UsageError, match=r"watermark\.lag is a setting of single datasets") as error:
        workspace.config.set("watermark.lag", "1d")
    assert error.value.hint == "Add --dataset NAME."
    with pytest.raises(UsageError, match=r"engine\.memory is not a setting of single datasets"):
        own.get("engine.memory")
    with pytest.raises(UsageError, match="not those of a user"):
        own.set("watermark.lag", "1d", for_user=True)
    with pytest.raises(UsageError, match=r"watermark\.idle is a duration such as .*, not '1 day'"):
        own.set("watermark.idle", "1 day")
    with pytest.raises(UsageError) as error:
        own.get("watermark.lagg")
    assert error.value.hint == "Did you mean watermark.lag?"


def test_damaged_settings_are_named_and_nothing_is_committed(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root())
    file = workspace.storage.get("root").folder / "info" / "config.yaml"
    file.write_text("watermark: {lag: -1}\n")
    head = workspace.datasets.state("root").head
    with pytest.raises(MalformedManifest, match=r"config\.yaml: watermark\.lag must be a duration such as .*, not -1"):
        feed(workspace, "root", "1 a")
    assert workspace.datasets.state("root").head == head


def test_a_watermark_that_comes_to_lie_in_the_future_is_warned_of_once(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(merge="{kind: Append}"))
    file = tmp_path / "rows.ndjson"
    heads = []

    def told(time: str) -> list[str]:
        heads.append(workspace.storage.get("root").state.head)
        file.write_text(f'{{"event_time": "{time}", "id": 1, "name": "a"}}\n')
        (result,) = workspace.ingest("root", [file])
        return [warning.message for warning in result.warnings]

    assert told("2024-01-01T00:00:00Z") == []
    (message,) = told("9999-01-01T00:00:00Z")
    assert message.startswith("event times are in the future, and so is the watermark, 9999-01-01T00:00:00Z")
    assert f"`odf reset root {heads[-1]}` undoes the ingest" in message
    assert told("9999-01-02T00:00:00Z") == told("2024-01-02T00:00:00Z") == []
