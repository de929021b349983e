"""Events of OpenLineage: what a receiver gets of real pulls, and that a bad receiver harms none."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attr
import pytest
from openlineage.client import event_v2, facet_v2
from openlineage.client.serde import Serde
from support.chains.workspaces import FOLDER, QUERY, copied, derivative, feed, root, workspace_with
from support.servers.webhooks import WebhookReceiver, receiving

from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import UsageError

LEDGER = "{kind: Ledger, primaryKey: [id]}"


@pytest.fixture(scope="module")
def receiver() -> Iterator[WebhookReceiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, receiver: WebhookReceiver) -> Workspace:
    found = workspace_with(
        tmp_path_factory.mktemp("prepared"),
        root("com.example.rates", LEDGER),
        derivative("com.example.upper", "com.example.rates"),
    )
    feed(found, "com.example.rates", "1 a", "2 b", "3 c")
    found.config.set("openLineage.url", receiver.url.partition("/hook")[0])
    found.config.set("openLineage.namespace", "my-data")
    return found


@pytest.fixture
def workspace(prepared: Workspace, tmp_path: Path) -> Workspace:
    return copied(prepared, tmp_path)


def received(receiver: WebhookReceiver) -> list[dict[str, Any]]:
    return [json.loads(receiver.calls.get_nowait()[1]) for _ in range(receiver.calls.qsize())]


def states(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["job"]["name"], event["eventType"]) for event in events]


def test_a_pull_is_a_run_with_what_was_read_and_written(workspace: Workspace, receiver: WebhookReceiver) -> None:
    [result] = workspace.pull(["com.example.upper"])
    start, complete = received(receiver)
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert complete["job"]["namespace"] == "my-data"
    assert complete["job"]["facets"]["sql"]["query"] == QUERY
    assert complete["job"]["facets"]["sql"]["dialect"] == "datafusion"
    assert "nominalStartTime" in complete["run"]["facets"]["nominalTime"]
    (source,) = complete["inputs"]
    rates = workspace.storage.get("com.example.rates")
    assert (source["namespace"], source["name"]) == ("my-data", "com.example.rates")
    assert source["facets"]["version"]["datasetVersion"] == str(rates.state.head)
    assert source["facets"]["symlinks"]["identifiers"][0]["name"] == str(rates.handle.id)
    (output,) = complete["outputs"]
    assert output["name"] == "com.example.upper"
    assert output["facets"]["version"]["datasetVersion"] == str(result.new_head)
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == result.num_records == 2
    written = workspace.storage.get("com.example.upper").state.data_bytes
    assert output["outputFacets"]["outputStatistics"]["size"] == written > 0
    fields = {field["name"]: field["type"] for field in output["facets"]["schema"]["fields"]}
    assert fields["name"] == "Option<String>"
    assert "outputStatistics" not in start["outputs"][0].get("outputFacets", {})


def test_all_are_parts_of_one_run(workspace: Workspace, receiver: WebhookReceiver) -> None:
    assert [result.error for result in workspace.pull(all=True)] == [None, None]
    events = received(receiver)
    assert states(events) == [
        ("pull --all", "START"),
        ("com.example.rates", "START"),
        ("com.example.rates", "COMPLETE"),
        ("com.example.upper", "START"),
        ("com.example.upper", "COMPLETE"),
        ("pull --all", "COMPLETE"),
    ]
    parents = {event["run"]["facets"]["parent"]["run"]["runId"] for event in events[1:-1]}
    assert parents == {events[0]["run"]["runId"]}


def test_events_are_what_the_library_reads(workspace: Workspace, receiver: WebhookReceiver) -> None:
    """Each facet is one of its classes, and written anew it is the same."""
    assert list(workspace.pull(all=True))
    for event in received(receiver):
        assert event["schemaURL"] == event_v2.RunEvent._get_schema()
        made = event_v2.RunEvent(
            eventTime=event["eventTime"],
            eventType=event_v2.RunState(event["eventType"]),
            run=event_v2.Run(event["run"]["runId"]),
            job=event_v2.Job(event["job"]["namespace"], event["job"]["name"]),
            producer=event["producer"],
        )
        again = Serde.to_dict(made)
        assert {name: again[name] for name in ("eventTime", "eventType", "producer", "schemaURL")} == {
            name: event[name] for name in ("eventTime", "eventType", "producer", "schemaURL")
        }
        parts = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
        facets = [
            facet for part in parts for facet in {**part.get("facets", {}), **part.get("outputFacets", {})}.values()
        ]
        assert facets
        for facet in facets:
            check_facet(facet)


def check_facet(facet: dict[str, Any]) -> None:
    """Check that the class of its schema has all its fields, and those that it must have."""
    name = facet["_schemaURL"].rpartition("/")[2]
    (kind,) = (
        found
        for module in vars(facet_v2).values()
        if (found := getattr(module, name, None)) is not None and attr.has(found)
    )
    fields = attr.fields_dict(kind)
    assert facet.keys() <= fields.keys(), name
    assert {one for one, field in fields.items() if field.default is attr.NOTHING} <= facet.keys(), name
    assert facet["_producer"].startswith("https://opendatafabric.org/#odfpy-")


def test_what_fails_says_why_and_what_depends_on_it_is_aborted(tmp_path: Path, receiver: WebhookReceiver) -> None:
    upper = derivative("com.example.upper", "com.example.folder", query="select op, event_time, id from source")
    workspace = workspace_with(tmp_path, FOLDER, upper)
    workspace.config.set("openLineage.url", receiver.url.partition("/hook")[0])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("id\nx\n")
    assert [result.outcome for result in workspace.pull(all=True)] == [PullOutcome.FAILED, PullOutcome.SKIPPED]
    events = received(receiver)
    assert states(events)[1:] == [
        ("com.example.folder", "START"),
        ("com.example.folder", "FAIL"),
        ("com.example.upper", "START"),
        ("com.example.upper", "ABORT"),
        ("pull --all", "FAIL"),
    ]
    failed = events[2]
    assert failed["run"]["facets"]["errorMessage"]["programmingLanguage"] == "python"
    assert "(E4" in failed["run"]["facets"]["errorMessage"]["message"]
    assert [(one["namespace"], one["name"]) for one in failed["inputs"]] == [("file", "in/*.csv")]


def test_a_copy_that_comes_from_elsewhere_is_a_run_too(
    workspace: Workspace, receiver: WebhookReceiver, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("place")
    assert [one.error for one in workspace.push(["com.example.rates"], to=str(place / "rates"))] == [None]
    other = Workspace.init(tmp_path_factory.mktemp("other"))
    other.config.set("openLineage.url", receiver.url.partition("/hook")[0])
    [result] = other.pull([str(place / "rates")])
    assert result.error is None
    start, complete = received(receiver)
    assert states([start, complete]) == [(result.name, "START"), (result.name, "COMPLETE")]
    assert complete["outputs"][0]["facets"]["version"]["datasetVersion"] == str(result.new_head)


def test_an_interrupted_pull_is_aborted(workspace: Workspace, receiver: WebhookReceiver) -> None:
    results = workspace.pull(all=True)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert states(received(receiver))[-1] == ("pull --all", "ABORT")


def test_the_key_comes_from_a_file(workspace: Workspace, receiver: WebhookReceiver, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cr3t\n")
    workspace.config.set("openLineage.apiKeyFile", str(tmp_path / "key"))
    assert list(workspace.pull(["com.example.upper"]))
    headers, _ = receiver.calls.get_nowait()
    assert headers["authorization"] == "Bearer s3cr3t"
    received(receiver)


# --- Bad receivers ---------------------------------------------------------------------------------------------------


def test_a_receiver_that_is_down_is_told_once(workspace: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    workspace.config.set("openLineage.url", "http://127.0.0.1:1/x?key=s3cr3t")
    assert [result.error for result in workspace.pull(all=True)] == [None, None]
    (said,) = caplog.messages
    assert said == "6 events of lineage did not reach http://127.0.0.1:1/x: ConnectionError"


def test_a_receiver_that_fails_is_told_once(
    workspace: Workspace, receiver: WebhookReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(4):
        receiver.statuses.put(500)
    assert [result.error for result in workspace.pull(["com.example.upper"])] == [None]
    (said,) = caplog.messages
    assert said.endswith(": status 500")
    received(receiver)


def test_a_receiver_that_never_answers_holds_a_pull_up_for_a_bounded_time(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        workspace.config.set("openLineage.url", f"http://127.0.0.1:{listener.getsockname()[1]}")
        workspace.config.set("openLineage.timeout", "1")
        assert [result.error for result in workspace.pull(all=True)] == [None, None]
    (said,) = caplog.messages
    assert said.endswith(": it did not answer in time")


def test_a_key_that_is_not_there_is_told_and_the_pull_goes_on(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    workspace.config.set("openLineage.apiKeyFile", "/no/such/file")
    assert [result.error for result in workspace.pull(["com.example.upper"])] == [None]
    (said,) = caplog.messages
    assert said.startswith("no events of lineage are sent: ")


@pytest.mark.parametrize("url", ["ftp://x", "http://user:pass@x/", "nonsense"])
def test_nonsense_is_no_receiver(workspace: Workspace, url: str) -> None:
    with pytest.raises(UsageError):
        workspace.config.set("openLineage.url", url)


def test_without_the_setting_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    program = f"""
import sys
from odfpy.coordinator.workspace import Workspace
list(Workspace.init({str(tmp_path)!r}).pull(all=True))
assert not [name for name in sys.modules if name.startswith(("openlineage", "requests"))]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
