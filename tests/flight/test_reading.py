"""Reading any Flight server: every location in turn, and no row twice, whatever happens to a stream."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from support.servers.plain_flight import REFUSED, REUSE, Flight, PlainServer, plain_flight

from odfpy.errors import InvalidValue, UsageError
from odfpy.flight import ClientPool, FlightService, JsonCommands, Limits, PathCommands, PlainCommands, Request
from odfpy.flight.errors import FlightFailed, NoLocationLeft, SchemaBroken, StreamBroken

NUMBERS = Request("numbers")
NOTHING_HELD = Limits(held_bytes=0, patience=5)


@pytest.fixture
def service(server: PlainServer, pool: ClientPool) -> FlightService:
    return FlightService(server.url, JsonCommands(), pool=pool, limits=Limits(patience=5))


def ids(service: FlightService, request: Request = NUMBERS) -> list[int]:
    return service.read(request).column("id").to_pylist()


def test_all_rows_of_all_endpoints(service: FlightService):
    assert ids(service) == list(range(20))
    assert service.stream(NUMBERS).read_all() == service.read(NUMBERS)


def test_a_plan_has_columns_and_numbers_but_no_rows(service: FlightService):
    plan = service.plan(NUMBERS)
    assert plan.schema == pa.schema([("id", pa.int64()), ("name", pa.string())])
    assert (plan.rows, len(plan.endpoints)) == (20, 2)
    assert plan.size > 0


def test_columns_are_picked_where_the_server_sends_all(service: FlightService):
    assert service.read(Request("numbers", columns=("name", "id"))).column_names == ["name", "id"]
    with pytest.raises(UsageError, match="no column 'nam'") as caught:
        service.read(Request("numbers", columns=("nam",)))
    assert caught.value.hint == "Did you mean name?"


@pytest.mark.parametrize("commands", [PathCommands(), PlainCommands(), JsonCommands()])
def test_the_commands_of_small_servers(service: FlightService, commands):
    assert ids(replace(service, commands=commands)) == list(range(20))


@pytest.mark.parametrize("commands", [PathCommands(), PlainCommands()])
def test_what_cannot_be_said_is_not_left_out(service: FlightService, commands):
    with pytest.raises(UsageError, match="supports no filters or limit"):
        replace(service, commands=commands).read(Request("numbers", limit=1))


def test_a_table_that_is_not_there(service: FlightService):
    with pytest.raises(FlightFailed, match=rf"{service.location}: no flight number$"):
        service.read(Request("number"))


def test_no_endpoints_are_no_rows(service: FlightService, server: PlainServer):
    server.flights["empty"] = Flight([], declared=pa.schema([("id", pa.int64())]))
    assert service.read(Request("empty")).num_rows == 0


@pytest.mark.parametrize("url", ["127.0.0.1:50050", "http://127.0.0.1:50050", "grpc://", ""])
def test_not_a_location(url: str):
    with pytest.raises(InvalidValue, match="Not the location of a Flight server"):
        FlightService(url)


def test_a_server_that_is_not_there():
    with pytest.raises(FlightFailed, match=REFUSED) as caught:
        FlightService(REFUSED).read(NUMBERS)
    assert "that it is a Flight port" in caught.value.hint


# --- Columns that FlightInfo does not have ----------------------------------------------------------------------------


def test_columns_from_get_schema(service: FlightService, server: PlainServer):
    server.flights["numbers"].declared = pa.schema([])
    assert service.plan(NUMBERS).schema.names == ["id", "name"]
    assert ids(service) == list(range(20))


def test_columns_from_the_first_stream(service: FlightService, server: PlainServer, monkeypatch):
    server.flights["numbers"].declared = pa.schema([])
    monkeypatch.delattr(PlainServer, "get_schema")
    assert service.plan(NUMBERS).schema.names == ["id", "name"]
    assert ids(service) == list(range(20))


# --- Locations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [[], [REUSE], [REFUSED, REUSE], ["https://127.0.0.1/rows", REUSE]])
def test_locations_are_tried_in_turn(service: FlightService, server: PlainServer, elsewhere: list[str]):
    server.flights["numbers"].locations = elsewhere
    assert ids(service) == list(range(20))


def test_rows_from_another_server(service: FlightService, server: PlainServer, pool: ClientPool):
    with plain_flight() as other:
        other.flights["numbers"] = server.flights["numbers"]
        server.flights["numbers"] = replace(other.flights["numbers"], locations=[REFUSED, other.url])
        assert ids(service) == list(range(20))
        assert other.url in pool.locations()


def test_no_location_is_left(service: FlightService, server: PlainServer):
    server.flights["numbers"].locations = [REFUSED, "https://127.0.0.1/rows"]
    with pytest.raises(NoLocationLeft) as caught:
        service.read(NUMBERS)
    assert f"{REFUSED}: " in caught.value.message
    assert "https://127.0.0.1/rows: unsupported location" in caught.value.message


def test_tickets_that_have_run_out(service: FlightService, server: PlainServer):
    server.flights["numbers"].expires = datetime(2024, 3, 1, 0, 0, 0, 1, timezone.utc)
    with pytest.raises(NoLocationLeft, match="too late") as caught:
        service.read(NUMBERS)
    assert "The ticket has expired" in caught.value.hint


# --- Faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["raise", "refuse"])
def test_a_stream_that_fails_begins_again(service: FlightService, server: PlainServer, fault: str):
    server.faults.extend([fault, fault])  # both may meet one endpoint
    assert ids(replace(service, limits=Limits(rounds=3))) == list(range(20))


def test_a_batch_that_was_handed_over_does_not_come_again(service: FlightService, server: PlainServer):
    server.faults.append("raise")
    rows = replace(service, limits=NOTHING_HELD).stream(NUMBERS)
    assert rows.read_next_batch().column("id").to_pylist() == [0, 1, 2]
    with pytest.raises(StreamBroken, match=r"endpoint 0 has ended after 3 rows: the disk is gone"):
        rows.read_next_batch()


def test_rows_that_are_held_back_begin_again(service: FlightService, server: PlainServer):
    server.faults.append("raise")
    assert service.stream(NUMBERS).read_all().column("id").to_pylist() == list(range(20))


@pytest.mark.parametrize("fault", ["wait", "stall"])
def test_a_location_that_says_nothing(service: FlightService, server: PlainServer, fault: str):
    server.faults.append(fault)
    quick = replace(service, limits=Limits(patience=0.3, at_once=1))
    assert ids(quick) == list(range(20))


def test_a_server_that_declares_other_columns_than_it_sends(service: FlightService, server: PlainServer):
    server.faults.append("lie")
    with pytest.raises(SchemaBroken, match=r"sends the columns id_, name_ instead of id, name"):
        service.read(NUMBERS)
    server.flights["numbers"].declared = pa.schema([("id", pa.int32()), ("name", pa.string())])
    with pytest.raises(SchemaBroken, match="column 'id' of type int64 instead of int32"):
        service.read(NUMBERS)


def test_a_server_that_dies_while_it_sends(service: FlightService, server: PlainServer):
    """Another process, which ends without a word; the second location of each endpoint is this one's."""
    with subprocess.Popen([sys.executable, "-c", DIES], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        elsewhere = process.stdout.readline().strip()
        server.flights["numbers"].locations = [elsewhere, REUSE]
        assert ids(replace(service, limits=Limits(at_once=1))) == list(range(20))
        assert process.wait(20) == 1


DIES = f"""
import sys
sys.path[:0] = {sys.path!r}
from flight.conftest import numbers
from support.servers.plain_flight import Flight, plain_flight
with plain_flight() as server:
    server.flights["numbers"] = Flight([numbers(0, 10), numbers(10, 20)])
    server.faults.append("die")
    print(server.url, flush=True)
    server.wait()
"""


def test_a_reader_that_stops_early_ends_the_stream(service: FlightService, server: PlainServer, pool: ClientPool):
    server.flights["numbers"] = Flight([pa.table({"id": range(100_000)})], batch=10)
    plan = service.plan(NUMBERS)
    rows = replace(service, limits=NOTHING_HELD).batches(plan, plan.endpoints[0])
    assert next(rows).num_rows == 10
    rows.close()
    assert ids(service) == list(range(100_000))


def test_a_service_and_a_plan_travel_to_other_processes(service: FlightService):
    plan = service.plan(NUMBERS)
    there, endpoint = pickle.loads(pickle.dumps((service, plan.endpoints[1])))
    assert pa.Table.from_batches(there.batches(plan, endpoint)).column("id").to_pylist() == list(range(10, 20))


def test_importing_the_client_needs_nothing_heavy():
    program = "import sys, odfpy.flight; print(sorted(one.split('.')[0] for one in sys.modules))"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert not {"pyspark", "pandas", "duckdb", "datafusion", "google"} & set(eval(loaded))
    program = "import sys, odfpy.flight; print([one for one in sys.modules if one.startswith('odfpy.coordinator')])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_what_a_server_says_about_nulls_is_not_relied_on(service: FlightService, server: PlainServer):
    never = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    server.flights["nulls"] = Flight([pa.table({"id": [1, None]})], declared=never)
    assert service.read(Request("nulls")).column("id").to_pylist() == [1, None]
    assert service.plan(Request("nulls")).schema == pa.schema([("id", pa.int64())])
