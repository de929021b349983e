"""Rights that end in the middle of a stream that a relay passes on: of another relay, or of several put together."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from support.federation.served import ServedRelay, ServedWeb, credentials, served_web
from support.servers.flight import query

from odfpy.federation.authority import Issued
from odfpy.federation.relay.errors import RelayRefused
from odfpy.federation.relay.flight import Connections
from odfpy.federation.relay.question import Part, Question, SentFragment
from odfpy.federation.sql.split import split

EVERYTHING = "{allowed_columns: '*', allowed_rows: 'true'}"
NUMBER = 20_000
TEXT = "x" * 4_000
"""Of each row: all of them do not fit into what is under way between two relays."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[ServedWeb]:
    """na asks bank, and bank asks far, which has the rows."""
    with served_web(tmp_path) as made:
        made.relay("na", "price", "", default=EVERYTHING)
        made.relay("bank", "price", "", default=EVERYTHING)
        made.relay("far", "price", "".join(f"{at},1.5,{TEXT}\n" for at in range(NUMBER)), default=EVERYTHING)
        made.link("na", "bank", "{v}")
        made.link("bank", "far", "{v}")
        yield made


def passed_part(web: ServedWeb, connections: Connections, who: Issued) -> Part:
    """The part of far, which na reads for somebody who signs no token."""
    location = web.relays["na"].server.location
    (fragment,) = split("SELECT flag FROM item", connections.entities(location, 10)).fragments.values()
    question = Question(f"{secrets.token_hex(8)} item", SentFragment.of(fragment), seconds=60)
    [part] = [one for one in connections.ask(location, question).parts if one.relay == "far"]
    assert part.location == location
    return part


def revoke(relay: ServedRelay, fingerprint: str) -> None:
    relay.store.certificates.revoke([fingerprint], "test")


@contextmanager
def read(web: ServedWeb, who: Issued) -> Iterator[Iterator[pa.RecordBatch]]:
    """The batches of far's rows, which na passes on to somebody."""
    connections = Connections(credentials(who), web.issued.facts.pem.encode())
    try:
        with connections.rows(passed_part(web, connections, who), 120) as reader:
            yield (chunk.data for chunk in reader)
    finally:
        connections.close()


@pytest.mark.parametrize(
    ("whose", "at", "words"),
    [
        ("ann", "na", "certificate was revoked"),
        ("ann", "far", "no longer be read"),
        ("na", "far", "certificate was revoked"),
    ],
    ids=["of the reader, where it is passed on", "of the reader, at the rows", "of the relay, at the rows"],
)
def test_who_loses_a_right_gets_no_more_rows_of_a_relay_behind_a_relay(
    web: ServedWeb, whose: str, at: str, words: str
) -> None:
    ann = web.user("ann")
    with read(web, ann) as batches:
        assert 0 < next(batches).num_rows < NUMBER
        revoke(web.relays[at], ann.facts.fingerprint if whose == "ann" else web.relays[whose].identity.fingerprint)
        with pytest.raises(RelayRefused, match=words):
            list(batches)


def test_who_keeps_all_rights_gets_all_rows_of_a_relay_behind_a_relay(web: ServedWeb) -> None:
    with read(web, web.user("ann")) as batches:
        assert sum(batch.num_rows for batch in batches) == NUMBER


def test_who_loses_a_right_gets_no_more_of_an_answer_that_a_relay_has_put_together(web: ServedWeb) -> None:
    ann = web.user("ann")
    certificates = {"cert_chain": ann.facts.pem, "private_key": ann.key_pem}
    location = web.relays["na"].server.location
    with fl.connect(location, tls_root_certs=web.issued.facts.pem, **certificates) as client:
        info = client.get_flight_info(query("SELECT flag FROM item"))
        chunks = iter(client.do_get(info.endpoints[0].ticket))
        found = next(chunks).data.num_rows
        revoke(web.relays["na"], ann.facts.fingerprint)
        assert 0 < found < NUMBER
        with pytest.raises(fl.FlightUnauthenticatedError, match="certificate was revoked"):
            list(chunks)
