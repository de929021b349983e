"""Flight SQL servers of other makers: BenoStreamDB (Rust, DataFusion), and SQLite behind Arrow's Go library."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from support.servers.others_flight import KEY, benostream, sqlite

from odfpy.flight import Bearer, FlightService, FlightSql, Request, filters_of
from odfpy.flight.errors import FlightFailed, FlightRefused
from odfpy.flight.writing import begin, end

REPOSITORY = Path(__file__).resolve().parents[2]
ORDERS = Request("orders", schema="public", catalog="datafusion")


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    subprocess.run([REPOSITORY / ".ci" / "flight"], check=True)


@pytest.fixture(scope="module")
def beno(tmp_path_factory: pytest.TempPathFactory, installed: None) -> Iterator[FlightService]:
    with benostream(tmp_path_factory.mktemp("warehouse")) as url:
        service = FlightService(url, authenticator=Bearer(KEY))
        for statement in (
            "CREATE TABLE datafusion.public.orders (id BIGINT, name VARCHAR, amount DOUBLE, day DATE)",
            "INSERT INTO datafusion.public.orders VALUES (1, 'a%b', 1.5, DATE '2024-01-01')",
            "INSERT INTO datafusion.public.orders VALUES (2, 'it''s', 2.5, DATE '2024-02-01'), (3, NULL, NULL, NULL)",
        ):
            run(service, statement)
        yield service


@pytest.fixture(scope="module")
def lite(installed: None) -> Iterator[FlightService]:
    with sqlite() as url:
        yield FlightService(url)


def run(service: FlightService, statement: str) -> None:
    """A statement without rows, which this server runs when it is planned."""
    descriptor = service.commands.descriptor(Request(query=statement))
    service.ask(lambda client, options: client.get_flight_info(descriptor, options))


# --- BenoStreamDB -----------------------------------------------------------------------------------------------------


def test_a_table(beno: FlightService):
    table = beno.read(ORDERS)
    assert table.schema.types == [pa.int64(), pa.string(), pa.float64(), pa.date32()]
    assert table.num_rows == 3


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("id", ">", 1), [2, 3]),
        (("id", "in", [1, 3]), [1, 3]),
        (("name", "contains", "%"), [1]),
        (("name", "=", "it's"), [2]),
        (("amount", "<=", 1.5), [1]),
        (("day", ">=", date(2024, 1, 15)), [2]),
        (("name", "is null"), [3]),
    ],
)
def test_conditions(beno: FlightService, condition: tuple[str, str, object], expected: list[int]):
    request = Request(ORDERS.table, ORDERS.schema, ORDERS.catalog, None, ("id",), filters_of([condition]))
    assert sorted(beno.read(request).column("id").to_pylist()) == expected


def test_a_server_that_wants_to_see_a_token(beno: FlightService):
    with pytest.raises(FlightRefused, match="missing bearer token"):
        FlightService(beno.location).read(ORDERS)


def test_a_query_that_is_wrong(beno: FlightService):
    with pytest.raises(FlightFailed, match=r"table 'datafusion\.default\.nothing' not found"):
        beno.read(Request("nothing"))


# --- SQLite -----------------------------------------------------------------------------------------------------------


def test_columns_that_are_left_out_of_flight_info(lite: FlightService):
    assert lite.plan(Request("intTable")).schema.names == ["id", "keyName", "value", "foreignId"]
    assert lite.read(Request("intTable", columns=("keyName",))).to_pydict() == {
        "keyName": ["one", "zero", "negative one", None]
    }


def test_conditions_of_sqlite(lite: FlightService):
    found = lite.read(Request("intTable", columns=("id",), filters=filters_of([("value", ">=", 0), ("id", "<", 2)])))
    assert found.column("id").to_pylist() == [1]
    assert lite.read(FlightSql().greatest(Request("intTable"), "id")).column(0).to_pylist() == [4]


def test_transactions(lite: FlightService):
    for commit in (False, True):
        end(lite, begin(lite), commit=commit)
    with pytest.raises(FlightFailed):
        end(lite, b"none", commit=True)
