"""Flight SQL with the clients that people use, as they come: ADBC, `kamu`, pandas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import kamu
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from adbc_driver_manager import NotSupportedError, ProgrammingError
from support.servers.flight import OPEN, SECRET, Served, serving_flight, small_workspace


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_flight(small_workspace(tmp_path_factory.mktemp("flight"))) as found:
        yield found


@pytest.fixture(scope="module")
def connection(served: Served) -> Iterator[Any]:
    """Of ADBC, of nobody."""
    with closing(adbc.connect(served.url, autocommit=True)) as found:
        yield found


@pytest.fixture
def cursor(connection: Any) -> Iterator[Any]:
    with closing(connection.cursor()) as found:
        yield found


def rows(cursor: Any, text: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    cursor.execute(text, parameters)
    return cursor.fetchall()


# --- ADBC ---


def test_adbc_reads_rows_columns_and_totals(cursor: Any):
    assert rows(cursor, "select 1") == [(1,)]
    assert rows(cursor, f'select id, name from "{OPEN}"') == list(zip(range(1, 7), "abcdef", strict=True))
    assert rows(cursor, f'select count(*) from "{OPEN}"') == [(6,)]
    assert rows(cursor, f'select max(name) from "{OPEN}" group by id % 2 order by 1') == [("e",), ("f",)]


def test_adbc_gives_names_and_types_of_columns(cursor: Any):
    cursor.execute(f'select * from "{OPEN}"')
    table = cursor.fetch_arrow_table()
    assert table.column_names == ["offset", "op", "system_time", "event_time", "id", "name"]
    assert table.schema.field("event_time").type == pa.timestamp("ms", "UTC")
    assert not table.schema.field("id").nullable


@pytest.mark.parametrize(
    ("condition", "value", "found"),
    [
        ("id = ?", 3, "c"),
        ("name = ?", "it's", ""),
        ("name = ?", "b", "b"),
        ("event_time < ?", datetime(2024, 1, 2, tzinfo=timezone.utc), "ab"),
        ("name is null or ?", True, "abcdef"),
        ("id > ?", 4.5, "ef"),
        ("name = ?", None, ""),
    ],
)
def test_adbc_binds_parameters(cursor: Any, condition: str, value: Any, found: str):
    text = f'select name from "{OPEN}" where {condition} order by id'
    assert "".join(name for (name,) in rows(cursor, text, (value,))) == found


def test_a_statement_is_executed_again_with_other_parameters(cursor: Any):
    text = f'select name from "{OPEN}" where id = ?'
    assert [rows(cursor, text, (number,)) for number in (1, 2, 7)] == [[("a",)], [("b",)], []]


def test_temporal_projections_are_asked_for_as_everywhere(cursor: Any):
    assert rows(cursor, f"select count(*) from odf_as_at('{OPEN}', 2)") == [(3,)]


def test_adbc_shows_what_there_is_for_nobody(connection: Any):
    (catalog,) = connection.adbc_get_objects(depth="all").read_all().to_pylist()
    (schema,) = catalog["catalog_db_schemas"]
    (table,) = schema["db_schema_tables"]
    columns = [column["column_name"] for column in table["table_columns"]]
    assert (catalog["catalog_name"], schema["db_schema_name"], table["table_name"]) == ("odf", "odf", OPEN)
    assert columns == ["offset", "op", "system_time", "event_time", "id", "name"]
    assert connection.adbc_get_table_types() == ["TABLE"]
    assert connection.adbc_get_table_schema(OPEN).names == columns


def test_adbc_hears_who_the_server_is(connection: Any):
    info = connection.adbc_get_info()
    assert (info["vendor_name"], info["vendor_arrow_version"]) == ("odfpy", pa.__version__)


def test_adbc_is_in_the_only_catalog_and_schema(connection: Any):
    connection.adbc_current_catalog = "odf"
    assert (connection.adbc_current_catalog, connection.adbc_current_db_schema) == ("odf", "odf")
    with pytest.raises(ProgrammingError, match="catalog"):
        connection.adbc_current_catalog = "other"


def test_adbc_plans_without_running(cursor: Any):
    assert cursor.adbc_execute_schema("select 1 as a, 'x' as b").names == ["a", "b"]


def test_adbc_reads_partitions_in_any_process(connection: Any, cursor: Any):
    partitions, schema = cursor.adbc_execute_partitions(f'select id from "{OPEN}"')
    found = []
    for partition in partitions * 2:  # and again
        with closing(connection.cursor()) as other:
            other.adbc_read_partition(partition)
            found += [number for (number,) in other.fetchall()]
    assert (found, schema.names) == ([*range(1, 7)] * 2, ["id"])


def test_writing_is_refused(cursor: Any):
    with pytest.raises(NotSupportedError, match=r"(?s)'new' would change data.*E733.*SQL is read-only"):
        cursor.adbc_ingest("new", pa.table({"a": [1]}))
    with pytest.raises(NotSupportedError, match="executemany"):
        cursor.executemany("select ?", [(1,), (2,)])
    with pytest.raises(ProgrammingError, match="Only queries are allowed, not DELETE"):
        cursor.execute(f'delete from "{OPEN}"')
    assert rows(cursor, f'select count(*) from "{OPEN}"') == [(6,)]


def test_transactions_are_refused(served: Served):
    with pytest.warns(UserWarning, match="Cannot disable autocommit"):
        connection = adbc.connect(served.url)
    with closing(connection), closing(connection.cursor()) as cursor:
        assert rows(cursor, "select 1") == [(1,)]


def test_adbc_names_the_dialect_by_a_header(served: Served):
    options = {"adbc.flight.sql.rpc.call_header.odf-dialect": "spark"}
    with closing(adbc.connect(served.url, options, autocommit=True)) as client, closing(client.cursor()) as cursor:
        assert rows(cursor, f"select name from `{OPEN}` limit 1") == [("a",)]


# --- kamu ---


def test_kamu_asks_without_a_token(served: Served):
    with closing(kamu.connect(served.url)) as client:
        one = client.query("select 1")
        assert one.dtypes.tolist() == [np.dtype("int64")]
        assert client.query(f'select name from "{OPEN}" order by id desc limit 2').name.tolist() == ["f", "e"]
        with pytest.raises(ProgrammingError, match="No dataset"):
            client.query(f'select * from "{SECRET}"')


def test_kamu_asks_with_a_token_for_datasets_of_accounts(served: Served):
    with closing(kamu.connect(served.url, token=served.token)) as client:
        assert client.query(f'select name from "{SECRET}"').name.tolist() == ["hidden"]
        with client.as_adbc().cursor() as cursor:
            cursor.execute(f'select id from "{SECRET}"')
            assert cursor.fetch_arrow_table().to_pydict() == {"id": [1]}


def test_kamu_is_told_of_a_wrong_token(served: Served):
    with (
        closing(kamu.connect(served.url, token="odf_wrong")) as client,
        pytest.raises(ProgrammingError, match="Unknown or expired access token"),
    ):
        client.query("select 1")


# --- pandas ---


def test_pandas_reads_queries_and_tables(connection: Any):
    frame = pd.read_sql(f'select id, name from "{OPEN}" where id < 3', connection)
    assert frame.to_dict("list") == {"id": [1, 2], "name": ["a", "b"]}
    assert pd.read_sql(OPEN, connection, dtype_backend="pyarrow").id.tolist() == [*range(1, 7)]


# --- Who asks ---


def test_a_token_is_shown_as_password(served: Served):
    with (
        closing(adbc.connect(served.url, {"username": "me", "password": served.token}, autocommit=True)) as client,
        closing(client.cursor()) as cursor,
    ):
        assert rows(cursor, f'select name from "{SECRET}"') == [("hidden",)]
        (catalog,) = client.adbc_get_objects(depth="tables").read_all().to_pylist()
        tables = catalog["catalog_db_schemas"][0]["db_schema_tables"]
        assert [table["table_name"] for table in tables] == [SECRET, OPEN]


def test_a_wrong_password_opens_nothing(served: Served):
    with pytest.raises(ProgrammingError, match="UNAUTHENTICATED"):
        adbc.connect(served.url, {"username": "me", "password": "odf_guess"}, autocommit=True)
