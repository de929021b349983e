"""Who is told that a head has moved: subscribers, webhooks, and copies that follow."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from support.chains.small_datasets import add_info, make_dataset
from support.servers.serving import PATIENCE, ask, put, serving, wait_until, workspace_at
from support.servers.static_server import send, static_server
from support.servers.webhooks import receiving

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.follow import FollowPace
from odfpy.coordinator.requests import PullRequest
from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import TransferError, UsageError
from odfpy.repository.events import NoEvents, heads_told
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.notifications.webhooks import Webhooks
from odfpy.serving.server import DatasetServer


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return workspace_at(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace, heartbeat=0.05, webhook_delay=0.01, webhook_attempts=3, max_streams=3) as server:
        yield server


def head_of(dataset: StoredDataset) -> str:
    return str(dataset.layout.refs.get(HEAD))


# --- Events ----------------------------------------------------------------------------------------------------------


class Subscription:
    """Reads a stream of events line by line."""

    def __init__(self, url: str, path: str, **headers: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self.connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        self.connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        self.answer = self.connection.getresponse()

    def next(self, name: str = "head") -> dict[str, Any]:
        """The data of the next event of that name."""
        event = ""
        while line := self.answer.readline().decode():
            event = line[7:].strip() if line.startswith("event: ") else event
            if line.startswith("data: ") and event == name:
                return json.loads(line[6:])
        raise EOFError

    def skip_to_comment(self) -> None:
        while not self.answer.readline().startswith(b": nothing new"):
            pass

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


@contextmanager
def subscribed(url: str, path: str, **headers: str) -> Iterator[Subscription]:
    with closing(Subscription(url, path, **headers)) as events:
        yield events


def test_each_new_head_is_told_the_present_one_first(server: DatasetServer, workspace: Workspace) -> None:
    dataset = put(workspace, "com.example.told", 1, public=True)
    with subscribed(server.url, "/com.example.told/events") as events:
        assert events.answer.headers["Content-Type"].startswith("text/event-stream")
        first = events.next()
        assert first["head"] == head_of(dataset)
        assert first["dataset"] == {"id": str(dataset.handle.id), "name": "com.example.told"}
        assert first["numRecords"] == 1
        add_info(dataset.layout, "more")  # as another process would
        second = events.next()
        assert second["head"] == head_of(dataset)
        assert second["sequenceNumber"] == first["sequenceNumber"] + 1


def test_who_knows_the_head_is_told_only_what_comes_after(server: DatasetServer, workspace: Workspace) -> None:
    dataset = put(workspace, "com.example.known", 2, public=True)
    with subscribed(server.url, "/com.example.known/events", Last_Event_ID=head_of(dataset)) as events:
        events.skip_to_comment()
        add_info(dataset.layout, "more")
        assert events.next()["head"] == head_of(dataset)


def test_a_subscription_ends_with_the_right_to_read(server: DatasetServer, workspace: Workspace) -> None:
    dataset = put(workspace, "com.example.withdrawn", 3, public=True)
    assert ask(f"{server.url}/alice/com.example.withdrawn/events").status == 401
    with subscribed(server.url, "/com.example.withdrawn/events") as events:
        events.next()
        set_visibility(dataset.folder, Visibility.PRIVATE)
        events.next("end")
    text = Tokens(workspace.odf).new("listener", Scope.READ)
    with subscribed(server.url, "/com.example.withdrawn/events", Authorization=f"Bearer {text}") as events:
        events.next()
        Tokens(workspace.odf).revoke("listener")
        events.next("end")


def test_a_subscription_ends_with_the_dataset(server: DatasetServer, workspace: Workspace) -> None:
    put(workspace, "com.example.deleted", 4, public=True)
    with subscribed(server.url, "/com.example.deleted/events") as events:
        events.next()
        workspace.datasets.delete(["com.example.deleted"])
        events.next("end")


def test_there_are_only_so_many_subscriptions(server: DatasetServer, workspace: Workspace) -> None:
    put(workspace, "com.example.crowd", 5, public=True)
    path = "/com.example.crowd/events"
    wait_until(lambda: server.app.state.num_streams == 0)
    with subscribed(server.url, path), subscribed(server.url, path), subscribed(server.url, path):
        wait_until(lambda: server.app.state.num_streams == 3)
        assert ask(f"{server.url}{path}").status == 503
    wait_until(lambda: server.app.state.num_streams == 0)
    with subscribed(server.url, path) as events:
        events.next()


def test_a_server_that_stops_ends_its_streams_and_what_is_under_way(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    put(workspace, "com.example.rates", 1, public=True)
    with serving(workspace, heartbeat=1000) as server, subscribed(server.url, "/com.example.rates/events") as events:
        events.next()
        server.should_exit = True
        with pytest.raises(EOFError):
            events.next()


# --- Webhooks --------------------------------------------------------------------------------------------------------


def test_a_webhook_is_told_each_new_head_with_a_signature(server: DatasetServer, workspace: Workspace) -> None:
    dataset = put(workspace, "com.example.hooked", 10)
    before = head_of(dataset)
    with receiving() as receiver:
        webhook = Webhooks(dataset).add(receiver.url)
        add_info(dataset.layout, "more")
        headers, body = receiver.calls.get(timeout=PATIENCE)
        event = json.loads(body)
        assert (event["head"], event["previousHead"]) == (head_of(dataset), before)
        assert event["dataset"]["name"] == "com.example.hooked"
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(webhook.secret.removeprefix("whsec_"))
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{expected}"
        Webhooks(dataset).delete(receiver.url)


def test_a_receiver_that_fails_is_called_again_with_the_same_id(server: DatasetServer, workspace: Workspace) -> None:
    dataset = put(workspace, "com.example.retried", 11)
    with receiving() as receiver:
        receiver.statuses.put(500)
        receiver.statuses.put(302)
        webhook = Webhooks(dataset).add(receiver.url)
        add_info(dataset.layout, "more")
        ids = [receiver.calls.get(timeout=PATIENCE)[0]["webhook-id"] for _ in range(3)]
        assert len(set(ids)) == 1
        wait_until(lambda: Webhooks(dataset).last_told(webhook) == head_of(dataset))
        Webhooks(dataset).delete(receiver.url)


def test_a_receiver_that_never_answers_well_is_given_up_until_the_next_head(
    server: DatasetServer, workspace: Workspace
) -> None:
    dataset = put(workspace, "com.example.refused", 12)
    with receiving() as receiver:
        for _ in range(3):
            receiver.statuses.put(503)
        webhook = Webhooks(dataset).add(receiver.url)
        add_info(dataset.layout, "more")
        wait_until(lambda: Webhooks(dataset).last_told(webhook) == head_of(dataset))
        assert receiver.calls.qsize() == 3
        add_info(dataset.layout, "and more")
        wait_until(lambda: receiver.calls.qsize() == 4)
        Webhooks(dataset).delete(receiver.url)


def test_what_moved_while_the_server_was_down_is_told_when_it_is_up(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    dataset = put(workspace, "com.example.rates", 1)
    with receiving() as receiver:
        Webhooks(dataset).add(receiver.url)
        add_info(dataset.layout, "more")
        with serving(workspace):
            assert json.loads(receiver.calls.get(timeout=PATIENCE)[1])["head"] == head_of(dataset)


def test_secrets_of_webhooks_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    dataset = put(workspace_at(tmp_path), "com.example.rates", 1)
    webhook = Webhooks(dataset).add("https://hooks.example.com/x?key=s3cr3t")
    (file,) = (dataset.folder / "info" / "webhooks").glob("*.yaml")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "s3cr3t" not in repr(webhook) + webhook.shown
    assert webhook.secret not in repr(webhook)


# --- Copies that follow ----------------------------------------------------------------------------------------------


@contextmanager
def following(workspace: Workspace, *refs: str) -> Iterator[Callable[[], PullResult]]:
    """Copies that follow in a thread; gives a function for the next result."""
    results: queue.Queue[PullResult] = queue.Queue()
    pace = FollowPace(interval=0.01, retry=0.01, breath=0.01)
    follow = workspace.updates.follow(PullRequest(refs=refs), pace)

    def run() -> None:
        for result in follow.run():
            results.put(result)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: results.get(timeout=PATIENCE)
    finally:
        follow.stop()
        thread.join(PATIENCE)


def test_a_copy_follows_a_server(server: DatasetServer, workspace: Workspace, tmp_path: Path) -> None:
    origin = put(workspace, "com.example.followed", 30, public=True)
    with following(workspace_at(tmp_path), f"{server.url}/com.example.followed") as result:
        assert str(result().new_head) == head_of(origin)
        for text in ("second", "third"):
            add_info(origin.layout, text)
            assert str(result().new_head) == head_of(origin)
        add_info(origin.layout, "fourth")
        result()


def test_a_copy_goes_on_after_an_error_that_nobody_expects(
    server: DatasetServer,
    tmp_path: Path,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    origin = put(workspace, "com.example.unexpected", 32, public=True)
    problems = [ValueError("a library has a fault")]

    def told(url: str) -> Iterator[str]:
        if problems:
            raise problems.pop()
        return heads_told(url)

    monkeypatch.setattr("odfpy.coordinator.follow.heads_told", told)
    with following(workspace_at(tmp_path), f"{server.url}/com.example.unexpected") as result:
        assert str(result().new_head) == head_of(origin)
        wait_until(lambda: not problems)
        add_info(origin.layout, "second")
        assert str(result().new_head) == head_of(origin)
    assert [one.message for one in caplog.records if one.name == "odfpy"] == [
        f"Listening to {server.url}/com.example.unexpected failed; trying again"
    ]


def test_a_copy_goes_on_when_its_server_was_away(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path / "served")
    origin = put(workspace, "com.example.rates", 1, public=True)
    with ExitStack() as stack:
        with serving(workspace) as first:
            copy = workspace_at(tmp_path / "copy")
            result = stack.enter_context(following(copy, f"{first.url}/com.example.rates"))
            result()
        add_info(origin.layout, "while nobody listened")
        with serving(workspace, port=int(first.url.rpartition(":")[2])):
            assert str(result().new_head) == head_of(origin)


def test_a_copy_follows_a_folder_that_is_looked_at(tmp_path: Path) -> None:
    origin = make_dataset(DatasetLayout.local(tmp_path / "origin" / "com.example.rates"), "first")
    with following(workspace_at(tmp_path / "copy"), str(tmp_path / "origin" / "com.example.rates")) as result:
        result()
        add_info(origin, "second")
        assert result().new_head == origin.refs.get(HEAD)
        add_info(origin, "third")
        result()


def test_places_without_events_say_so(server: DatasetServer, tmp_path: Path) -> None:
    for url in (tmp_path.as_uri(), f"{server.url}/health"):
        with pytest.raises(NoEvents):
            next(heads_told(url))


HEADLESS = b"event: head\n\nevent: other\nid: x\n\nid: y\n\n"


@pytest.mark.parametrize(
    ("body", "heads"),
    [
        (b"", []),
        (b"event: head\nid: one\ndata: {}\n\nevent: head\nid: two\n\n", ["one", "two"]),
        (b"event: head\r\nid:one\r\n\r\n", ["one"]),
        (b": a comment\n\n" * 1000 + b"event: head\nid: cut off", []),
        (HEADLESS, []),
        (b"\xff\xfe\n\n\0\n\n", []),
    ],
)
def test_streams_are_read_as_browsers_read_them(body: bytes, heads: list[str], tmp_path: Path) -> None:
    with static_server(tmp_path) as site:
        site.special["/events"] = lambda handler: send(handler, body, Content_Type="text/event-stream; charset=utf-8")
        assert list(heads_told(f"{site.url}/x")) == heads


def test_a_line_that_does_not_end_is_an_error(tmp_path: Path) -> None:
    def answer(handler: SimpleHTTPRequestHandler) -> None:
        send(handler, b"", Content_Length=None, Content_Type="text/event-stream")
        while True:
            handler.wfile.write(b"data: and so on, ")

    with static_server(tmp_path) as site:
        site.special["/events"] = answer
        with pytest.raises(TransferError, match="a line does not end"):
            list(heads_told(f"odf+{site.url}/x"))


def test_what_is_no_copy_cannot_follow(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    put(workspace, "com.example.rates", 1)
    with pytest.raises(UsageError, match="nothing to follow"):
        list(workspace.updates.follow(PullRequest(refs=("com.example.rates",))).run())
