"""Flight SQL call by call: what the standard says, and what becomes of clients that do not keep to it."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pyarrow.flight as fl
import pytest
from adbc_driver_manager import ProgrammingError
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.chains.workspaces import feed
from support.servers.certificates import self_signed
from support.servers.flight import (
    OPEN,
    SECRET,
    Served,
    act,
    command,
    fetch,
    prepare,
    query,
    serving_flight,
    small_workspace,
)
from support.servers.serving import wait_until

from odfpy.coordinator.workspace import Workspace
from odfpy.query.service import PreparedQuery, Query, QueryService
from odfpy.serving.callers.access import Caller
from odfpy.serving.callers.tokens import Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.flight.errors import Unauthenticated
from odfpy.serving.flight.lifecycle import serving_flight as serving_beside
from odfpy.serving.flight.messages import message, parse, unwrap, wrap
from odfpy.serving.flight.sessions import FlightSession, Sessions
from odfpy.serving.flight.statements import Schemas, cut_rows, plan_answer
from odfpy.serving.flight.streams import fitting
from odfpy.serving.flight.tickets import QueryTicket, Ticket
from odfpy.serving.http.listen_address import ListenAddress
from odfpy.serving.http.tls import CannotServe, Tls
from odfpy.serving.settings import ServeSettings
from odfpy.sharing.model import PrincipalKind, SharedView, SharePath
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.tables.opener import shared_dataset

NAMES = f'select name from "{OPEN}"'
ENDLESS = f'select a.id from "{OPEN}" a, generate_series(1, 100000000) c'
FLIGHT_ERRORS = (pa.ArrowException, fl.FlightError, KeyError, NotImplementedError)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_flight(small_workspace(tmp_path_factory.mktemp("flight"))) as found:
        yield found


@pytest.fixture
def client(served: Served) -> Iterator[Any]:
    with closing(served.client()) as found:
        yield found


def names(client: Any, options: Any = None) -> str:
    return "".join(fetch(client, query(NAMES), options)["name"].to_pylist())


def info_of(client: Any, text: str = NAMES, options: Any = None) -> Any:
    return client.get_flight_info(query(text), options)


# --- Questions ---


def test_an_answer_is_planned_before_it_is_run(client: Any):
    info = info_of(client)
    assert (info.schema.names, info.total_records, info.ordered) == (["name"], 6, True)
    assert client.get_schema(query(NAMES)).schema == info.schema
    assert names(client) == "abcdef"


def test_what_an_engine_answers_has_no_known_number_of_rows(client: Any):
    assert info_of(client, f'select name from "{OPEN}" where id > 3').total_records == -1


@pytest.mark.parametrize("rest", ["order by offset desc", "limit 2", "limit 2 offset 1", "where offset >= 7", ""])
def test_scans_have_the_rows_that_they_announce(client: Any, rest: str):
    info = info_of(client, f"{NAMES} {rest}")
    assert info.total_records in (-1, len(fetch(client, query(f"{NAMES} {rest}"))))


def test_a_ticket_gives_the_same_rows_again_whatever_has_been_committed(tmp_path: Path):
    workspace = small_workspace(tmp_path / "w")
    with serving_flight(workspace) as served, closing(served.client()) as client:
        (endpoint,) = info_of(client).endpoints
        feed(workspace, OPEN, "7 g", day=4)
        for _ in range(2):
            assert "".join(client.do_get(endpoint.ticket).read_all()["name"].to_pylist()) == "abcdef"
        assert names(client) == "abcdefg"


def test_a_path_is_a_dataset(client: Any):
    assert fetch(client, fl.FlightDescriptor.for_path(OPEN))["id"].to_pylist() == [*range(1, 7)]
    assert [info.descriptor.path for info in client.list_flights()] == [[OPEN.encode()]]
    assert [*client.list_flights(b"nothing")] == []


def test_tables_are_named_with_catalog_and_schema(client: Any, served: Served):
    assert fetch(client, query(f'select t.id from "odf"."odf"."{OPEN}" t'))["id"].to_pylist() == [*range(1, 7)]
    assert fetch(client, query(f'select count(*) as n from odf."{SECRET}"'), served.options())["n"].to_pylist() == [1]


def test_the_dialect_is_named_by_a_header(client: Any, served: Served):
    text = f"select count(*) from `{OPEN}`"
    names = [
        fetch(client, query(text), *options).column_names for options in ((served.options(odf_dialect="spark"),), ())
    ]
    assert names == [["count(1)"], ["count(*)"]]
    with pytest.raises(pa.ArrowInvalid, match=r"No engine is called 'sparc'.*\n.*Did you mean spark"):
        fetch(client, query(text), served.options(odf_dialect="sparc"))


# --- Prepared statements ---


def test_a_prepared_statement_sees_new_rows_when_it_is_executed_again(tmp_path: Path):
    workspace = small_workspace(tmp_path / "w")
    with serving_flight(workspace) as served, closing(served.client()) as client:
        made = prepare(client, f'select count(*) as n from "{OPEN}"')
        again = command("CommandPreparedStatementQuery", prepared_statement_handle=made.prepared_statement_handle)
        before = fetch(client, again)["n"].to_pylist()
        feed(workspace, OPEN, "7 g", day=4)
        assert (before, fetch(client, again)["n"].to_pylist()) == ([6], [7])


@pytest.mark.parametrize(
    ("condition", "types"),
    [
        (
            "id between ? and ? and event_time < ? and ? = name limit ?",
            "int64 int64 timestamp[ms, tz=UTC] string int64",
        ),
        ("id in (?, 8) and name like ? limit 1 offset ?", "int64 string int64"),
        ("id = ? + 1 and id = -? and -(? * ?) > id", "int64 int64 int64 int64"),
        ("? and (not ? or id > 1)", "bool bool"),
        ("cast(event_time as date) = ? and cast(? as boolean)", "date32[day] bool"),
        ("coalesce(name, ?) = 'x' and 1.5 > ? and lower(name) = ?", "string double string"),
    ],
)
def test_parameters_have_the_types_of_what_stands_beside_them(client: Any, condition: str, types: str):
    made = prepare(client, f'select id from "{OPEN}" where {condition}')
    found = pa.ipc.read_schema(pa.py_buffer(made.parameter_schema)).types
    assert " ".join(str(kind) for kind in found) == types


def test_a_closed_statement_is_not_there_any_more(client: Any):
    made = prepare(client, NAMES)
    handle = made.prepared_statement_handle
    request = message("ActionClosePreparedStatementRequest", prepared_statement_handle=handle)
    for _ in range(2):  # a client that says it twice is forgiven
        act(client, "ClosePreparedStatement", wrap(request))
    with pytest.raises(KeyError, match="no such prepared statement"):
        client.get_flight_info(command("CommandPreparedStatementQuery", prepared_statement_handle=handle))


@pytest.mark.parametrize(("values", "problem"), [([[1, 2]], "one row at a time"), ([[1], [2]], "1 parameter, but 2")])
def test_wrong_parameters_are_refused(client: Any, values: list[list[int]], problem: str):
    handle = prepare(client, f'select id from "{OPEN}" where id = ?').prepared_statement_handle
    batch = pa.record_batch([pa.array(column) for column in values], names=[str(n) for n in range(len(values))])
    descriptor = command("CommandPreparedStatementQuery", prepared_statement_handle=handle)
    with pytest.raises(pa.ArrowInvalid, match=problem):
        put(client, descriptor, batch)


def put(client: Any, descriptor: Any, batch: pa.RecordBatch) -> None:
    writer, reader = client.do_put(descriptor, batch.schema)
    writer.write_batch(batch)
    writer.done_writing()
    reader.read()
    writer.close()


# --- Catalog ---


def test_tools_are_told_what_tables_there_are(client: Any, served: Served):
    def tables(options: Any = None, **fields: Any) -> list[str]:
        return list(fetch(client, command("CommandGetTables", **fields), options)["table_name"].to_pylist())

    assert tables() == [OPEN]
    assert tables(served.options()) == [SECRET, OPEN]
    assert tables(served.options(), table_name_filter_pattern="alice/%") == [SECRET]
    assert tables(table_name_filter_pattern="com.example.ope_") == [OPEN]
    assert tables(table_name_filter_pattern="com.example\\_open") == []
    assert tables(table_name_filter_pattern=f"{OPEN}\\") == []
    assert tables(catalog="other") == tables(db_schema_filter_pattern="x%") == tables(table_types=["VIEW"]) == []
    (data,) = fetch(client, command("CommandGetTables", include_schema=True))["table_schema"].to_pylist()
    assert pa.ipc.read_schema(pa.py_buffer(data)) == fetch(client, query(f'select * from "{OPEN}"')).schema


def test_tools_are_told_the_primary_key(client: Any, served: Served):
    asked = command("CommandGetPrimaryKeys", table=SECRET)
    (row,) = fetch(client, asked, served.options()).to_pylist()
    assert (row["column_name"], row["key_sequence"]) == ("id", 1)
    assert len(fetch(client, asked)) == 0  # who may not see the table is not told its key


def test_everything_about_the_server_is_a_dense_union(client: Any, served: Served):
    table = fetch(client, command("CommandGetSqlInfo"))
    value = table.schema.field("value").type
    assert table.schema.field("info_name").type == pa.uint32()
    assert (value.mode, value.type_codes, value.field(3).type) == ("dense", [0, 1, 2, 3, 4, 5], pa.int32())
    numbers = {*range(12), 100, 101, *range(500, 577)}
    assert set(table["info_name"].to_pylist()) == numbers
    isolation = fetch(client, command("CommandGetSqlInfo", info=[562]))["value"].combine_chunks()
    assert isolation.type.field(isolation.type_codes[0].as_py()).type == pa.int64()  # JDBC takes no other
    some = fetch(client, command("CommandGetSqlInfo", info=[0, 3, 504, 8])).to_pylist()
    assert [row["value"] for row in some] == ["odfpy", True, 0, '"']
    (quote,) = fetch(client, command("CommandGetSqlInfo", info=[504]), served.options(odf_dialect="spark")).to_pylist()
    assert quote["value"] == "`"
    with pytest.raises(pa.ArrowInvalid, match="knows nothing of 77"):
        fetch(client, command("CommandGetSqlInfo", info=[77]))


def test_types_are_known_by_number(client: Any):
    every = fetch(client, command("CommandGetXdbcTypeInfo"))
    assert every["data_type"].to_pylist() == sorted(every["data_type"].to_pylist())
    assert fetch(client, command("CommandGetXdbcTypeInfo", data_type=12))["type_name"].to_pylist() == ["VARCHAR"]


def test_what_the_server_does_can_be_listed(client: Any):
    assert "CancelFlightInfo" in {action.type for action in client.list_actions()}


# --- Who asks ---


def basic(text: bytes) -> Any:
    return fl.FlightCallOptions(headers=[(b"authorization", b"Basic " + text)])


def test_an_anonymous_handshake_gives_a_session_that_ends(client: Any, served: Served):
    pair = client.authenticate_basic_token(b"anonymous", b"")
    session = fl.FlightCallOptions(headers=[pair])
    handle = prepare(client, NAMES, session).prepared_statement_handle
    assert names(client, session) == "abcdef"
    result = parse("CloseSessionResult", act(client, "CloseSession", b"", session))
    assert result.status == 1
    with pytest.raises(fl.FlightUnauthenticatedError, match="This session has ended"):
        names(client, session)
    with pytest.raises(KeyError, match="no such prepared statement"):
        client.get_flight_info(command("CommandPreparedStatementQuery", prepared_statement_handle=handle))
    assert served.server.running.__len__() == 0


def test_base64_goes_without_padding(client: Any, served: Served):
    for text in (f"anyone:{served.token}", f"user:{served.token}"):  # of different lengths
        assert len(
            fetch(client, query(f'select 1 from "{SECRET}"'), basic(base64.b64encode(text.encode()).rstrip(b"=")))
        )


@pytest.mark.parametrize(
    "header", ["Bearer odf_guess", "Bearer odfs_guess", "Basic %%%", "Basic bWU6bm8", "Digest x", "Bearer"]
)
def test_who_shows_something_wrong_is_let_in_nowhere(client: Any, header: str):
    options = fl.FlightCallOptions(headers=[(b"authorization", header.encode("ascii", "replace"))])
    for call in (lambda: names(client, options), lambda: [*client.list_flights(options=options)]):
        with pytest.raises(fl.FlightUnauthenticatedError):
            call()


def test_a_revoked_token_ends_its_sessions(tmp_path: Path):
    workspace = small_workspace(tmp_path / "w")
    with serving_flight(workspace) as served, closing(served.client()) as client:
        session = fl.FlightCallOptions(headers=[client.authenticate_basic_token(b"me", served.token.encode())])
        (endpoint,) = info_of(client, f'select * from "{SECRET}"', session).endpoints
        assert client.do_get(endpoint.ticket, session).read_all().num_rows == 1
        with pytest.raises(KeyError, match="No dataset"):  # a ticket opens nothing by itself
            client.do_get(endpoint.ticket).read_all()
        Tokens(workspace.odf).revoke("reader-0")
        with pytest.raises(fl.FlightUnauthenticatedError, match="no longer valid"):
            client.do_get(endpoint.ticket, session)


def test_a_revoked_token_ends_what_was_prepared_with_it(tmp_path: Path):
    workspace = small_workspace(tmp_path / "w")
    with serving_flight(workspace) as served, closing(served.client()) as client:
        session = fl.FlightCallOptions(headers=[client.authenticate_basic_token(b"me", served.token.encode())])
        handle = prepare(client, NAMES, session).prepared_statement_handle
        Tokens(workspace.odf).revoke("reader-0")
        with pytest.raises(fl.FlightUnauthenticatedError, match="no longer valid"):
            names(client, session)
        with pytest.raises(KeyError, match="no such prepared statement"):
            client.get_flight_info(command("CommandPreparedStatementQuery", prepared_statement_handle=handle))
        with pytest.raises(fl.FlightUnauthenticatedError, match="This session has ended"):
            prepare(client, NAMES, session)


def test_a_session_has_the_grants_of_now(tmp_path: Path):
    workspace = small_workspace(tmp_path / "w")
    sharing = Sharing.of_workspace(workspace.odf, None)
    sharing.shares.add_share("all")
    path = SharePath("all", "some", "secret")
    sharing.shares.add_table(path, shared_dataset(workspace.storage.get(SECRET), SharedView.CHANGELOG, None))
    sharing.principals.add(PrincipalKind.RECIPIENT, "acme")
    text, _ = sharing.principals.new_token("acme")
    with serving_flight(workspace) as served, closing(served.client()) as client:
        session = fl.FlightCallOptions(headers=[client.authenticate_basic_token(b"acme", text.encode())])

        def listed() -> set[str]:
            return {
                flight.descriptor.path[0].decode().rpartition("/")[2] for flight in client.list_flights(options=session)
            }

        before = listed()
        grant = sharing.grants.add("acme", path)
        assert len(listed()) == len(before) + 1
        sharing.grants.remove(grant.id)
        assert listed() == before


def test_whoever_is_not_known_any_more_closes_what_he_has(tmp_path: Path):
    workspace = small_workspace(tmp_path / "w")
    with serving_flight(workspace) as served:
        options = {"username": "me", "password": served.token}
        with (
            closing(adbc.connect(served.url, options, autocommit=True)) as connection,
            closing(connection.cursor()) as cursor,
        ):
            cursor.execute(f'select name from "{SECRET}"')
            Tokens(workspace.odf).revoke("reader-0")
            with pytest.raises(ProgrammingError, match="This session has ended"):
                cursor.adbc_prepare("select 1")


def test_sessions_that_are_old_or_one_too_many_end_and_say_so():
    time, ended = [0.0], []
    sessions = Sessions([], ended.extend, clock=lambda: time[0], most=2)
    first, second = (sessions.begin(Caller()) for _ in range(2))
    sessions.who(f"Bearer {first.name}")
    third = sessions.begin(Caller())
    assert ended == [second.name]  # nobody has used it for the longest time
    sessions.end(FlightSession(Caller()))  # one that never was
    assert ended == [second.name]
    time[0] = 90_000.0
    with pytest.raises(Unauthenticated, match="This session has ended"):
        sessions.who(f"Bearer {first.name}")
    assert ended == [second.name, first.name, third.name]


def test_what_becomes_private_is_gone_at_once(tmp_path: Path):
    workspace = small_workspace(tmp_path / "w")
    with serving_flight(workspace) as served, closing(served.client()) as client:
        (endpoint,) = info_of(client).endpoints
        set_visibility(workspace.storage.get(OPEN).folder, Visibility.PRIVATE)
        for call in (lambda: info_of(client), lambda: client.do_get(endpoint.ticket).read_all()):
            with pytest.raises(KeyError, match="No dataset"):
                call()
        assert [*client.list_flights()] == []


def test_names_of_private_datasets_are_not_suggested(client: Any, served: Served):
    misspelt = f'select * from "{SECRET}t"'
    with pytest.raises(KeyError) as found:
        info_of(client, misspelt)
    assert f"mean {SECRET}" not in str(found.value)
    with pytest.raises(KeyError, match="Did you mean alice"):
        info_of(client, misspelt, served.options())


def test_a_token_of_one_workspace_is_good_for_its_datasets_only(tmp_path: Path):
    first, second = Workspace.init(tmp_path / "first"), small_workspace(tmp_path / "second")
    with serving_flight(first, second) as served, closing(served.client()) as client:
        assert names(client, served.options()) == "abcdef"
        with pytest.raises(KeyError, match="No dataset"):
            info_of(client, f'select * from "{SECRET}"', served.options())


def test_a_session_has_a_dialect(client: Any):
    def option(value: str, key: str = "dialect") -> bytes:
        said = message("SessionOptionValue", string_value=value).SerializeToString()
        entry = message("SessionOption", key=key, value=said).SerializeToString()
        return bytes(message("SetSessionOptionsRequest", session_options=[entry]).SerializeToString())

    session = fl.FlightCallOptions(headers=[client.authenticate_basic_token(b"anonymous", b"")])
    assert act(client, "SetSessionOptions", option("spark"), session) == b""
    assert len(fetch(client, query(f"select name from `{OPEN}`"), session)) == 6
    assert b"spark" in act(client, "GetSessionOptions", b"", session)
    for only in (option("odf", "catalog"), option("odf", "schema")):
        assert act(client, "SetSessionOptions", only, session) == act(client, "SetSessionOptions", only) == b""
    for wrong in (option("sparc"), option("1", "speed"), option("other", "catalog")):
        assert parse("SetSessionOptionsResult", act(client, "SetSessionOptions", wrong, session)).errors
    assert parse("SetSessionOptionsResult", act(client, "SetSessionOptions", option("spark"))).errors  # no session


# --- What is refused ---


@pytest.mark.parametrize(
    ("descriptor", "kind", "problem"),
    [
        (query("selec 1"), pa.ArrowInvalid, "line 1, column 1"),
        (query(""), pa.ArrowInvalid, "There is no query"),
        (query("select * from nowhere"), KeyError, "No dataset 'nowhere'"),
        (query("insert into t values (1)"), pa.ArrowInvalid, "allowed, not INSERT"),
        (query(f"select * from odf_as_at('{OPEN}', '1999-01-01')"), KeyError, "did not exist yet"),
        (query("select '" + "x" * (1 << 20) + "'"), pa.ArrowInvalid, "may have 65,536"),
        (command("CommandStatementQuery", query="select 1", transaction_id=b"t"), NotImplementedError, "transactions"),
        (command("CommandStatementUpdate", query="delete"), NotImplementedError, "SQL is read-only"),
        (command("CommandStatementSubstraitPlan"), NotImplementedError, "Substrait"),
        (command("TicketStatementQuery", statement_handle=b"x"), NotImplementedError, "gives no rows"),
        (command("CommandPreparedStatementQuery", prepared_statement_handle=b"\xff"), KeyError, "no such prepared"),
        (fl.FlightDescriptor.for_command(b"select 1"), pa.ArrowInvalid, "Not a message of Flight SQL"),
        (fl.FlightDescriptor.for_command(b""), pa.ArrowInvalid, "it has no name"),
        (fl.FlightDescriptor.for_path("no such"), KeyError, "No dataset"),
        (fl.FlightDescriptor.for_path(), pa.ArrowInvalid, "descriptor is empty"),
    ],
    ids=lambda value: None,
)
def test_questions_that_make_no_sense(client: Any, descriptor: Any, kind: type[Exception], problem: str):
    with pytest.raises(kind, match=problem) as found:
        client.get_flight_info(descriptor)
    assert "Traceback" not in str(found.value)
    with pytest.raises(kind, match=problem):
        client.get_schema(descriptor)


@pytest.mark.parametrize("name", ["BeginTransaction", "EndSavepoint", "CreatePreparedSubstraitPlan", "x" * 3000, ""])
def test_actions_that_are_not_there(client: Any, name: str):
    with pytest.raises(NotImplementedError, match="There is no action"):
        act(client, name, b"")


@pytest.mark.parametrize("name", ["CommandStatementUpdate", "CommandStatementIngest", "CommandPreparedStatementUpdate"])
def test_nothing_is_written(client: Any, name: str):
    with pytest.raises(NotImplementedError, match="would change data"):
        put(client, command(name), pa.record_batch([[1]], names=["a"]))


def test_nothing_is_exchanged(client: Any):
    writer, reader = client.do_exchange(query(NAMES))
    with pytest.raises(NotImplementedError, match="DoExchange is not supported"):
        reader.read_chunk()
    with pytest.raises(NotImplementedError):
        writer.close()


GARBAGE = st.one_of(
    st.binary(max_size=60),
    st.builds(lambda data: wrap(message("TicketStatementQuery", statement_handle=data)), st.binary(max_size=60)),
    st.builds(
        lambda document: wrap(message("TicketStatementQuery", statement_handle=json.dumps(document).encode())),
        st.dictionaries(
            st.sampled_from(["name", "query", "dialect", "pins", "skip", "limit", "parameters"]),
            st.one_of(st.none(), st.integers(-2, 2), st.text(max_size=5), st.just("spark"), st.just({"a": "b"})),
        ),
    ),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(GARBAGE)
@example(wrap(message("TicketStatementQuery", statement_handle=b"[" * 5000)))
@example(wrap(message("TicketStatementQuery", statement_handle=b'{"name":"a","query":"select 1","dialect":"x"}')))
@example(wrap(message("CommandStatementQuery", query="select 1")))
def test_garbage_gets_a_clear_answer_and_does_no_harm(client: Any, data: bytes):
    for call in (
        lambda: client.do_get(fl.Ticket(data)).read_all(),
        lambda: client.get_flight_info(fl.FlightDescriptor.for_command(data)),
        lambda: act(client, "CreatePreparedStatement", data),
        lambda: act(client, "CancelFlightInfo", data),
    ):
        try:
            call()
        except FLIGHT_ERRORS as error:
            assert "Traceback" not in str(error)  # noqa: PT017
            assert "Internal error" not in str(error)  # noqa: PT017
    assert client.get_schema(query("select 1")).schema.names == ["Int64(1)"]


def test_headers_are_never_too_long_for_clients(client: Any):
    with pytest.raises((pa.ArrowInvalid, KeyError)) as found:
        info_of(client, f'select * from "{"ü" * 50_000}"')
    assert len(str(found.value)) < 10_000


def test_errors_of_the_server_name_no_folders(tmp_path: Path):
    workspace = small_workspace(tmp_path / "w")
    for file in (workspace.storage.get(OPEN).folder / "data").iterdir():
        file.unlink()
    with serving_flight(workspace) as served, closing(served.client()) as client:
        with pytest.raises(FLIGHT_ERRORS) as found:
            names(client)
        assert str(tmp_path) not in str(found.value)


# --- Under way ---


def drain(reader: Any) -> None:
    """Read it to its end; `read_all` would take a cancelled call for Ctrl-C."""
    while reader.read_chunk().data is not None:
        pass


SLOW = """
import sys
import pyarrow.flight as fl
client = fl.connect(sys.argv[1])
readers = [client.do_get(fl.Ticket(bytes.fromhex(sys.argv[2]))) for _ in range(int(sys.argv[3]))]
for reader in readers:
    reader.read_chunk()
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def slow_readers(served: Served, count: int) -> Iterator[subprocess.Popen[str]]:
    """A process that reads one batch of each of some endless answers, and waits until it is killed."""
    before = len(served.server.running)
    with closing(served.client()) as client:
        ticket = info_of(client, ENDLESS).endpoints[0].ticket.ticket.hex()
    command = [sys.executable, "-c", SLOW, served.url, ticket, str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()
    wait_until(lambda: len(served.server.running) <= before)


def test_a_query_is_cancelled_by_another_call(served: Served, client: Any):
    text = f'select a.id from "{OPEN}" a, "{OPEN}" b, generate_series(1, 100000000) c'
    info = info_of(client, text)
    reader = client.do_get(info.endpoints[0].ticket)
    reader.read_chunk()
    with closing(served.client()) as other:
        request = message("CancelFlightInfoRequest", info=info.serialize()).SerializeToString()
        assert parse("CancelFlightInfoResult", act(other, "CancelFlightInfo", request)).status == 1
    with pytest.raises(fl.FlightCancelledError, match="The query was stopped"):
        drain(reader)
    with pytest.raises(fl.FlightCancelledError):
        drain(client.do_get(info.endpoints[0].ticket))
    wait_until(lambda: len(served.server.running) == 0)


def test_old_clients_cancel_too(client: Any):
    info = info_of(client)
    request = wrap(message("ActionCancelQueryRequest", info=info.serialize()))
    assert unwrap(act(client, "CancelQuery", request)).result == 1


def test_a_query_that_gives_nothing_yet_ends_when_its_client_has_gone(served: Served, client: Any):
    info = info_of(client, f'select count(*) from "{OPEN}", generate_series(1, 100000000000) c')
    reader = client.do_get(info.endpoints[0].ticket)
    wait_until(lambda: len(served.server.running) == 1)
    reader.cancel()
    wait_until(lambda: [*client.list_actions()] and len(served.server.running) == 0)


def test_a_connection_that_breaks_off_does_no_harm(served: Served, client: Any):
    for data in (b"", b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00"):
        with socket.create_connection(("127.0.0.1", served.server.port)) as connection:
            connection.sendall(data)
    assert names(client) == "abcdef"


def test_slow_readers_take_nobodys_place_but_their_own(served: Served):
    with (
        serving_flight(served.workspace, flight_working=1, flight_queries=11) as other,
        closing(other.client()) as client,
    ):
        with slow_readers(other, 10):
            assert names(client) == "abcdef"
            with slow_readers(other, 1), pytest.raises(fl.FlightUnavailableError, match=r"11 queries.*\n.*Try again"):
                names(client)
        assert names(client) == "abcdef"


def test_whoever_waits_too_long_for_a_place_is_told(served: Served):
    with serving_flight(served.workspace, flight_working=1, patience=0.01) as other:
        client = other.client()
        with other.server.running.working(), pytest.raises(fl.FlightUnavailableError, match="The server is busy"):
            info_of(client)
        client.close()
        with closing(other.client()) as client:
            assert names(client) == "abcdef"


def test_a_query_that_takes_too_long_is_stopped(served: Served):
    with (
        serving_flight(served.workspace, flight_timeout=0.2) as other,
        closing(other.client()) as client,
    ):
        info = info_of(client, f'select count(*) from "{OPEN}", generate_series(1, 100000000000) c')
        with pytest.raises(fl.FlightTimedOutError, match=r"took longer than 0\.2 s"):
            client.do_get(info.endpoints[0].ticket).read_all()


def test_many_clients_at_once_are_all_answered(served: Served):
    found: list[str] = []

    def work() -> None:
        with closing(served.client()) as each:
            found.extend(names(each) for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == ["abcdef"] * 60


# --- Where it listens ---


def test_tls_with_the_certificate_of_the_server(tmp_path: Path, served: Served):
    certificate, key = self_signed(tmp_path)
    beside = serving_beside(
        [served.workspace], ListenAddress("127.0.0.1", 0, Tls(certificate, key)), settings=ServeSettings()
    )
    with beside as url:
        assert url.startswith("grpc+tls://127.0.0.1:")
        with closing(fl.connect(url, tls_root_certs=certificate.read_bytes())) as client:
            assert names(client) == "abcdef"
        with closing(fl.connect(url)) as stranger, pytest.raises(fl.FlightUnavailableError):
            names(stranger)


def test_a_port_that_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRPC_VERBOSITY", "")
    monkeypatch.delenv("GRPC_VERBOSITY")
    workspace = Workspace.init(tmp_path / "w")
    settings = ServeSettings()
    with (
        serving_beside([workspace], ListenAddress("127.0.0.1", 0), settings) as url,
        pytest.raises(CannotServe, match=r"Cannot listen at 127\.0\.0\.1"),
        serving_beside([workspace], ListenAddress("127.0.0.1", int(url.rpartition(":")[2])), settings),
    ):
        pass
    assert os.environ["GRPC_VERBOSITY"] == "NONE"  # gRPC has no words of its own for it


# --- Pieces ---


def test_an_engine_is_asked_for_the_columns_of_an_answer_once_while_nothing_changes(tmp_path: Path):
    workspace = small_workspace(tmp_path / "w")
    asked = []

    class Counting(QueryService):
        def prepare(self, query: Query) -> PreparedQuery:
            asked.append(query.text)
            return super().prepare(query)

    service, schemas = Counting(workspace.query_service.resolver, workspace.engines.registry), Schemas()
    text = f'select name from "{OPEN}" where id = ?'
    for question, times in [
        (QueryTicket(text, "datafusion"), 1),
        (QueryTicket(text, "datafusion"), 1),
        (QueryTicket(text, "datafusion", (1,)), 2),
        (QueryTicket(text, "datafusion", (2,)), 3),
        (QueryTicket(text, "datafusion", (1,)), 3),
    ]:
        planned = plan_answer(service, question, schemas)
        assert (planned.schema.names, len(asked)) == (["name"], times)
    feed(workspace, OPEN, "7 g", day=4)
    assert plan_answer(service, question, schemas).pins != planned.pins
    assert len(asked) == 4


@given(
    st.lists(st.integers(1, 2_000_000), min_size=1, max_size=30),
    st.integers(0, 3_000_000),
    st.integers(0, 3_000_000),
)
def test_parts_of_a_scan_have_every_row_once_and_are_few(sizes: list[int], first: int, count: int):
    ends = [sum(sizes[: number + 1]) - 1 for number in range(len(sizes))]
    last = min(first + count, ends[-1])
    if last < first:
        return
    parts = cut_rows(first, last, ends)
    assert [skip for skip, _ in parts] == [sum(rows for _, rows in parts[:n]) for n in range(len(parts))]
    assert sum(rows for _, rows in parts) == last - first + 1
    assert len(parts) <= 8
    assert all(first + skip + rows - 1 in (*ends, last) for skip, rows in parts)


@given(st.lists(st.binary(max_size=30), max_size=200), st.integers(1, 200_000))
def test_batches_are_cut_to_what_clients_take(cells: list[bytes], size: int):
    batch = pa.record_batch([pa.array([cell * (size // 30) for cell in cells], pa.binary())], names=["a"])
    found = list(fitting(batch, batch.schema))
    assert pa.Table.from_batches(found, batch.schema) == pa.Table.from_batches([batch])
    assert all(one.num_rows == 1 or one.nbytes < 12 << 20 for one in found)


VALUES = st.one_of(st.none(), st.integers(-(2**60), 2**60), st.text(), st.booleans(), st.binary(), st.datetimes())


@given(st.text(), st.lists(VALUES).map(tuple), st.integers(0, 2**40), st.none() | st.integers(0, 2**40))
def test_a_ticket_is_read_as_it_was_written(text: str, values: tuple[Any, ...], skip: int, limit: int | None):
    ticket = Ticket("name", QueryTicket(text.encode("utf-8", "replace").decode(), "spark", values), {}, skip, limit)
    assert Ticket.parse(unwrap(ticket.to_bytes()).statement_handle) == ticket
