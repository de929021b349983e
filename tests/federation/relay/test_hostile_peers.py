"""Relays with an operator whom nobody should believe: they harm themselves, and show nobody what they may not see."""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from support.federation.answers import all_rows
from support.federation.hostile import HostilePeer, endless, hostile_peer, info
from support.federation.served import ServedWeb, credentials, served_web
from support.servers.serving import wait_until

from odfpy.federation.authority import Issued
from odfpy.federation.model.certificates import CertificateFacts
from odfpy.federation.relay.errors import RelayRefused
from odfpy.federation.relay.flight import Connections, info_of
from odfpy.federation.relay.question import Answer, Question, SentFragment
from odfpy.federation.sql.expressions import Constant
from odfpy.federation.sql.fragment import Fragment, Output
from odfpy.federation.sql.split import split
from odfpy.serving.settings import ServeSettings

NA = "1,10.5,N\n2,20.5,R\n"
BANK = "10,15,N\n11,9,R\n"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    """na asks bank, and bank asks na; both work on one thing at a time. na may see all rows of bank, ann too."""
    with served_web(tmp_path_factory.mktemp("web")) as made:
        made.relay("na", "price", NA, settings=ServeSettings(flight_working=1))
        made.relay("bank", "price", BANK, settings=ServeSettings(flight_working=1))
        made.link("na", "bank", "{v}")
        made.link("bank", "na", "{v}")
        na = made.relays["na"]
        issued = Issued(CertificateFacts.of(na.identity.certificate.read_text()), "")
        made.grant("bank", issued, "na", kind="PeerRelay", more=f'flight_endpoint: "{na.server.location}"')
        yield made


@pytest.fixture(scope="module")
def ann(web: ServedWeb) -> Issued:
    issued = web.user("ann")
    for relay in ("na", "bank"):
        web.grant(relay, issued, "ann")
    return issued


@pytest.fixture(scope="module")
def mallory(web: ServedWeb) -> Issued:
    return web.user("mallory")


@pytest.fixture(scope="module")
def evil(web: ServedWeb, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostilePeer]:
    with hostile_peer(web, tmp_path_factory.mktemp("evil"), "evil", "na") as made:
        yield made


@pytest.fixture
def peer(evil: HostilePeer) -> HostilePeer:
    """A hostile peer, which na asks; it does nothing yet."""
    evil.seen.clear()
    evil.answers = lambda _: Answer()
    return evil


def ask(web: ServedWeb, who: Issued, *, with_token: bool, relay: str = "na") -> tuple[Connections, Answer]:
    """The answer of a relay to a question for all rows."""
    own = credentials(who)
    connections = Connections(own, web.issued.facts.pem.encode())
    location, query = web.relays[relay].server.location, secrets.token_hex(8)
    (fragment,) = split("SELECT id FROM item", connections.entities(location, 10)).fragments.values()
    token = own.token(query, seconds=30) if with_token else None
    return connections, connections.ask(
        location, Question(f"{query} item", SentFragment.of(fragment), requester=token, seconds=20)
    )


def test_relays_that_wait_for_each_other_answer_however_little_they_work_on(web: ServedWeb, ann: Issued) -> None:
    connections, answer = ask(web, ann, with_token=True)
    assert answer.is_complete
    assert sorted(part.relay for part in answer.parts) == ["bank", "na"]
    connections.close()


def test_a_ticket_that_a_relay_holds_for_somebody_is_read_for_nobody_else(
    web: ServedWeb, ann: Issued, mallory: Issued, peer: HostilePeer
) -> None:
    """The peer keeps a ticket that na holds for ann, and gives it to na when mallory asks."""
    stolen: list[str] = []

    def steals(question: Question) -> Answer:
        if not stolen:
            theirs = peer.connections.ask(web.relays["bank"].server.location, replace(question, id=f"{question.id}2"))
            stolen.extend(part.ticket for part in theirs.parts)
        return Answer((peer.part(stolen[0], "bank", web.relays["bank"].server.location),))

    peer.answers = steals
    connections, answer = ask(web, ann, with_token=False)
    connections.close()
    assert stolen
    connections, answer = ask(web, mallory, with_token=False)
    outcomes = []
    for part in answer.parts:
        try:
            with connections.rows(part, 10) as reader:
                outcomes.append(sorted(all_rows(reader)["id"].to_pylist()))
        except RelayRefused as error:
            outcomes.append(error.message)
    [refused] = [one for one in outcomes if isinstance(one, str)]
    assert "The ticket belongs to another requester [E784]" in refused
    assert 11 not in [id_ for one in outcomes if isinstance(one, list) for id_ in one]
    connections.close()


# --- What a peer says -------------------------------------------------------------------------------------------------


def item(*ids: int) -> pa.Table:
    """Rows as a question for ids wants them."""
    return pa.table({"id": pa.array(ids, pa.int64())})


def rows(
    web: ServedWeb, who: Issued, query: str = "SELECT id FROM item", seconds: float = 20, **more: int
) -> tuple[list[int], dict[str, str]]:
    """The ids that somebody gets by na, and who is missing."""
    with web.asks(who, "na").sql(query, seconds=seconds, **more) as answer:
        return sorted(answer.to_arrow()["id"].to_pylist()), {one.relay: one.why for one in answer.missing}


def test_rows_with_other_columns_are_not_taken(web: ServedWeb, ann: Issued, peer: HostilePeer) -> None:
    for wrong in (
        pa.table({"id": pa.array([666], pa.int32())}),
        pa.table({"id": ["666"]}),
        pa.table({"ID": pa.array([666])}),
        pa.table({"id": [666], "more": [1]}),
        pa.table({}),
    ):
        peer.answers = lambda _: Answer((peer.part(),))
        peer.gives = lambda _, wrong=wrong: fl.RecordBatchStream(wrong)
        found, missing = rows(web, ann)
        assert found == [1, 2, 10, 11]
        assert "other columns" in missing[peer.name]


def test_rows_that_lead_to_other_memory_are_not_taken(web: ServedWeb, ann: Issued, peer: HostilePeer) -> None:
    """Arrow believes the offsets of texts: whoever uses them reads what is behind them in memory."""
    texts = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\x05\0\0\0\x03\0\0\0"), pa.py_buffer(b"abcde")]
    )
    peer.answers = lambda _: Answer((peer.part(),))
    peer.gives = lambda _: fl.RecordBatchStream(pa.table({"flag": texts}))
    with web.asks(ann, "na").sql("SELECT flag FROM item", seconds=20) as answer:
        assert sorted(answer.to_arrow()["flag"].to_pylist()) == ["N", "N", "R", "R"]
        [missing] = answer.missing
    assert (missing.relay, "malformed" in missing.why) == (peer.name, True)
    connections, answer = ask(web, ann, with_token=False)  # na reads it, and passes it on
    [part] = [one for one in answer.parts if one.relay == peer.name]
    with pytest.raises(RelayRefused, match="malformed"), connections.rows(part, 10) as reader:
        list(reader)
    connections.close()


def test_an_error_of_whoever_reads_is_none_of_the_relay(web: ServedWeb, ann: Issued, peer: HostilePeer) -> None:
    peer.answers = lambda _: Answer((peer.part(),))
    peer.gives = lambda _: fl.RecordBatchStream(item(666))
    connections, answer = ask(web, ann, with_token=False)
    [part] = [one for one in answer.parts if one.relay == peer.name]
    full = OSError(errno.ENOSPC, "No space left on device", "/local/path")

    def read() -> None:
        with connections.rows(part, 10) as reader:
            next(iter(reader))
            raise full

    with pytest.raises(OSError, match="No space left") as error:
        read()
    assert error.value is full
    connections.close()


def test_rows_without_end_are_stopped_and_the_others_stay(web: ServedWeb, ann: Issued, peer: HostilePeer) -> None:
    peer.answers = lambda _: Answer((peer.part(),))
    peer.gives = lambda _: endless(item(*range(10_000)).to_batches()[0])
    found, missing = rows(web, ann, received=4 << 20)
    assert found == [1, 2, 10, 11]
    assert "more than 4,194,304 bytes" in missing[peer.name]


def test_a_relay_passes_on_no_rows_without_end(tmp_path: Path) -> None:
    with served_web(tmp_path) as made:
        relay = made.relay("na", "price", NA, settings=ServeSettings(passed_bytes=4 << 20))
        with hostile_peer(made, tmp_path, "evil", "na") as peer:
            peer.answers = lambda _: Answer((peer.part(),))
            peer.gives = lambda _: endless(item(*range(10_000)).to_batches()[0])
            connections, answer = ask(made, made.user("ann"), with_token=False)
            [part] = [one for one in answer.parts if one.relay == "evil"]
            assert part.location == relay.server.location
            # gRPC may break the stream off before the words have come.
            with pytest.raises(RelayRefused, match=r"more than|interrupted"), connections.rows(part, 20) as reader:
                for _ in reader:
                    pass
            connections.close()
            wait_until(lambda: len(relay.server.running) == 0)


def many(peer: HostilePeer, number: int, ticket: str = "x") -> list[fl.FlightEndpoint]:
    question = Question("q f1", SentFragment.of(Fragment("item", (Output("n", Constant(1, pa.int64())),))))
    part = info_of(Answer((peer.part(ticket),)), question, fl.FlightDescriptor.for_command(b"")).endpoints[0]
    return [part] * number


def test_an_answer_that_is_too_long_harms_nobody_else(web: ServedWeb, ann: Issued, peer: HostilePeer) -> None:
    long = {
        "many parts": lambda question: info(question, many(peer, 10_000)),
        "too many parts": lambda question: info(question, many(peer, 20_000)),
        "long tickets": lambda question: info(question, many(peer, 10, "x" * (4 << 20))),
        "too long a ticket": lambda question: info(question, many(peer, 1, "x" * (5 << 20))),
        "many are missing": lambda question: info(question, [], [["x" * 500, "y" * 500]] * 10_000),
    }
    for why, made in long.items():
        peer.answers = made
        found, missing = rows(web, ann)
        assert found == [1, 2, 10, 11], why
        assert missing.keys() == {peer.name}, why


def test_a_million_of_anything_harms_nobody_else(web: ServedWeb, ann: Issued, peer: HostilePeer) -> None:
    """Both fit into a message of a few megabytes; it takes a relay some seconds to find out that they are too many."""
    endless = {
        "parts": lambda question: info(question, [fl.FlightEndpoint(b"", [])] * 1_000_000),
        "missing": lambda question: info(question, [], [["x", "y" * 20]] * 1_000_000),
    }
    for what, made in endless.items():
        peer.answers = made
        found, missing = rows(web, ann, seconds=250)
        assert found == [1, 2, 10, 11], what
        assert missing == {peer.name: "An answer has at most 10000 parts"}, what


@pytest.mark.parametrize(("number", "words"), [(30_000, "question has at most"), (10_000, "E77")])
def test_a_peer_that_asks_for_many_columns_harms_nobody_else(
    web: ServedWeb, ann: Issued, peer: HostilePeer, number: int, words: str
) -> None:
    """More than fit into a question, and as many as do."""
    tree = Fragment("item", (Output("n", Constant(1, pa.int64())),)).to_json()
    tree["outputs"] = tree["outputs"] * number
    question = Question(f"{secrets.token_hex(8)} item", SentFragment("item", tree))
    with pytest.raises(RelayRefused, match=words):
        peer.connections.ask(web.relays["na"].server.location, question)
    assert rows(web, ann) == ([1, 2, 10, 11], {})


def test_an_answer_that_is_none_harms_nobody_else(web: ServedWeb, ann: Issued, peer: HostilePeer) -> None:
    empty = fl.FlightDescriptor.for_command(b"")

    def raw(metadata: bytes, *endpoints: fl.FlightEndpoint) -> Callable[[Question], Any]:
        return lambda question: fl.FlightInfo(
            question.fragment.read().schema, empty, endpoints, -1, -1, app_metadata=metadata
        )

    nowhere = fl.FlightEndpoint(b"x", [], app_metadata=many(peer, 1)[0].app_metadata)
    for metadata in (b"", b"[]", b'{"missing": 5}', b'{"missing": [["a"]]}', b'{"missing": [[1, 2]]}', b"[" * 100_000):
        peer.answers = raw(metadata)
        assert rows(web, ann)[0] == [1, 2, 10, 11]
    peer.answers = raw(b'{"missing": []}', nowhere)
    assert rows(web, ann)[1].keys() == {peer.name}


def test_a_part_leads_to_places_of_the_web_only(web: ServedWeb, ann: Issued, peer: HostilePeer) -> None:
    """Without TLS, to files or with more than a host and a port: the answer is none. With TLS: nobody there is believed."""
    with socket.create_server(("127.0.0.1", 0)) as inside:
        port = inside.getsockname()[1]
        for location in (
            f"grpc://127.0.0.1:{port}",
            f"grpc+tcp://127.0.0.1:{port}",
            "grpc+unix:///run/secret",
            f"http://127.0.0.1:{port}/latest/meta-data",
            f"grpc+tls://user@127.0.0.1:{port}",
            f"grpc+tls://127.0.0.1:{port}/path",
            "arrow-flight-reuse-connection://?",
            "file:///etc/passwd",
        ):
            endpoint = fl.FlightEndpoint(b"x", [location], app_metadata=many(peer, 1)[0].app_metadata)
            peer.answers = lambda question, endpoint=endpoint: info(question, [endpoint])
            found, missing = rows(web, ann)
            assert (found, missing.keys()) == ([1, 2, 10, 11], {peer.name}), location
        inside.settimeout(0)
        with pytest.raises(BlockingIOError):
            inside.accept()


def test_a_peer_that_answers_for_others_adds_nothing_to_what_they_show(
    web: ServedWeb, ann: Issued, mallory: Issued, peer: HostilePeer
) -> None:
    """It asks bank with the token that it was given, for more than mallory has asked: mallory sees what he may see."""

    def widens(question: Question) -> Answer:
        if question.id.endswith("x"):  # na asks it again
            return Answer()
        wide = replace(
            question, id=f"{question.id}x", fragment=SentFragment.of(replace(question.fragment.read(), where=None))
        )
        return peer.connections.ask(web.relays["bank"].server.location, wide)

    peer.answers = widens
    found, _ = rows(web, mallory, "SELECT id FROM item WHERE id = 10")
    assert 11 not in found
    assert set(rows(web, ann)[0]) == {1, 2, 10, 11}


def test_a_token_is_of_no_use_for_another_query_nor_to_read(web: ServedWeb, ann: Issued, peer: HostilePeer) -> None:
    bank = web.relays["bank"].server.location
    tried: list[str] = []

    def steals(question: Question) -> Answer:
        if question.id.endswith("x"):  # na asks it again
            return Answer()
        own = peer.connections.ask(bank, replace(question, id=f"{question.id}x"))
        for part in own.parts:
            with pytest.raises(RelayRefused, match="another key"), peer.connections.rows(part, 10):
                pass
        with pytest.raises(RelayRefused, match="another query"):
            peer.connections.ask(bank, replace(question, id="other item"))
        tried.append(question.id)
        return Answer()

    peer.answers = steals
    assert rows(web, ann) == ([1, 2, 10, 11], {})
    assert tried


def test_what_peers_say_goes_to_no_terminal_as_it_is(web: ServedWeb, ann: Issued, peer: HostilePeer) -> None:
    peer.answers = lambda question: info(question, [], [["\x1b[2Jna", "all is\x07 well\r\nwarning: none"]])
    _, missing = rows(web, ann)
    [(name, why)] = missing.items()
    assert not any(ord(one) < 32 for one in name + why)


def test_a_peer_whose_certificates_are_revoked_is_not_asked_any_more(tmp_path: Path) -> None:
    with served_web(tmp_path) as made:
        na = made.relay("na", "price", NA)
        ann = made.user("ann")
        with hostile_peer(made, tmp_path, "evil", "na") as peer:
            assert rows(made, ann)[1] == {}
            assert len(peer.seen) == 1
            facts = CertificateFacts.of((tmp_path / "evil.pem").read_text())
            na.store.certificates.revoke([facts.fingerprint], "test")
            assert rows(made, ann)[1].keys() == {"evil"}
            assert len(peer.seen) == 1
