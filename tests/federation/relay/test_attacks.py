"""Attacks by name, over real sockets: forged requesters, rights that end, names that are SQL, questions that are bombs."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from support.federation.answers import all_rows
from support.federation.served import ServedRelay, ServedWeb, credentials, served_web
from support.federation.simulated import ASKER, SimulatedWeb, token

from odfpy.engine.cancellation import CancellationToken
from odfpy.federation.authority import Authority, Issued
from odfpy.federation.errors import AuthenticationFailed
from odfpy.federation.model.certificates import load_pem
from odfpy.federation.relay.errors import RelayRefused, RelayUnavailable, TicketRefused
from odfpy.federation.relay.flight import Connections
from odfpy.federation.relay.question import Question, SentFragment
from odfpy.federation.relay.requesters import AUDIENCE, Authorities, Credentials, identity_of
from odfpy.federation.relay.tickets import Ticket
from odfpy.federation.sql.expressions import Call, Column, Constant
from odfpy.federation.sql.fragment import Fragment, Output
from odfpy.federation.sql.split import split
from odfpy.federation.sql.types import BOOL, INT, TEXT

NA = "1,10.5,N\n2,20.5,R\n3,7.25,N\n"
ID = Output("id", Column("id", INT))


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    with served_web(tmp_path_factory.mktemp("web")) as made:
        made.relay("na", "price", NA)
        yield made


@pytest.fixture(scope="module")
def ann(web: ServedWeb) -> Issued:
    issued = web.user("ann")
    web.grant("na", issued, "ann")
    return issued


@pytest.fixture(scope="module")
def mallory(web: ServedWeb) -> Issued:
    return web.user("mallory")


def connected(web: ServedWeb, who: Issued) -> Connections:
    return Connections(credentials(who), web.issued.facts.pem.encode())


def ids(web: ServedWeb, who: Issued, question: Question) -> list[int]:
    """What somebody reads of the answer to a question."""
    connections = connected(web, who)
    try:
        answer = connections.ask(web.relays["na"].server.location, question)
        found: list[int] = []
        for part in answer.parts:
            with connections.rows(part, 20) as reader:
                found += all_rows(reader)["id"].to_pylist()
        return sorted(found)
    finally:
        connections.close()


def asking(fragment: Fragment, requester: str | None = None, query: str | None = None) -> Question:
    return Question(f"{query or secrets.token_hex(8)} item", SentFragment.of(fragment), requester=requester, seconds=20)


ALL = Fragment("item", (ID,))


# --- Forged requesters ------------------------------------------------------------------------------------------------


def chain(*issued: Issued) -> list[str]:
    return [base64.b64encode(load_pem(one.facts.pem).public_bytes(Encoding.DER)).decode() for one in issued]


def forgeries(ann: Issued, mallory: Issued) -> dict[str, str]:
    """Tokens of mallory, who wants to be ann, for the query q."""
    now = int(time.time())
    claims = {"aud": AUDIENCE, "query": "q", "iat": now, "exp": now + 60}
    own = credentials(mallory)
    signed = own.token("q", seconds=60)
    header, body, signature = signed.split(".")
    as_ann = {**json.loads(base64.urlsafe_b64decode(header + "==")), "x5c": chain(ann)}
    swapped = base64.urlsafe_b64encode(json.dumps(as_ann).encode()).decode().rstrip("=")
    return {
        "signed with another key": jwt.encode(claims, own.key, "ES256", headers={"x5c": chain(ann)}),
        "certificate swapped": f"{swapped}.{body}.{signature}",
        "two certificates": jwt.encode(claims, own.key, "ES256", headers={"x5c": chain(ann, mallory)}),
        "not signed": jwt.encode(claims, None, "none", headers={"x5c": chain(ann)}),
        "signature cut off": f"{swapped}.{body}.",
        "for others": jwt.encode({**claims, "aud": "bank"}, credentials(ann).key, "ES256", headers={"x5c": chain(ann)}),
        "for another query": credentials(ann).token("q2", seconds=60),
        "ended": credentials(ann).token("q", seconds=60, now=time.time() - 3600),
        "not yet": credentials(ann).token("q", seconds=60, now=time.time() + 3600),
        "good for days": credentials(ann).token("q", seconds=90_000),
    }


def test_forged_requesters_are_refused_by_the_server(web: ServedWeb, ann: Issued, mallory: Issued) -> None:
    for text in forgeries(ann, mallory).values():
        with pytest.raises(RelayRefused, match="E785"):
            ids(web, mallory, asking(ALL, text, "q"))


def test_a_users_certificate_makes_no_others(web: ServedWeb, ann: Issued, mallory: Issued) -> None:
    """mallory issues a certificate in the name of ann, with mallory's own key as authority."""
    del ann
    authority, _ = Authority.new("web")
    fake = authority.issue("ann", 30)
    own = load_pem(mallory.facts.pem)
    signed_by_mallory = Authority(own, _key(mallory)).issue("ann", 30)
    authorities = Authorities(web.issued.facts.pem.encode())
    for issued in (fake, signed_by_mallory):
        pem = (issued.facts.pem + mallory.facts.pem).encode()
        forged = Credentials(pem, issued.key_pem.encode()).token("q", seconds=60)
        with pytest.raises(AuthenticationFailed, match="not of a trusted authority"):
            authorities.requester(forged)


def _key(issued: Issued) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return load_pem_private_key(issued.key_pem.encode(), None)


def test_a_token_that_was_stolen_reads_nothing(web: ServedWeb, ann: Issued, mallory: Issued) -> None:
    query = secrets.token_hex(8)
    stolen = credentials(ann).token(query, seconds=60)
    with pytest.raises(RelayRefused, match="another key"):
        ids(web, mallory, asking(ALL, stolen, query))


# --- Rights that end --------------------------------------------------------------------------------------------------


def test_a_certificate_that_has_ended_is_good_for_no_call_of_an_open_connection(ann: Issued) -> None:
    authority, _ = Authority.new("web")
    ended = load_pem(authority.issue("ann", 0).facts.pem).public_bytes(Encoding.DER)  # good until it was made
    with pytest.raises(AuthenticationFailed, match="has expired"):
        identity_of(ended)
    assert identity_of(load_pem(ann.facts.pem).public_bytes(Encoding.DER)).attributes["subject.CN"] == "ann"


@pytest.mark.parametrize("how", ["revoked", "granted less"])
def test_rights_that_end_in_the_middle_of_a_stream_end_it(tmp_path: Path, how: str) -> None:
    with served_web(tmp_path) as made:
        relay = made.relay("na", "price", "".join(f"{at},1.5,N\n" for at in range(50_000)))
        dora = made.user("dora")
        made.grant("na", dora, "dora")
        batches = iter(_read(made, relay, dora))
        assert next(batches).num_rows == 8192
        if how == "revoked":
            relay.store.certificates.revoke([dora.facts.fingerprint], "test")
        else:
            made.grant("na", dora, "dora", "id < 5")
        with pytest.raises(TicketRefused, match=r"have changed|no longer be read"):
            list(batches)


def _read(web: ServedWeb, relay: ServedRelay, who: Issued) -> Any:
    """The batches of a ticket, read as the server reads them."""
    connections = connected(web, who)
    part = connections.ask(relay.server.location, asking(ALL)).parts[0]
    connections.close()
    server = relay.server
    me = identity_of(load_pem(who.facts.pem).public_bytes(Encoding.DER))
    opened = server._reader.tickets.open(part.ticket, me)
    assert isinstance(opened, Ticket)
    return server._reader.sources.read(opened, CancellationToken())


# --- Topologies -------------------------------------------------------------------------------------------------------


def test_a_cycle_of_twenty_relays_gives_each_source_once_and_ends() -> None:
    names = [f"r{at}" for at in range(20)]
    made = SimulatedWeb({name: {names[(at + 1) % 20]: "{v} * 2"} for at, name in enumerate(names)})
    try:
        (fragment,) = split(
            "SELECT key, price FROM item", {"item": pa.schema([("key", INT), ("price", pa.float64())])}
        ).fragments.values()
        answer = made.relays["r7"].answer(
            Question("1 item", SentFragment.of(fragment), seconds=60, requester=token(ASKER, "1")), ASKER
        )
        assert answer.is_complete
        assert sorted(part.relay for part in answer.parts) == sorted(names)
        assert made.messages == 20
    finally:
        made.close()


# --- Names that are SQL -----------------------------------------------------------------------------------------------

NAMES = (
    'id"; DROP TABLE raw; --',
    "id' OR 'a'='a",
    "id /* ",
    "*/ OR 1=1 --",
    "{v}",
    "a{v}b",
    "Größe\u202e",
    "id\u0000",
    "${id}",
    "%(id)s",
    "`id`",
    "[id]",
    "\\",
)


@pytest.mark.parametrize("name", NAMES)
def test_names_in_a_question_are_only_names(web: ServedWeb, ann: Issued, name: str) -> None:
    """As columns, which the entity does not have, they are refused; as names of outputs they come back as they are."""
    column = Fragment("item", (Output("x", Column(name, INT)),))
    with pytest.raises(RelayRefused):
        ids(web, ann, asking(column))
    with pytest.raises(RelayRefused):
        ids(web, ann, asking(replace(ALL, entity=name)))
    if "\0" not in name:
        connections = connected(web, ann)
        fragment = Fragment("item", (Output(name, Column("id", INT)),))
        [part] = connections.ask(web.relays["na"].server.location, asking(fragment)).parts
        with connections.rows(part, 20) as reader:
            found = all_rows(reader)
        connections.close()
        assert (found.schema.names, sorted(found.column(0).to_pylist())) == ([name], [1, 2, 3])


# --- Bombs ------------------------------------------------------------------------------------------------------------

FLAG = Column("flag", TEXT)


def text(value: str) -> Constant:
    return Constant(value, TEXT)


def deep(levels: int) -> Call:
    found = Call("not", (Call("eq", (FLAG, text("N")), BOOL),), BOOL)
    for _ in range(levels):
        found = Call("not", (found,), BOOL)
    return found


BOMBS: dict[str, Any] = {
    "deep": lambda: deep(90),
    "wide": lambda: Call("or", tuple(Call("eq", (FLAG, text(str(at))), BOOL) for at in range(1_500)), BOOL),
    "many values": lambda: Call("in", (FLAG, *(text(str(at)) for at in range(8_000))), BOOL),
    "backtracking": lambda: Call(
        "like", (Call("concat", (text("a" * 30_000), FLAG), TEXT), text("%a" * 5_000 + "b")), BOOL
    ),
    "long text": lambda: Call("eq", (FLAG, text("x" * 60_000)), BOOL),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_or_harmless_and_the_relay_answers_the_next_question(
    web: ServedWeb, ann: Issued, name: str
) -> None:
    with suppress(RelayRefused, RelayUnavailable):
        ids(web, ann, asking(replace(ALL, where=BOMBS[name]())))
    assert ids(web, ann, asking(ALL)) == [1, 2, 3]


def test_huge_limits_are_limits(web: ServedWeb, ann: Issued) -> None:
    assert ids(web, ann, asking(replace(ALL, limit=(1 << 63) - 1))) == [1, 2, 3]
    assert ids(web, ann, asking(replace(ALL, limit=0))) == []
