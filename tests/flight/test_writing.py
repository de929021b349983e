"""Rows to a server, by DoPut."""

from __future__ import annotations

import pyarrow as pa
import pytest
from flight.conftest import numbers
from support.servers.plain_flight import PlainServer

from odfpy.errors import UsageError
from odfpy.flight import ClientPool, FlightService, PlainCommands, Request
from odfpy.flight.errors import FlightFailed, FlightWriteFailed
from odfpy.flight.writing import begin, end, write_rows

TEN = numbers(0, 10)


@pytest.fixture
def service(server: PlainServer, pool: ClientPool) -> FlightService:
    return FlightService(server.url, pool=pool)


def rows_of(server: PlainServer, table: str) -> list[int]:
    return pa.concat_tables(server.flights[table].parts).column("id").to_pylist()


def test_rows_to_a_plain_server(server: PlainServer, pool: ClientPool):
    plain = FlightService(server.url, PlainCommands(), pool=pool)
    assert plain.write("new", TEN) == 10
    assert plain.write("new", TEN.to_reader(3)) == 10
    assert rows_of(server, "new") == [*range(10), *range(10)]
    with pytest.raises(FlightWriteFailed, match="did not accept the rows for table 'forbidden': nobody writes here"):
        plain.write("forbidden", TEN)
    with pytest.raises(UsageError, match="can only append rows"):
        plain.write("new", TEN, replace=True)


def test_rows_to_a_server_of_flight_sql(service: FlightService, server: PlainServer):
    assert service.write("new", TEN) == 10
    assert service.write("new", numbers(10, 12)) == 2
    assert rows_of(server, "new") == list(range(12))
    assert service.write("new", numbers(5, 6), replace=True) == 1
    assert rows_of(server, "new") == [5]
    with pytest.raises(FlightWriteFailed, match="the disk is full"):
        service.write("full", TEN)


@pytest.mark.parametrize("commit", [True, False])
def test_rows_wait_for_their_transaction(service: FlightService, server: PlainServer, commit: bool):
    transaction = begin(service)
    write_rows(service, Request("new"), TEN.schema, TEN.to_batches(), transaction=transaction)
    assert "new" not in server.flights
    end(service, transaction, commit=commit)
    assert ("new" in server.flights) == commit


def test_a_server_that_is_not_there():
    nobody = FlightService("grpc://127.0.0.1:1")
    with pytest.raises(FlightWriteFailed):
        nobody.write("new", TEN)
    with pytest.raises(FlightFailed):
        begin(nobody)
