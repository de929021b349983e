"""Relays over real sockets: answers in the asker's words, of what may be seen, by whom it is."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from support.federation.answers import all_rows
from support.federation.served import NA, ServedWeb, credentials, linked_web, served_web
from support.servers.serving import wait_until

from odfpy.data.rows.rows_hash import RowsHasher
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import InvalidQuery, QueryCancelled
from odfpy.federation.authority import Authority, Issued
from odfpy.federation.client import Web
from odfpy.federation.relay.errors import IncompleteAnswer, RelayRefused, RelayUnavailable
from odfpy.federation.relay.flight import Connections
from odfpy.federation.relay.question import (
    NOTHING_MORE,
    Answer,
    AnswerOptions,
    Cancellation,
    Part,
    Question,
    SentFragment,
)
from odfpy.federation.relay.requesters import Authorities
from odfpy.federation.relay.statements import verified
from odfpy.federation.sql.split import split
from odfpy.serving.flight.messages import message, parse

ALL = "SELECT id, price, flag FROM item ORDER BY id"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    """na and apac ask global, global asks both; prices are percents at global. ann sees all rows, but at apac."""
    with linked_web(tmp_path_factory.mktemp("web"), apac=True) as made:
        yield made


@pytest.fixture(scope="module")
def ann(web: ServedWeb) -> Issued:
    return web.known_user("ann")


@pytest.fixture(scope="module")
def bob(web: ServedWeb) -> Issued:
    """Somebody whom no relay knows by name."""
    return web.user("bob", {"O": "Acme"})


def rows(web: Web, query: str) -> list[tuple[object, ...]]:
    with web.sql(query, require_complete=True) as answer:
        return [tuple(row.values()) for row in answer.to_arrow().to_pylist()]


def test_rows_of_all_relays_come_in_the_words_of_the_one_that_is_asked(web: ServedWeb, ann: Issued) -> None:
    assert rows(web.asks(ann, "na"), ALL) == [
        (1, 10.5, "N"),
        (2, 20.5, "R"),
        (3, 7.25, "N"),
        (10, 15.0, "N"),
        (11, 9.0, "R"),
        (12, None, "N"),
        (20, 300.0, "N"),
    ]
    expected = [(2, 2050.0), (10, 1500.0), (20, 30_000.0)]
    assert rows(web.asks(ann, "global"), "SELECT id, percent FROM item WHERE percent > 1100 ORDER BY 1") == expected


def test_aggregates_joins_and_counts_are_of_all_rows(web: ServedWeb, ann: Issued) -> None:
    asked = web.asks(ann, "na")
    query = "SELECT flag, count(*) AS n, sum(price) AS s, avg(price) AS a FROM item GROUP BY flag ORDER BY flag"
    assert rows(asked, query) == [("N", 5, 332.75, 83.1875), ("R", 2, 29.5, 14.75)]
    assert rows(asked, "SELECT count(*) AS n FROM item AS a JOIN item AS b ON a.flag = b.flag") == [(29,)]
    query = "SELECT flag, approx_distinct(id) AS i, approx_distinct(id % 2) AS o, count(*) AS n FROM item GROUP BY 1 ORDER BY 1"
    assert rows(asked, query.replace("id % 2", "flag")) == [("N", 5, 1, 5), ("R", 2, 1, 2)]
    assert rows(asked, query) == [("N", 5, 2, 5), ("R", 2, 2, 2)]
    assert rows(asked, "SELECT 1 AS one FROM item WHERE id < 3") == [(1,), (1,)]
    assert rows(asked, "SELECT 1 + 1 AS two") == [(2,)]


def test_who_is_not_known_by_name_sees_what_everybody_sees(web: ServedWeb, bob: Issued) -> None:
    assert [row[0] for row in rows(web.asks(bob, "na"), ALL)] == [1, 3, 10, 12, 20]
    assert rows(web.asks(bob, "na"), "SELECT max(price) AS m FROM item WHERE flag = 'R'") == [(None,)]


def test_entities_are_listed(web: ServedWeb, bob: Issued) -> None:
    [(name, schema)] = web.asks(bob, "global").entities().items()
    assert (name, schema.names) == ("item", ["id", "percent", "flag"])
    with pytest.raises(InvalidQuery):
        rows(web.asks(bob, "na"), "SELECT nope FROM item")


def test_attributes_of_a_certificate_stand_in_conditions(web: ServedWeb) -> None:
    carl = web.user("carl", {"O": "R"})
    web.grant("na", carl, "carl", "flag = recipient('subject.O')")
    assert [row[0] for row in rows(web.asks(carl, "na"), "SELECT id FROM item WHERE id < 10")] == [2]


def test_a_stranger_cannot_connect(web: ServedWeb) -> None:
    authority, _ = Authority.new("others")
    stranger = Web(
        web.relays["na"].server.location, credentials(authority.issue("ann", 30)), web.issued.facts.pem.encode()
    )
    with pytest.raises(RelayUnavailable):
        stranger.entities(seconds=5)
    stranger.close()


def test_a_relay_of_another_authority_is_not_believed(web: ServedWeb, ann: Issued) -> None:
    _, other = Authority.new("others")
    misled = Web(web.relays["na"].server.location, credentials(ann), other.facts.pem.encode())
    with pytest.raises(RelayUnavailable):
        misled.entities(seconds=5)
    misled.close()


def asked(
    web: ServedWeb, issued: Issued, *, with_token: bool = True, options: AnswerOptions = NOTHING_MORE, query: str = ""
) -> tuple[Connections, Answer]:
    """The places to read all rows, and the connections of who has asked."""
    own = credentials(issued)
    connections = Connections(own, web.issued.facts.pem.encode())
    location, query = web.relays["na"].server.location, query or secrets.token_hex(8)
    (fragment,) = split("SELECT id FROM item", connections.entities(location, 10)).fragments.values()
    token = own.token(query, seconds=30) if with_token else None
    return connections, connections.ask(
        location, Question(f"{query} item", SentFragment.of(fragment), requester=token, options=options)
    )


def ids(connections: Connections, answer: Answer) -> dict[str, list[int]]:
    found = {}
    for part in answer.parts:
        assert part.relay not in found
        with connections.rows(part, 10) as reader:
            found[part.relay] = sorted(all_rows(reader)["id"].to_pylist())
    return found


def test_a_ticket_is_read_with_the_key_of_who_has_asked_where_the_rows_are(
    web: ServedWeb, ann: Issued, bob: Issued
) -> None:
    connections, answer = asked(web, ann)
    places = {part.relay: part.location for part in answer.parts}
    assert places == {name: relay.server.location for name, relay in web.relays.items()}
    assert ids(connections, answer) == {"na": [1, 2, 3], "global": [10, 11, 12], "apac": [20]}
    others = Connections(credentials(bob), web.issued.facts.pem.encode())
    for part in answer.parts:
        with pytest.raises(RelayRefused, match="another key"), others.rows(part, 10):
            pass
        with pytest.raises(RelayRefused, match="not issued"), connections.rows(replace(part, ticket="x"), 10):
            pass
    connections.close()
    others.close()


def test_who_signs_no_token_reads_by_the_relay_what_both_may_see(web: ServedWeb, ann: Issued) -> None:
    connections, answer = asked(web, ann, with_token=False)
    assert {part.location for part in answer.parts} == {web.relays["na"].server.location}
    # At global, na sees what everybody sees.
    assert ids(connections, answer) == {"na": [1, 2, 3], "global": [10, 12], "apac": [20]}
    connections.close()


def test_grants_are_looked_up_when_rows_are_read(web: ServedWeb) -> None:
    dora = web.user("dora")
    web.grant("na", dora, "dora", "id = 2")
    connections, answer = asked(web, dora)
    web.grant("na", dora, "dora", "id = 3")
    assert ids(connections, answer)["na"] == [3]
    connections.close()


def test_a_certificate_that_was_revoked_is_good_no_more(web: ServedWeb) -> None:
    eve = web.user("eve")
    web.grant("na", eve, "eve")
    connections, answer = asked(web, eve)
    certificates = web.relays["na"].store.certificates
    certificates.revoke([eve.facts.fingerprint], "test")
    na = [part for part in answer.parts if part.relay == "na"]
    with pytest.raises(RelayRefused), connections.rows(na[0], 10) as reader:
        all_rows(reader)
    with pytest.raises(RelayRefused, match="revoked"):
        web.asks(eve, "na").entities()
    with web.asks(eve, "apac").sql("SELECT id FROM item WHERE id IN (1, 20)") as found:  # which has not heard of it
        assert found.to_arrow()["id"].to_pylist() == [20]
        assert [one.relay for one in found.missing] == ["na"]
    connections.close()


def test_who_is_missing_is_told_or_an_error(web: ServedWeb, ann: Issued, tmp_path: Path) -> None:
    with served_web(tmp_path) as other:
        alone = other.relay("alone", "price", NA)
        other.relay("gone", "price", NA)
        other.link("alone", "gone", "{v}")
        other.relays["gone"].server.shutdown()
        issued = other.user("ann")
        asked = other.asks(issued, "alone")
        with asked.sql(ALL, seconds=10) as answer:
            assert not answer.is_complete
            assert [one.relay for one in answer.missing] == ["gone"]
            assert answer.to_arrow()["id"].to_pylist() == [1, 3]
        with pytest.raises(IncompleteAnswer, match="gone"):
            asked.sql(ALL, require_complete=True, seconds=10)
        assert alone.server.location.startswith("grpc+tls://localhost:")


def test_a_source_that_fails_is_missing_and_its_reason_stays_with_its_operator(tmp_path: Path) -> None:
    with served_web(tmp_path) as made:
        relay = made.relay("broken", "price", "1,no number,N\n")
        (relay.workspace.root / "web" / "items.csv").unlink()
        with made.asks(made.user("ann"), "broken").sql(ALL) as answer:
            [missing] = answer.missing
            assert missing.relay == "broken"
            assert "items.csv" not in missing.why
            assert answer.to_arrow().num_rows == 0


@pytest.mark.parametrize(
    "command", [b"", b"{}", b"[1]", b"\xff", b'{"id": 5}', b"[" * 5000, b"x" * (2 << 20)], ids=lambda one: repr(one[:8])
)
def test_what_is_no_question_is_refused_in_words(web: ServedWeb, ann: Issued, command: bytes) -> None:
    own = credentials(ann)
    pem = web.issued.facts.pem.encode()
    location = web.relays["na"].server.location
    with fl.connect(location, tls_root_certs=pem, cert_chain=own.certificates, private_key=own.key) as client:
        with pytest.raises(pa.ArrowInvalid, match="question") as caught:
            client.get_flight_info(fl.FlightDescriptor.for_command(command), fl.FlightCallOptions(timeout=10))
        assert "log has the details" not in str(caught.value)


def test_a_plain_client_reads_a_whole_entity_by_its_path(web: ServedWeb, bob: Issued) -> None:
    own = credentials(bob)
    pem = web.issued.facts.pem.encode()
    location = web.relays["na"].server.location
    with fl.connect(location, tls_root_certs=pem, cert_chain=own.certificates, private_key=own.key) as client:
        info = client.get_flight_info(fl.FlightDescriptor.for_path("item"))
        found = [client.do_get(one.ticket).read_all() for one in info.endpoints]
    assert sorted(pa.concat_tables(found)["id"].to_pylist()) == [1, 3, 10, 12, 20]


def test_an_entity_of_which_nothing_shows_is_not_listed(tmp_path: Path) -> None:
    with served_web(tmp_path) as made:
        made.relay("alone", "price", NA, default="null")
        carl, dora = made.user("carl"), made.user("dora")
        made.grant("alone", dora, "dora")
        assert list(made.asks(carl, "alone").entities()) == []
        assert list(made.asks(dora, "alone").entities()) == ["item"]
        own = credentials(carl)
        location, pem = made.relays["alone"].server.location, made.issued.facts.pem.encode()
        with fl.connect(location, tls_root_certs=pem, cert_chain=own.certificates, private_key=own.key) as client:
            for call in (client.get_schema, client.get_flight_info):
                told = []
                for name in ("item", "nope"):
                    with pytest.raises(KeyError) as caught:
                        call(fl.FlightDescriptor.for_path(name))
                    told.append(str(caught.value).replace(name, "NAME").partition("gRPC")[0])
                assert told[0] == told[1]


@pytest.mark.parametrize("with_token", [True, False])
def test_a_query_that_was_cancelled_is_read_nowhere(web: ServedWeb, ann: Issued, with_token: bool) -> None:
    query = secrets.token_hex(8)
    connections, answer = asked(web, ann, with_token=with_token, query=query)
    others = Connections(credentials(web.user("mallory")), web.issued.facts.pem.encode())
    location = web.relays["na"].server.location
    others.cancel(location, Cancellation(query))  # which cancels nothing: it is not theirs
    with connections.rows(answer.parts[0], 10) as reader:
        all_rows(reader)
    connections.cancel(location, Cancellation(query))
    for part in answer.parts:
        wait_until(lambda part=part: refuses(connections, part))
    connections.close()
    others.close()


def refuses(connections: Connections, part: Part) -> bool:
    try:
        with connections.rows(part, 10) as reader:
            all_rows(reader)
    except RelayRefused as error:
        return "stopped" in error.message
    return False


def test_a_flight_info_is_cancelled_as_flight_says(web: ServedWeb, ann: Issued) -> None:
    own = credentials(ann)
    pem = web.issued.facts.pem.encode()
    location = web.relays["na"].server.location
    with fl.connect(location, tls_root_certs=pem, cert_chain=own.certificates, private_key=own.key) as client:
        info = client.get_flight_info(fl.FlightDescriptor.for_path("item"))
        body = message("CancelFlightInfoRequest", info=info.serialize()).SerializeToString()
        (result,) = client.do_action(fl.Action("CancelFlightInfo", body))
        assert parse("CancelFlightInfoResult", result.body.to_pybytes()).status == 1
        with pytest.raises(fl.FlightCancelledError):
            client.do_get(info.endpoints[0].ticket).read_all()
        with pytest.raises(pa.ArrowInvalid, match="FlightInfo"):
            list(client.do_action(fl.Action("CancelFlightInfo", b"nonsense")))


def test_relays_sign_what_they_have_given(web: ServedWeb, ann: Issued) -> None:
    connections, answer = asked(web, ann, options=AnswerOptions(signed=True, explained=True))
    authorities = Authorities(web.issued.facts.pem.encode())
    for part in answer.parts:
        with connections.rows(part, 10) as reader, RowsHasher() as hasher:
            chunks = list(reader)
            for chunk in chunks:
                hasher.update(chunk.data)
            found = hasher.finish()
        statement, signer = verified(chunks[-1].app_metadata.to_pybytes().decode(), authorities)
        assert signer.fingerprint == web.relays[part.relay].identity.fingerprint
        assert (statement.relay, statement.hash) == (part.relay, str(found))
        assert statement.requester == ann.facts.fingerprint
        assert statement.sql == part.sql
        assert statement.sql.startswith('SELECT "id" FROM "item"')
    connections.close()


def test_a_plan_names_relays_and_their_words_and_when_it_was_run_what_came(web: ServedWeb, ann: Issued) -> None:
    query = "SELECT flag, sum(price) AS s FROM item WHERE price > 1 GROUP BY flag"
    with web.asks(ann, "na").sql(f"explain {query}") as answer:
        plan = answer.to_arrow().to_pylist()
    assert [(row["step"], row["relay"]) for row in plan] == [
        ("f1", "na"),
        ("f1", "global"),
        ("f1", "apac"),
        ("answer", None),
    ]
    assert '"percent" / 100.0' in plan[1]["sql"]
    assert {row["rows"] for row in plan} == {None}
    with web.asks(ann, "na").sql(f"EXPLAIN ANALYZE {query}") as answer:
        measured = answer.to_arrow().to_pylist()
    assert [row["rows"] for row in measured] == [2, 2, 1, None]
    assert all(row["bytes"] > 0 for row in measured[:3])
    assert [row["sql"] for row in measured] == [row["sql"] for row in plan]


def test_tickets_that_are_good_once_are_so(web: ServedWeb, ann: Issued) -> None:
    connections, answer = asked(web, ann, options=AnswerOptions(single_use=True))
    for part in answer.parts:
        with connections.rows(part, 10) as reader:
            all_rows(reader)
        with pytest.raises(RelayRefused, match="already used"), connections.rows(part, 10) as reader:
            all_rows(reader)
    with web.asks(ann, "na").sql("SELECT id FROM item", single_use=True, require_complete=True) as found:
        assert found.to_arrow().num_rows == 7
    connections.close()


def test_a_query_that_is_stopped_ends_with_the_reason(web: ServedWeb, ann: Issued) -> None:
    control = CancellationToken()
    control.cancel()
    with pytest.raises(QueryCancelled):
        web.asks(ann, "na").sql(ALL, control=control)


def test_parts_that_are_too_large_are_missing(web: ServedWeb, ann: Issued) -> None:
    with web.asks(ann, "na").sql(ALL, received=100) as answer:
        assert not answer.is_complete
        assert all("more than 100 bytes" in one.why for one in answer.missing)


def test_a_relay_holds_nothing_of_web_servers_and_engines_in_memory() -> None:
    program = "import sys, odfpy.serving.relay.running; print(*{one.partition('.')[0] for one in sys.modules})"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    heavy = {"alembic", "datafusion", "duckdb", "fastapi", "pandas", "prometheus_client", "pyspark", "starlette"}
    assert heavy.isdisjoint(found.stdout.split())
