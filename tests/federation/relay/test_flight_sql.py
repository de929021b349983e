"""Flight SQL at a relay: tools that know nothing of a web see its entities as tables."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import pandas as pd
import pyarrow as pa
import pyarrow.flight as fl
import pytest
from adbc_driver_manager import NotSupportedError, OperationalError, ProgrammingError
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.federation.served import GLOBAL, HOST, NA, PEER, ServedWeb, linked_web, served_web
from support.jdbc.replay import ROWS, Replay
from support.servers.flight import OPEN, act, command, fetch, prepare, query
from support.servers.serving import wait_until

from odfpy.federation.authority import Issued
from odfpy.federation.relay.requesters import identity_of
from odfpy.federation.relay.tickets import LIFE
from odfpy.flight import ClientCertificate, FlightService, FlightSql, Request, filters_of
from odfpy.flight.errors import NoLocationLeft
from odfpy.flight.tls import Tls
from odfpy.http.seal import Seal
from odfpy.serving.flight.errors import TicketRefused
from odfpy.serving.flight.messages import message, parse, unwrap, wrap
from odfpy.serving.relay.sql_tickets import SqlTicket, SqlTickets

ALL = "SELECT id, price, flag FROM item ORDER BY id"
SEEN_BY_BOTH = [(1, 10.5, "N"), (2, 20.5, "R"), (3, 7.25, "N"), (10, 15.0, "N"), (12, None, "N")]
"""What ann and the relay na may see: at global, na is nobody in particular."""
LONG = "SELECT count(*) AS n, min(a.id + b.id * c.id) AS m FROM " + ", ".join(
    f"item AS {one}" for one in "abcdefghijklmn"
)
PERMITTED = [(b"odf-allow-incomplete", b"true")]
FLIGHT_ERRORS = (pa.ArrowException, fl.FlightError, KeyError, NotImplementedError)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    """na asks global, and global asks na; ann sees all rows at both."""
    with linked_web(tmp_path_factory.mktemp("web")) as made:
        yield made


@pytest.fixture(scope="module")
def ann(web: ServedWeb) -> Issued:
    return web.known_user("ann")


@pytest.fixture(scope="module")
def bob(web: ServedWeb) -> Issued:
    """Somebody whom no relay knows by name."""
    return web.user("bob")


class Thinking(fl.FlightServerBase):
    """A peer that thinks about every question until it is told to stop."""

    def __init__(self, issued: Issued) -> None:
        self.over = threading.Event()
        super().__init__(f"grpc+tls://{HOST}:0", tls_certificates=[(issued.facts.pem, issued.key_pem)])

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        del context, descriptor
        self.over.wait()
        raise fl.FlightServerError("it is over")


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    """A relay whose only peer never answers."""
    with served_web(tmp_path_factory.mktemp("half")) as made:
        relay = made.relay("half", "price", NA, default="{allowed_columns: '*', allowed_rows: 'true'}")
        with Thinking(made.authority.issue("thinking", 30, hosts=[HOST])) as thinking:
            relay.apply(
                PEER.format(
                    name="thinking",
                    location=f"grpc+tls://{HOST}:{thinking.port}",
                    certificate=relay.identity.certificate,
                    price="price",
                    remote="price",
                    transformation="{v}",
                )
            )
            yield made
            thinking.over.set()


@pytest.fixture(scope="module")
def gone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    """The relay here has a peer, which is not there any more."""
    with served_web(tmp_path_factory.mktemp("gone")) as made:
        everything = "{allowed_columns: '*', allowed_rows: 'true'}"
        made.relay("here", "price", NA, default=everything)
        made.relay("there", "price", GLOBAL, default=everything)
        made.link("here", "there", "{v}")
        made.relays["there"].server.shutdown()
        yield made


@contextmanager
def cursor_of(web: ServedWeb, who: Issued, relay: str = "na", **options: str) -> Iterator[Any]:
    """A cursor of ADBC, by the certificate of somebody."""
    mine = {
        "client_option.mtls_cert_chain": who.facts.pem,
        "client_option.mtls_private_key": who.key_pem,
        "client_option.tls_root_certs": web.issued.facts.pem,
        **options,
    }
    named = {f"adbc.flight.sql.{name}": value for name, value in mine.items()}
    location = web.relays[relay].server.location
    with closing(adbc.connect(location, named, autocommit=True)) as connection, closing(connection.cursor()) as cursor:
        yield cursor


@contextmanager
def client_of(web: ServedWeb, who: Issued, relay: str = "na") -> Iterator[Any]:
    """A client of pyarrow, by the certificate of somebody."""
    certificates = {"cert_chain": who.facts.pem, "private_key": who.key_pem}
    location = web.relays[relay].server.location
    with fl.connect(location, tls_root_certs=web.issued.facts.pem, **certificates) as client:
        yield client


def rows(cursor: Any, text: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    cursor.execute(text, parameters)
    found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


# --- ADBC ---


def test_rows_are_those_that_the_relay_and_the_client_may_both_see(web: ServedWeb, ann: Issued, bob: Issued) -> None:
    with cursor_of(web, ann) as cursor:
        assert rows(cursor, ALL) == SEEN_BY_BOTH
        cursor.execute(ALL)
        assert cursor.fetch_arrow_table().schema.types == [pa.int64(), pa.float64(), pa.string()]
    with cursor_of(web, bob) as cursor:
        assert [number for number, *_ in rows(cursor, ALL)] == [1, 3, 10, 12]
        assert rows(cursor, "SELECT max(price) AS m FROM item WHERE flag = 'R'") == [(None,)]


def test_aggregates_joins_and_names_with_a_catalog_are_answered(web: ServedWeb, ann: Issued) -> None:
    with cursor_of(web, ann) as cursor:
        totals = rows(cursor, "SELECT flag, count(*) AS n, sum(price) AS s FROM item GROUP BY flag ORDER BY flag")
        assert totals == [("N", 4, 32.75), ("R", 1, 20.5)]
        joined = 'SELECT count(*) AS n FROM "odf"."odf"."item" AS a JOIN item AS b ON a.flag = b.flag;'
        assert rows(cursor, joined) == [(17,)]
        assert rows(cursor, "SELECT 1 + 1 AS two") == [(2,)]


def test_what_dbeaver_writes_is_answered(web: ServedWeb, ann: Issued) -> None:
    with cursor_of(web, ann) as cursor:
        assert sorted(rows(cursor, 'SELECT x.* FROM "odf"."odf"."item" x LIMIT 200')) == SEEN_BY_BOTH
        assert rows(cursor, f"SELECT count(*) FROM ({ALL}) dbvrcnt") == [(5,)]


@pytest.mark.parametrize(
    ("condition", "values", "found"),
    [
        ("id > ? AND flag = ?", (2, "N"), [3, 10, 12]),
        ("flag = ?", ("it's",), []),
        ("price < ? OR ?", (10.6, False), [1, 3]),
        ("flag = ?", (None,), []),
    ],
)
def test_parameters_are_bound(
    web: ServedWeb, ann: Issued, condition: str, values: tuple[Any, ...], found: list[int]
) -> None:
    with cursor_of(web, ann) as cursor:
        assert [
            number for (number,) in rows(cursor, f"SELECT id FROM item WHERE {condition} ORDER BY 1", values)
        ] == found


def test_entities_are_tables_with_columns(web: ServedWeb, bob: Issued) -> None:
    with cursor_of(web, bob) as cursor:
        (catalog,) = cursor.connection.adbc_get_objects(depth="all").read_all().to_pylist()
        (schema,) = catalog["catalog_db_schemas"]
        (table,) = schema["db_schema_tables"]
        columns = [column["column_name"] for column in table["table_columns"]]
        assert (catalog["catalog_name"], schema["db_schema_name"], table["table_name"]) == ("odf", "odf", "item")
        assert columns == cursor.connection.adbc_get_table_schema("item").names == ["id", "price", "flag"]
        assert cursor.connection.adbc_get_table_types() == ["TABLE"]
        assert cursor.connection.adbc_get_info()["vendor_name"] == "odfpy"
        assert cursor.connection.adbc_current_catalog == "odf"
        assert cursor.adbc_execute_schema(ALL).names == columns


def test_an_entity_of_which_nothing_shows_is_no_table(tmp_path: Path) -> None:
    with served_web(tmp_path) as made:
        made.relay("alone", "price", NA, default="null")
        carl, dora = made.user("carl"), made.user("dora")
        made.grant("alone", dora, "dora")
        for who, seen in ((carl, []), (dora, ["item"])):
            with client_of(made, who, "alone") as client:
                assert fetch(client, command("CommandGetTables"))["table_name"].to_pylist() == seen
        with cursor_of(made, carl, "alone") as cursor, pytest.raises(ProgrammingError) as hidden:
            rows(cursor, "SELECT * FROM item")
        with cursor_of(made, carl, "alone") as cursor, pytest.raises(ProgrammingError) as unknown:
            rows(cursor, "SELECT * FROM itym")
        assert str(hidden.value) == str(unknown.value).replace("itym", "item")


def test_pandas_reads_a_question(web: ServedWeb, ann: Issued) -> None:
    with cursor_of(web, ann) as cursor:
        frame = pd.read_sql("SELECT id, flag FROM item WHERE id < 3 ORDER BY id", cursor.connection)
    assert frame.to_dict("list") == {"id": [1, 2], "flag": ["N", "R"]}


def test_a_plan_is_explained(web: ServedWeb, ann: Issued) -> None:
    with cursor_of(web, ann) as cursor:
        cursor.execute("EXPLAIN SELECT id FROM item WHERE price > ?", (1.0,))
        assert [row[1] for row in cursor.fetchall()] == ["na", "global", None]
        cursor.execute("EXPLAIN ANALYZE SELECT id FROM item")
        assert [row[3] for row in cursor.fetchall()] == [3, 2, None]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT nope FROM item", "nope.*E501"),
        ("SELEC 1", "E501"),
        ("DELETE FROM item", "one SELECT"),
        ("SELECT * FROM generate_series(1, 100000000000)", "reads entities only"),
        (f"SELECT {'(' * 1001}1{')' * 1001}", "deep"),
        (f"SELECT '{'x' * 65_000}' || '{'x' * 65_000}'", "65,536"),
        ("SELECT id FROM item WHERE id = ?", "1 parameter, but 0 were given"),
    ],
)
def test_errors_are_told_in_words(web: ServedWeb, ann: Issued, text: str, problem: str) -> None:
    with cursor_of(web, ann) as cursor, pytest.raises(ProgrammingError, match=f"(?s){problem}") as caught:
        rows(cursor, text)
    assert "log has the details" not in str(caught.value)


def test_writing_is_refused(web: ServedWeb, ann: Issued) -> None:
    with cursor_of(web, ann) as cursor:
        with pytest.raises(NotSupportedError, match=r"(?s)'new' would change data.*E733.*Relays are read-only"):
            cursor.adbc_ingest("new", pa.table({"a": [1]}))
        with pytest.raises(NotSupportedError, match="executemany"):
            cursor.executemany("SELECT ?", [(1,), (2,)])
    with client_of(web, ann) as client:
        with pytest.raises(NotImplementedError, match="Substrait plans are not supported"):
            client.get_flight_info(command("CommandStatementSubstraitPlan"))
        with pytest.raises(NotImplementedError, match=r"(?s)no action 'BeginTransaction'.*autocommit"):
            act(client, "BeginTransaction", b"")
        with pytest.raises(NotImplementedError, match="Transactions are not supported"):
            client.get_flight_info(command("CommandStatementQuery", query=ALL, transaction_id=b"1"))


# --- Whose a question is ---


def test_a_ticket_is_bound_to_the_key_of_whoever_has_asked(web: ServedWeb, ann: Issued, bob: Issued) -> None:
    with client_of(web, ann) as mine, client_of(web, bob) as theirs:
        (endpoint,) = mine.get_flight_info(query(ALL)).endpoints
        with pytest.raises(fl.FlightUnauthorizedError, match="bound to another key"):
            theirs.do_get(endpoint.ticket).read_all()
        for _ in range(2):  # and again
            assert mine.do_get(endpoint.ticket).read_all().num_rows == len(SEEN_BY_BOTH)


def test_a_ticket_ends(ann: Issued) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    now = [1000.0]
    tickets = SqlTickets(Seal(), lambda: now[0])
    caller = identity_of(x509.load_pem_x509_certificate(ann.facts.pem.encode()).public_bytes(Encoding.DER))
    ticket = SqlTicket("name", ALL, allows_incomplete=True)
    handle = unwrap(tickets.close(ticket, caller)).statement_handle
    assert tickets.open(handle, caller) == ticket
    assert ALL.encode() not in handle
    now[0] += LIFE
    with pytest.raises(TicketRefused, match="has expired"):
        tickets.open(handle, caller)


def test_grants_are_looked_up_when_rows_are_read(web: ServedWeb) -> None:
    eve = web.user("eve")
    web.grant("na", eve, "eve")
    with client_of(web, eve) as client:
        (endpoint,) = client.get_flight_info(query("SELECT id FROM item WHERE id < 10 ORDER BY id")).endpoints
        before = client.do_get(endpoint.ticket).read_all()["id"].to_pylist()
        web.grant("na", eve, "eve", "id = 2")
        after = client.do_get(endpoint.ticket).read_all()["id"].to_pylist()
    assert (before, after) == ([1, 2, 3], [2])


def test_a_prepared_statement_is_of_whoever_has_prepared_it(web: ServedWeb, ann: Issued, bob: Issued) -> None:
    with client_of(web, ann) as mine, client_of(web, bob) as theirs:
        handle = prepare(mine, "SELECT id FROM item WHERE id = ?").prepared_statement_handle
        statement = command("CommandPreparedStatementQuery", prepared_statement_handle=handle)
        close = wrap(message("ActionClosePreparedStatementRequest", prepared_statement_handle=handle))
        row = pa.record_batch([pa.array([2])], names=["1"])
        with pytest.raises(KeyError, match="You have no such prepared statement"):
            theirs.get_flight_info(statement)
        with pytest.raises(KeyError, match="You have no such prepared statement"):
            put(theirs, statement, row)
        act(theirs, "ClosePreparedStatement", close)  # which closes nothing
        put(mine, statement, row)
        assert fetch(mine, statement)["id"].to_pylist() == [2]
        act(mine, "ClosePreparedStatement", close)
        with pytest.raises(KeyError, match="no such prepared statement"):
            mine.get_flight_info(statement)


def put(client: Any, descriptor: Any, batch: pa.RecordBatch) -> None:
    writer, reader = client.do_put(descriptor, batch.schema)
    writer.write_batch(batch)
    writer.done_writing()
    reader.read()
    writer.close()


# --- Who is missing ---


def test_an_answer_without_the_rows_of_a_relay_is_an_error(gone: ServedWeb) -> None:
    problem = r"(?s)Rows are missing: there: .*cannot be reached.*E789.*odf-allow-incomplete"
    with cursor_of(gone, gone.user("ann"), "here") as cursor, pytest.raises(OperationalError, match=problem) as caught:
        rows(cursor, ALL)
    assert "--require-complete" not in str(caught.value)


def test_an_incomplete_answer_that_is_permitted_says_who_is_missing(gone: ServedWeb) -> None:
    ann = gone.user("ann")
    with cursor_of(gone, ann, "here", **{"rpc.call_header.odf-allow-incomplete": "true"}) as cursor:
        assert [number for number, *_ in rows(cursor, ALL)] == [1, 2, 3]
    options = fl.FlightCallOptions(headers=PERMITTED)
    with client_of(gone, ann, "here") as client:
        (endpoint,) = client.get_flight_info(query(ALL), options).endpoints
        reader = client.do_get(endpoint.ticket)
        [(relay, why)] = json.loads(reader.schema.metadata[b"odf.missing"])
        assert (relay, "cannot be reached" in why) == ("there", True)
        said = [chunk.app_metadata.to_pybytes() for chunk in reader if chunk.app_metadata is not None]
        assert [json.loads(one) for one in said] == [{"missing": [[relay, why]]}]
        with pytest.raises(pa.ArrowInvalid, match="'perhaps'"):
            client.get_flight_info(query(ALL), fl.FlightCallOptions(headers=[(b"odf-allow-incomplete", b"perhaps")]))


def test_a_complete_answer_says_so_where_others_are_permitted(web: ServedWeb, ann: Issued) -> None:
    with client_of(web, ann) as client:
        (endpoint,) = client.get_flight_info(query(ALL), fl.FlightCallOptions(headers=PERMITTED)).endpoints
        reader = client.do_get(endpoint.ticket)
        assert reader.schema.metadata == {b"odf.missing": b"[]"}
        assert reader.read_all().num_rows == len(SEEN_BY_BOTH)


# --- Cancelling ---


def cancel_info(client: Any, info: Any) -> None:
    body = message("CancelFlightInfoRequest", info=info.serialize()).SerializeToString()
    assert parse("CancelFlightInfoResult", act(client, "CancelFlightInfo", body)).status == 1


def cancel_query(client: Any, info: Any) -> None:
    body = wrap(message("ActionCancelQueryRequest", info=info.serialize()))
    assert unwrap(act(client, "CancelQuery", body)).result == 1


@pytest.mark.parametrize("cancel", [cancel_info, cancel_query])
def test_a_query_is_cancelled_by_whoever_has_asked_it(
    web: ServedWeb, ann: Issued, bob: Issued, cancel: Callable[[Any, Any], None]
) -> None:
    running = web.relays["na"].server.running
    with client_of(web, ann) as mine, client_of(web, bob) as theirs:
        info = mine.get_flight_info(query(LONG))
        reader = mine.do_get(info.endpoints[0].ticket)
        assert reader.schema == info.schema
        cancel(theirs, info)
        assert len(running) == 1
        cancel(mine, info)
        with pytest.raises(fl.FlightCancelledError):
            reader.read_chunk()  # read_all would make a Ctrl-C of it
        with pytest.raises(fl.FlightCancelledError):
            mine.do_get(info.endpoints[0].ticket).read_chunk()
    wait_until(lambda: len(running) == 0)


def test_adbc_cancels(web: ServedWeb, ann: Issued) -> None:
    with cursor_of(web, ann) as cursor:
        cursor.execute(LONG)
        cursor.adbc_cancel()
        with pytest.raises(OperationalError, match=r"(?i)cancel"):
            cursor.fetchall()
    wait_until(lambda: len(web.relays["na"].server.running) == 0)


def test_a_query_ends_with_its_client_also_while_others_are_asked(
    half: ServedWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "odfpy.serving.relay.local_client.PATIENCE", 300.0
    )  # nothing else ends it as long as the test waits
    running = half.relays["half"].server.running
    with client_of(half, half.user("ann"), "half") as client:
        (endpoint,) = client.get_flight_info(query("SELECT id FROM item")).endpoints
        with pytest.raises(fl.FlightTimedOutError):
            client.do_get(endpoint.ticket, fl.FlightCallOptions(timeout=0.5)).read_all()
        wait_until(lambda: len(running) == 0)
        # What the relay is free for again: a question that nobody else is asked.
        assert fetch(client, query("SELECT 1 AS one"))["one"].to_pylist() == [1]


# --- Others that speak Flight SQL ---


def tls_of(web: ServedWeb, who: Issued) -> Tls:
    return Tls(roots=web.issued.facts.pem.encode(), certificate=who.facts.pem.encode(), key=who.key_pem.encode())


def test_flight_service_reads_entities(web: ServedWeb, ann: Issued) -> None:
    service = FlightService(web.relays["na"].server.location, FlightSql(), ClientCertificate(), tls_of(web, ann))
    request = Request("item", columns=("flag", "id"), filters=filters_of([("id", ">", 2), ("flag", "=", "N")]))
    assert sorted(service.read(request)["id"].to_pylist()) == [3, 10, 12]
    totals = service.read(Request(query="SELECT flag, count(*) AS n FROM item GROUP BY flag ORDER BY flag"))
    assert totals.to_pydict() == {"flag": ["N", "R"], "n": [4, 1]}


def test_flight_service_hears_who_is_missing_and_permits_it_by_a_header(gone: ServedWeb) -> None:
    ann, relay = gone.user("ann"), gone.relays["here"].server.location
    with pytest.raises(NoLocationLeft, match="Rows are missing: there") as caught:
        FlightService(relay, FlightSql(), ClientCertificate(), tls_of(gone, ann)).read(Request("item"))
    assert "arrow-flight.header.odf-allow-incomplete" in caught.value.message
    headers = (("odf-allow-incomplete", "true"),)
    permitted = FlightService(relay, FlightSql(), ClientCertificate(), tls_of(gone, ann), headers=headers)
    assert sorted(permitted.read(Request("item", columns=("id",)))["id"].to_pylist()) == [1, 2, 3]


JDBC = """
apiVersion: odf/web/v1
kind: Entity
spec:
  name: {name}
  information: [{information}]
---
apiVersion: odf/web/v1
kind: LocalData
spec:
  name: log
  connection: {{kind: files, tables: {{log: {{location: log.csv, format: csv}}}}}}
  data_sources:
    - name: log
      source_sql: log
      fields: [{fields}]
      default_permission: {{allowed_columns: '*', allowed_rows: 'true'}}
---
apiVersion: odf/web/v1
kind: LocalMapping
spec:
  entity: {name}
  mappings: [{{data: log, source: log, fields: [{mapped}]}}]
"""


def test_the_jdbc_driver_gets_what_it_asks_for(tmp_path: Path) -> None:
    time = "'Timestamp(Millisecond, Some(\"UTC\"))'"
    types = {"offset": "Int64", "op": "Int32", "system_time": time, "event_time": time, "id": "Int64", "name": "Utf8"}
    lines = [f"{n},0,2024-01-01T00:00:00Z,2024-01-0{n + 1}T00:00:00Z,{n + 1},{'abcdef'[n]}" for n in range(6)]
    with served_web(tmp_path) as made:
        relay = made.relay("na", "price", NA)
        (relay.workspace.root / "web" / "log.csv").write_text("\n".join([",".join(types), *lines, ""]))
        relay.apply(
            JDBC.format(
                name=OPEN,
                information=", ".join(f"{{name: {name}, arrow_dtype: {kind}}}" for name, kind in types.items()),
                fields=", ".join(f"{{name: {name}}}" for name in types),
                mapped=", ".join(f"{{field: {name}, information: {name}}}" for name in types),
            )
        )
        with client_of(made, made.user("ann")) as client:
            answered = Replay(client, "whatever").all()
    assert {name: answered[name] for name in ROWS} == ROWS
    assert (OPEN, "TABLE") in [row[2:4] for row in answered["CommandGetTables"]]


def test_sessions_keep_nothing(web: ServedWeb, ann: Issued) -> None:
    def option(key: str, value: str) -> bytes:
        text = message("SessionOptionValue", string_value=value).SerializeToString()
        return bytes(message("SessionOption", key=key, value=text).SerializeToString())

    wanted = [("catalog", "odf"), ("schema", "x"), ("nope", "x"), ("odf-allow-incomplete", "true")]
    with client_of(web, ann) as client:
        body = message("SetSessionOptionsRequest", session_options=[option(*one) for one in wanted])
        result = parse("SetSessionOptionsResult", act(client, "SetSessionOptions", body.SerializeToString()))
        errors = {(one := parse("SessionOption", error)).key: one.value[1] for error in result.errors}
        assert errors == {"schema": 2, "nope": 1, "odf-allow-incomplete": 3}
        assert parse("CloseSessionResult", act(client, "CloseSession", b"")).status == 1
        assert {"CreatePreparedStatement", "CancelFlightInfo", "CancelQuery"} <= {
            one.type for one in client.list_actions()
        }


# --- Nonsense ---

GARBAGE = st.one_of(
    st.binary(max_size=60).map(lambda data: b"\n" + data),
    st.binary(max_size=60),
    st.builds(lambda data: wrap(message("TicketStatementQuery", statement_handle=data)), st.binary(max_size=60)),
    st.builds(lambda data: wrap(message("CommandStatementQuery", query=data)), st.text(max_size=30)),
    st.builds(
        lambda data: wrap(message("CommandPreparedStatementQuery", prepared_statement_handle=data)),
        st.binary(max_size=60),
    ),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(GARBAGE)
@example(b"\n")
@example(wrap(message("TicketStatementQuery", statement_handle=b"A" * 5_000)))
@example(wrap(message("CommandStatementUpdate", query="DELETE FROM item")))
@example(wrap(message("CommandGetTables", table_name_filter_pattern="\\")))
def test_garbage_gets_a_clear_answer_and_does_no_harm(web: ServedWeb, ann: Issued, data: bytes) -> None:
    with client_of(web, ann) as client:
        for call in (
            lambda: client.do_get(fl.Ticket(data)).read_all(),
            lambda: client.get_flight_info(fl.FlightDescriptor.for_command(data)),
            lambda: client.get_schema(fl.FlightDescriptor.for_command(data)),
            lambda: act(client, "CreatePreparedStatement", data),
            lambda: act(client, "CancelQuery", data),
            lambda: act(client, "SetSessionOptions", data),
        ):
            assert "log has the details" not in problem_of(call)


def problem_of(call: Callable[[], object]) -> str:
    try:
        call()
    except FLIGHT_ERRORS as error:
        return str(error)
    return ""
