"""Relays with an operator whom nobody should believe: they harm themselves, and show nobody what they may not see."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from support.federation.hostile import HostilePeer, hostile_peer
from support.federation.served import ServedWeb, credentials, served_web

from odfpy.federation.authority import Issued
from odfpy.federation.model.certificates import CertificateFacts
from odfpy.federation.relay.errors import RelayRefused
from odfpy.federation.relay.flight import Connections
from odfpy.federation.relay.question import Answer, Question
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


@pytest.fixture
def peer(web: ServedWeb, tmp_path: Path) -> Iterator[HostilePeer]:
    """A hostile peer, which na asks, by another name in each test."""
    name = f"evil{secrets.token_hex(4)}"
    with hostile_peer(web, tmp_path, name, "na") as made:
        yield made


def ask(web: ServedWeb, who: Issued, *, with_token: bool, relay: str = "na") -> tuple[Connections, Answer]:
    """The answer of a relay to a question for all rows."""
    own = credentials(who)
    connections = Connections(own, web.issued.facts.pem.encode())
    location, query = web.relays[relay].server.location, secrets.token_hex(8)
    (fragment,) = split("SELECT id FROM item", connections.entities(location, 10)).fragments.values()
    token = own.token(query, seconds=30) if with_token else None
    return connections, connections.ask(location, Question(f"{query} item", fragment, requester=token, seconds=20))


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
    shown = {}
    for part in answer.parts:
        try:
            with connections.rows(part, 10) as reader:
                shown[part.relay] = reader.read_all()["id"].to_pylist()
        except RelayRefused as error:
            assert "somebody else" in str(error)
    connections.close()
    assert 11 not in shown.get("bank", [])
