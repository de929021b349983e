"""`odf web sql` over real sockets, with a relay that hangs: Ctrl-C, ends of the time, and whether the others are told."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from support.federation.hostile import HostilePeer, hostile_peer
from support.federation.served import ServedWeb, served_web
from support.processes.terminal import start
from support.servers.serving import wait_until

from odfpy.cli.interruptions import MESSAGE
from odfpy.federation.relay.question import Answer, Question

QUERY = "SELECT id FROM item ORDER BY id"
ID = pa.schema([("id", pa.int64())])
LONG = ("--timeout", "280")
SOON = 60.0
"""Seconds for a command to end: less than what it has asked for, and than the relay before it would wait."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web")


@pytest.fixture(scope="module")
def web(folder: Path) -> Iterator[ServedWeb]:
    """na asks bank and evil."""
    with served_web(folder) as made:
        made.relay("na", "price", "1,10.5,N\n2,20.5,R\n")
        made.relay("bank", "price", "10,15,N\n")
        made.link("na", "bank", "{v}")
        ann = made.known_user("ann", ["na", "bank"])
        ann.write(folder / "ann.pem", folder / "ann.key")
        with made.asks(ann, "na").sql("SELECT id FROM item", require_complete=True) as answer:
            assert answer.to_arrow().num_rows == 3  # from here on, the relays have what they need to read
        yield made


@pytest.fixture(scope="module")
def evil(web: ServedWeb, folder: Path) -> Iterator[HostilePeer]:
    with hostile_peer(web, folder, "evil", "na") as made:
        yield made


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """The end of the test: what hangs goes on then, so that its server can end."""
    made = threading.Event()
    yield made
    made.set()


@pytest.fixture
def peer(evil: HostilePeer, over: threading.Event) -> HostilePeer:
    evil.seen.clear()
    evil.told.clear()
    evil.answers = lambda _: Answer()
    del over
    return evil


Ask = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def ask(web: ServedWeb, folder: Path) -> Iterator[Ask]:
    """Starts `odf web sql` at a relay, na by default."""
    begun = []

    def started(*options: str, relay: str | None = None) -> subprocess.Popen[str]:
        keys = ("--cert", str(folder / "ann.pem"), "--key", str(folder / "ann.key"), "--ca", str(folder / "ca.pem"))
        at = relay or web.relays["na"].server.location
        begun.append(start("web", "sql", QUERY, "--relay", at, *keys, "-o", "csv", *options, cwd=folder))
        return begun[-1]

    yield started
    for one in begun:
        one.kill()
        one.communicate()


def hangs(peer: HostilePeer, over: threading.Event) -> None:
    """Let it answer no question."""

    def answers(_: Question) -> Answer:
        over.wait()
        return Answer()

    peer.answers = answers


def hangs_in_the_middle(peer: HostilePeer, over: threading.Event, *, has_begun: bool) -> threading.Event:
    """Let it give no rows, or only the first ones. Gives what is set when they are wanted."""
    wanted = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [666]}, schema=ID)
        wanted.set()
        over.wait()

    def gives(_: bytes) -> Any:
        if not has_begun:
            wanted.set()
            over.wait()
        return fl.GeneratorStream(ID, batches())

    peer.answers = lambda _: Answer((peer.part(),))
    peer.gives = gives
    return wanted


def is_cancelled(web: ServedWeb, relay: str, query: str) -> bool:
    """Whether a relay has heard that a query is not wanted any more."""
    known = web.relays[relay].server._relay._queries._known
    return [one.is_cancelled for key, one in known.items() if key.query == query] == [True]


def interrupted(process: subprocess.Popen[str]) -> bool:
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SOON)
    return (process.returncode, out, err) == (130, "", f"error: {MESSAGE}\n")


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


def test_ctrl_c_while_a_peer_hangs_cancels_the_query_at_all_relays_once(
    web: ServedWeb, peer: HostilePeer, over: threading.Event, ask: Ask
) -> None:
    hangs(peer, over)
    process = ask(*LONG)
    wait_until(lambda: peer.seen)
    assert interrupted(process)
    query = peer.seen[0].query
    wait_until(lambda: peer.told and is_cancelled(web, "na", query) and is_cancelled(web, "bank", query))
    assert peer.told == [query]


@pytest.mark.parametrize("has_begun", [True, False])
def test_ctrl_c_while_rows_do_not_come(peer: HostilePeer, over: threading.Event, ask: Ask, has_begun: bool) -> None:
    wanted = hangs_in_the_middle(peer, over, has_begun=has_begun)
    process = ask(*LONG)
    wait_until(wanted.is_set)
    assert interrupted(process)


@pytest.mark.parametrize("hangs_at", ["entities", "the question"])
def test_ctrl_c_while_the_relay_that_is_asked_hangs(
    peer: HostilePeer, over: threading.Event, ask: Ask, hangs_at: str
) -> None:
    begun = threading.Event()

    def lists() -> Iterator[fl.FlightInfo]:
        if hangs_at == "entities":
            begun.set()
            over.wait()
        yield fl.FlightInfo(ID, fl.FlightDescriptor.for_path("item"), [], -1, -1)

    def answers(_: Question) -> Answer:
        begun.set()
        over.wait()
        return Answer()

    peer.lists, peer.answers = lists, answers
    process = ask(*LONG, relay=peer.location)
    wait_until(begun.is_set)
    assert interrupted(process)


# --- The end of the time ----------------------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("hangs_at", ["the question", "the first rows", "more rows"])
@pytest.mark.parametrize("is_required", [False, True])
def test_who_hangs_until_the_time_is_over_is_named_and_the_others_answer(
    peer: HostilePeer, over: threading.Event, ask: Ask, hangs_at: str, is_required: bool
) -> None:
    if hangs_at == "the question":
        hangs(peer, over)
    else:
        hangs_in_the_middle(peer, over, has_begun=hangs_at == "more rows")
    process = ask("--timeout", "12", *(("--require-complete",) if is_required else ()))
    out, err = process.communicate(timeout=SOON)
    if is_required:
        assert (process.returncode, out) == (1, "")
        assert "Rows are missing: evil: " in err
    else:
        assert (process.returncode, out) == (0, "id\n1\n2\n10\n"), err
        assert err.startswith("warning: the rows of evil are missing: ")
        assert err.count("\n") == 1
    assert "not answered in time" in err


def test_a_query_may_have_more_time_than_relays_wait(peer: HostilePeer, ask: Ask) -> None:
    process = ask("--timeout", "3000", "--require-complete")
    out, err = process.communicate(timeout=SOON)
    assert (process.returncode, out, err) == (0, "id\n1\n2\n10\n", "")
    assert peer.seen
