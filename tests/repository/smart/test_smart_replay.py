"""The reference's own conversations: our client with its server, and our server with its client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.chains.small_datasets import contents, image
from support.chains.smart_pair import Site
from support.chains.smart_replay import NAMES, Recording, plain, plant, pushed, scripted, trades

from odfpy.chain.layout import DatasetLayout
from odfpy.repository.exchange import fetch_dataset, send_dataset
from odfpy.repository.smart_transfer.pull import serve_pull
from odfpy.repository.smart_transfer.serve_push import serve_push
from odfpy.repository.smart_transfer.session import PeerClosed, Receive, Send


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_TOKEN", "TOKEN")


@pytest.mark.parametrize("name", NAMES)
def test_client_says_what_the_reference_says(name: str):
    recording = Recording.load(name)
    with scripted(recording) as node:
        if name == "pull":
            here = DatasetLayout.in_memory()
            result = fetch_dataset(node.url, here)
            assert image(here) == image(trades())
        else:
            here = pushed(recording)
            result = send_dataset(here, node.url)
        assert node.done.wait(60)
    assert result.new_head == recording.blocks()[-1].hashed.hash
    wanted = [message for who, message in recording.messages if who == "client"]
    assert [plain(message) for message in node.heard] == [plain(message) for message in wanted]
    assert node.close_code == next(line["close"] for line in recording.lines if "close" in line)
    opened = next(line for line in recording.lines if "open" in line)
    assert node.opened["path"] == opened["open"]
    assert {key: node.opened[key.lower()] for key in opened["headers"]}.items() >= opened["headers"].items()
    assert {path for method, path, _ in node.asked if method == "PUT"} == {
        f"{recording.path}/data/{item['physical_hash']}" for item in recording.objects() if name != "pull"
    }


class Played:
    """Our server's side, with what the reference's client has said."""

    def __init__(self, conversation: Any) -> None:
        self.conversation = conversation
        self.said: list[Any] = []
        self._step = next(conversation)

    def receive(self, message: Any) -> None:
        self._settle()
        assert isinstance(self._step, Receive)
        self._step = self.conversation.send(json.dumps(message))
        self._settle()

    def _settle(self) -> None:
        while isinstance(self._step, Send):
            self.said.append(json.loads(self._step.text))
            try:
                self._step = next(self.conversation)
            except StopIteration:
                self._step = None

    def hang_up(self) -> None:
        if self._step is not None:
            with pytest.raises(StopIteration):
                self.conversation.throw(PeerClosed(1000))


@pytest.mark.parametrize("name", NAMES)
def test_server_says_what_the_reference_says(name: str):
    recording = Recording.load(name)
    site = Site(trades() if name == "pull" else None)
    if name == "push-append":
        site.layout = pushed(Recording.load("push-new"))
    played = Played(serve_pull(trades(), site.located) if name == "pull" else serve_push(site))
    for who, message in recording.messages:
        if who == "client":
            if message == {"details": "Complete"}:
                plant(site.layout or next(iter(site.staged.values())), recording)
            played.receive(message)
    played.hang_up()
    wanted = [message for who, message in recording.messages if who == "server"]
    assert [plain(message) for message in played.said] == [plain(message) for message in wanted]
    assert site.head == recording.blocks()[-1].hashed.hash
    if name != "pull":
        assert contents(site.source().blocks) == contents(pushed(recording).blocks)
