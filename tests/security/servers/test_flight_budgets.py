"""Flight SQL takes in what its memory can bear, and what it is asked takes no more time than it is long."""

from __future__ import annotations

import base64
import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.servers.flight import OPEN, Served, command, fetch, prepare, query, serving_flight, small_workspace
from support.servers.serving import PATIENCE, wait_until

from odfpy.serving.flight.errors import FlightSqlError, WrongMessage
from odfpy.serving.flight.frames import MAX_MESSAGE, PREFACE, Call, Frames, Violation, check_message, payload_of
from odfpy.serving.flight.like import MAX_LENGTH, Like
from odfpy.serving.flight.messages import message, unwrap, wrap
from odfpy.serving.flight.statements import Statement, Statements
from odfpy.serving.flight.tickets import QueryTicket, Ticket
from odfpy.serving.http.budget import BudgetHolder

FEW: dict[str, Any] = {"stranger_memory": 2 << 20, "stranger_memory_each": 1 << 20, "patience": 2}
ENDED = (fl.FlightError, pa.ArrowException, OSError)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_flight(small_workspace(tmp_path_factory.mktemp("flight")), **FEW) as found:
        yield found


@pytest.fixture
def client(served: Served) -> Iterator[Any]:
    with closing(served.client()) as found:
        yield found


def is_well(served: Served) -> bool:
    begin = time.monotonic()
    with closing(served.client()) as other:
        return len(fetch(other, query(f'select id from "{OPEN}"'))) == 6 and time.monotonic() - begin < 60


# --- Patterns ---


def test_a_pattern_of_many_signs_is_answered_at_once(client: Any) -> None:
    begin = time.monotonic()
    assert len(fetch(client, command("CommandGetTables", table_name_filter_pattern="%a" * 400 + "%"))) == 0
    assert len(fetch(client, command("CommandGetDbSchemas", db_schema_filter_pattern="%" * 900))) == 1
    assert time.monotonic() - begin < 60


def test_a_pattern_has_an_end(client: Any) -> None:
    with pytest.raises(pa.ArrowInvalid, match="1000 characters at most"):
        fetch(client, command("CommandGetTables", table_name_filter_pattern="%" * 100_000))


def test_the_time_of_a_pattern_grows_with_its_length() -> None:
    name = "a" * 5000
    begin = time.monotonic()
    assert not Like("%a" * (MAX_LENGTH // 2 - 1) + "b").fits(name)
    assert not Like("%" + "_" * (MAX_LENGTH // 2) + "b%").fits(name)
    assert time.monotonic() - begin < 60


PIECES = st.lists(st.sampled_from(["%", "_", "a", "b", "\\%", "\\_", "\\\\", "\\"]), max_size=8).map("".join)


@given(PIECES, st.text("ab%_\\", max_size=8))
def test_a_pattern_is_what_sql_says(pattern: str, name: str) -> None:
    parts = re.findall(r"\\.|%|_|[^\\%_]+|\\", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    plain = [wild.get(one) or re.escape(one[1:] if len(one) == 2 and one[0] == "\\" else one) for one in parts]
    assert Like(pattern).fits(name) is (re.fullmatch("".join(plain), name, re.DOTALL) is not None)


# --- Messages ---


def bind(client: Any, batch: pa.RecordBatch, options: Any = None) -> None:
    handle = prepare(client, f'select id from "{OPEN}" where id = ?').prepared_statement_handle
    put(client, command("CommandPreparedStatementQuery", prepared_statement_handle=handle), batch, options)


def put(client: Any, descriptor: Any, batch: pa.RecordBatch, options: Any = None) -> None:
    writer, reader = client.do_put(descriptor, batch.schema, options)
    writer.write_batch(batch)
    writer.done_writing()
    reader.read()
    writer.close()


def test_parameters_are_not_taken_in_at_any_length(served: Served, client: Any) -> None:
    with (
        serving_flight(served.workspace) as other,
        closing(other.client()) as here,
        pytest.raises(pa.ArrowInvalid, match="1048576 bytes at most"),
    ):
        bind(here, pa.record_batch([pa.array(["x" * (1 << 21)])], ["1"]))
    with pytest.raises(ENDED):
        bind(client, pa.record_batch([pa.array([bytes(64 << 20)])], ["1"]))
    assert is_well(served)


def test_parameters_are_not_unpacked(served: Served, client: Any) -> None:
    options = fl.FlightCallOptions(write_options=pa.ipc.IpcWriteOptions(compression="zstd"))
    with pytest.raises(ENDED):
        bind(client, pa.record_batch([pa.array([bytes(32 << 20)])], ["1"]), options)
    assert is_well(served)


def test_messages_are_not_unpacked(served: Served) -> None:
    compress = [("grpc.default_compression_algorithm", 2)]
    with closing(fl.connect(served.url, generic_options=compress)) as client, pytest.raises(ENDED):
        prepare(client, "select 1 -- " + " " * 60_000)
    assert is_well(served)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[None] * 10], pa.list_(pa.null())),
        pa.RunEndEncodedArray.from_arrays([1], [7]),
        pa.array([{"a": 1}]),
        pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([[1, 2]])),
    ],
)
def test_parameters_are_plain_values(client: Any, column: pa.Array) -> None:
    with pytest.raises(pa.ArrowInvalid, match="A parameter is of the type"):
        bind(client, pa.record_batch([column], ["1"]))


def ticket_with(batch: pa.RecordBatch, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch)
    parts = {"name": "n", "query": "select ?", "dialect": "datafusion"}
    return json.dumps({**parts, "parameters": base64.b64encode(sink.getvalue()).decode()}).encode()


def test_tickets_are_not_unpacked_either(client: Any) -> None:
    packed = ticket_with(pa.record_batch([pa.array([bytes(64 << 20)])], ["0"]), compression="zstd")
    assert len(packed) < 100_000
    with pytest.raises(WrongMessage):
        Ticket.parse(packed)
    with pytest.raises(pa.ArrowInvalid, match="not a ticket"):
        client.do_get(fl.Ticket(wrap(message("TicketStatementQuery", statement_handle=packed)))).read_all()
    assert Ticket.parse(ticket_with(pa.record_batch([pa.array(["a"])], ["0"]))).question.parameters == ("a",)
    with pytest.raises((WrongMessage, FlightSqlError)):
        Ticket.parse(ticket_with(pa.record_batch([pa.array([[1]])], ["0"])))


@pytest.mark.parametrize("limit", ["", [], {}, False, -1, "5", 1.5])
def test_a_limit_in_a_ticket_is_a_number_of_rows(limit: Any) -> None:
    document = {"name": "n", "query": "select 1", "dialect": "datafusion"}
    with pytest.raises(WrongMessage):
        Ticket.parse(json.dumps({**document, "limit": limit}).encode())
    assert Ticket.parse(json.dumps({**document, "limit": 0}).encode()).limit == 0
    assert Ticket.parse(json.dumps(document).encode()).limit is None


def test_parameters_lead_nowhere_outside_of_what_came() -> None:
    document = json.loads(ticket_with(pa.record_batch([pa.array(["abc"])], ["0"])))
    sent = base64.b64decode(document["parameters"])
    offsets, beyond = (b"".join(n.to_bytes(4, "little") for n in (0, end)) for end in (3, 1 << 30))
    before, _, after = sent.rpartition(offsets)
    document["parameters"] = base64.b64encode(before + beyond + after).decode()
    with pytest.raises(WrongMessage):
        Ticket.parse(json.dumps(document).encode())


def test_what_is_cancelled_has_a_short_name() -> None:
    ticket = Ticket("x" * 1000, QueryTicket("select 1", "datafusion"))
    with pytest.raises(WrongMessage):
        Ticket.parse(unwrap(ticket.to_bytes()).statement_handle)


# --- Calls that do not end ---


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


PATH = b"/arrow.flight.protocol.FlightService/GetFlightInfo"
HEADERS = (
    b"\x83\x86\x04" + bytes([len(PATH)]) + PATH + b"\x41\x01x\x5f\x10application/grpc\x40\x02te\x08trailers"
)  # HPACK: POST, http, path, authority, content-type


def unfinished(served: Served, stream: int = 1, announced: int = 300_000, sent: int = 60_000) -> bytes:
    begin = frame(1, 4, stream, HEADERS)
    said = b"\0" + announced.to_bytes(4, "big") + bytes(sent)
    return begin + b"".join(frame(0, 0, stream, said[at : at + 16384]) for at in range(0, len(said), 16384))


def dial(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.server.port), PATIENCE)


def everything(connection: socket.socket) -> bytes:
    found = b""
    with suppress(ConnectionResetError):
        while data := connection.recv(65536):
            found += data
    return found


def test_messages_that_do_not_end_are_counted_and_given_up(served: Served) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(dial(served)) for _ in range(6)]
        for connection in connections:
            connection.sendall(PREFACE + frame(4, 0, 0, b"") + unfinished(served))
        said = [everything(connection) for connection in connections]
    assert sum(b"bytes allowed for one caller" in one for one in said) >= 4
    assert any(b"a call does not go on" in one for one in said)
    assert is_well(served)


def test_a_message_is_refused_before_it_comes(served: Served) -> None:
    with dial(served) as connection:
        connection.sendall(PREFACE + frame(4, 0, 0, b"") + unfinished(served, announced=MAX_MESSAGE + 1, sent=1))
        assert b"a message has 4194304 bytes at most" in everything(connection)


def test_calls_have_a_number(served: Served) -> None:
    with serving_flight(served.workspace, flight_queries=2, patience=2) as other, dial(other) as connection:
        begin = PREFACE + frame(4, 0, 0, b"")
        connection.sendall(begin + b"".join(unfinished(other, 2 * at + 1, 10, 1) for at in range(5)))
        assert b"4 calls of one address" in everything(connection)
        wait_until(lambda: is_well_or_not(other))  # its calls may still be worked on for a while


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"", PREFACE[:10]])
def test_whoever_says_nothing_that_is_flight_is_given_up(served: Served, data: bytes) -> None:
    with dial(served) as connection:
        connection.sendall(data)
        assert everything(connection)


def test_one_address_has_not_all_connections(served: Served) -> None:
    with serving_flight(served.workspace, max_connections_each=2) as other, dial(other), dial(other) as second:
        with dial(other) as third:
            assert b"too many connections" in everything(third)
        second.close()
        wait_until(lambda: is_well_or_not(other))


def is_well_or_not(served: Served) -> bool:
    try:
        return is_well(served)
    except ENDED:
        return False


# --- Statements ---


def test_statements_take_only_so_many_bytes() -> None:
    known = Statements(most_bytes=100_000, most_bytes_each=40_000)
    first = known.add(Statement("", BudgetHolder.at("192.0.2.1"), QueryTicket("select 1", "datafusion")))
    mine = [known.add(Statement("", BudgetHolder.of_token("me"), QueryTicket("x" * 9_000, "spark"))) for _ in range(20)]
    assert known.size <= 50_000
    assert known.get(first)
    assert known.get(mine[-1])
    for number in range(20):
        known.add(Statement("", BudgetHolder.of_token(f"t{number}"), QueryTicket("x" * 9_000, "spark")))
    assert known.size <= 100_000
    known.replace(mine[-1], Statement("", BudgetHolder.of_token("me"), QueryTicket("x", "spark")))
    known.close_all([""])
    assert (known.size, len(known)) == (0, 0)


# --- Frames ---


@given(
    st.lists(st.tuples(st.binary(max_size=300), st.integers(0, 20)), max_size=5),
    st.lists(st.integers(1, 50), max_size=99),
)
def test_frames_are_the_same_however_they_come(messages: list[tuple[bytes, int]], cuts: list[int]) -> None:
    padded = [bytes([pad]) + data + bytes(pad) for data, pad in messages]
    data = b"".join(frame(0, 8, 1, one) for one in padded) + frame(1, 1, 1, b"")
    frames, found, ends, at = Frames(), b"", 0, 0
    for cut in [*cuts, len(data)]:
        for one, piece in frames.feed(data[at : at + cut]):
            found += payload_of(one, piece)
            ends += one.ends_stream and not one.left
        at += cut
    assert found == b"".join(data for data, _ in messages)
    assert ends == 1


@given(st.binary(max_size=200))
def test_no_bytes_are_more_than_a_violation(data: bytes) -> None:
    for take in (lambda: check_message(data), lambda: Call().take(memoryview(data)), lambda: [*Frames().feed(data)]):
        with suppress(Violation):
            take()


def field_of(number: int, data: bytes, kind: int = 2) -> bytes:
    return varint(number << 3 | kind) + varint(len(data)) + data


def varint(value: int) -> bytes:
    return bytes([value]) if value <= 0x7F else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def header_of(compression: str | None, batch: pa.RecordBatch) -> tuple[bytes, bytes]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    found = [*pa.ipc.MessageReader.open_stream(sink.getvalue())][-1]
    return found.metadata.to_pybytes(), found.body.to_pybytes()


BATCH = pa.record_batch([pa.array([bytes(100_000)])], ["1"])


def test_compressed_batches_are_known_however_they_are_written() -> None:
    header, body = header_of("zstd", BATCH)
    plain = header_of(None, BATCH)
    check_message(field_of(2, plain[0]) + field_of(1000, plain[1]))
    hidden = field_of(2, plain[0]) + field_of(1000, body) + field_of(2, header)  # the last one counts
    overlong = field_of(2, header) + field_of(1000, body).replace(b"\xc2\x3e", b"\xc2\xbe\x80\x80\x90\x01", 1)
    for told in (
        field_of(2, header) + field_of(1000, body),
        field_of(1000, body) + field_of(2, header),
        hidden,
        overlong,
    ):
        with pytest.raises(Violation):
            check_message(told)
    covered = field_of(7, field_of(2, header) + field_of(1000, body))
    for read_in_two_ways in (
        field_of(1, covered, kind=0),
        field_of(2, header, kind=0),
        field_of(8, b""),
        b"\0" + hidden,
    ):
        with pytest.raises(Violation):
            check_message(read_in_two_ways)
