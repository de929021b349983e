"""What is the same wherever the datasets are: in a workspace, behind REST, behind Flight."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import SparkContext
from support.chains.connecting import RATES, SCREAMED
from support.servers.certificates import self_signed
from support.servers.static_server import static_server

import odfpy
from odfpy.client import flight
from odfpy.client.connection import Connection
from odfpy.client.rest import NotAnAnswer
from odfpy.client.rows import Rows
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import (
    DatasetNotFound,
    InvalidQuery,
    InvalidValue,
    QueryTimedOut,
    TransferError,
    UnknownTable,
    UsageError,
)
from odfpy.serving.flight.lifecycle import serving_flight
from odfpy.serving.http.listen_address import ListenAddress
from odfpy.serving.http.tls import Tls
from odfpy.serving.settings import ServeSettings


def names(rows: Rows) -> list[str]:
    return sorted(rows.table.column("name").to_pylist())


# --- SQL ---


def test_sql_gives_rows_with_their_types(connection: Connection, here: Connection) -> None:
    query = f'SELECT * FROM "{RATES}" ORDER BY "offset"'
    found = connection.sql(query).to_arrow()
    assert found.to_pylist() == here.sql(query).to_arrow().to_pylist()
    assert found.schema.field("event_time").type == pa.timestamp("ms", "UTC")
    assert found.num_rows == 5


def test_sql_gives_rows_to_pandas_and_polars(connection: Connection) -> None:
    rows = connection.sql(f'SELECT id, name FROM "{RATES}" WHERE op = 0 ORDER BY id')
    assert rows.to_pandas().to_dict("list") == {"id": [1, 2, 3], "name": ["EUR 10", "<b>&amp;", "USD 5"]}
    assert rows.to_polars().to_dict(as_series=False) == rows.to_pandas().to_dict("list")
    assert pa.table(rows) == rows.to_arrow()
    assert len(rows) == 3


def test_values_take_the_places_of_parameters(connection: Connection) -> None:
    text = f'SELECT name FROM "{RATES}" WHERE id = ? AND name <> ? AND op IN (0, 3)'
    assert names(connection.sql(text, [1, "EUR 10"])) == ["EUR 12"]


def test_a_limit_cuts_what_comes(connection: Connection) -> None:
    assert len(connection.sql(f'SELECT * FROM "{RATES}"', limit=2)) == 2
    assert len(connection.sql(f'SELECT * FROM "{RATES}"', limit=0)) == 0


def test_batches_come_without_being_kept(connection: Connection) -> None:
    rows = connection.prepare(f'SELECT id FROM "{RATES}"')
    assert sum(batch.num_rows for batch in rows.batches()) == 5
    assert repr(rows) == f'<rows of SELECT id FROM "{RATES}", not asked for yet>'


def test_the_dialect_may_be_that_of_spark(connection: Connection) -> None:
    assert connection.sql(f"SELECT count(*) AS n FROM `{RATES}`", engine="spark").to_arrow().to_pylist() == [{"n": 5}]


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("selec 1", InvalidQuery, "selec"),
        (f'SELECT nam FROM "{RATES}"', InvalidQuery, "nam"),
        ('SELECT * FROM "com.example.rate"', UnknownTable, "com.example.rate"),
        ("DROP TABLE x", InvalidQuery, "DROP"),
    ],
)
def test_wrong_queries_are_told_where_they_are_asked(
    connection: Connection, text: str, error: type[odfpy.OdfError], said: str
) -> None:
    with pytest.raises(odfpy.OdfError, match=said) as caught:
        connection.sql(text)
    # Over REST only messages come, without the codes of the errors.
    assert isinstance(caught.value, error) or (connection.place.startswith("http") and said in caught.value.message)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"text": 5}, "not a value of type int"),
        ({"text": "SELECT ?", "parameters": "EUR"}, "list of values"),
        ({"text": "SELECT ?", "parameters": {"a": 1}}, "list of values"),
        ({"text": "SELECT 1", "limit": -1}, "limit must be a whole number, at least 0, not -1"),
        ({"text": "SELECT 1", "limit": "few"}, "limit must be a whole number, at least 0, not 'few'"),
        ({"text": "SELECT 1", "timeout": 0}, "timeout must be more than 0 s"),
        ({"text": "SELECT 1", "timeout": float("nan")}, "timeout must be more than 0 s"),
    ],
)
def test_arguments_that_make_no_sense(connection: Connection, arguments: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        connection.prepare(**arguments)


# --- Datasets ---


def test_datasets_by_name(connection: Connection) -> None:
    assert sorted(one.name for one in connection) == [RATES, SCREAMED]
    found = connection[RATES]
    assert found.num_records == 5
    assert found.schema is not None
    assert found.schema.names == ("offset", "op", "system_time", "event_time", "id", "name")
    assert RATES in repr(found)


def test_an_unknown_dataset_is_told_with_a_suggestion(connection: Connection) -> None:
    with pytest.raises(DatasetNotFound, match=r"com\.example\.rate") as caught:
        _ = connection["com.example.rate"]
    assert caught.value.hint == f"Did you mean {RATES}?"


def test_a_dataset_as_it_is_and_was(connection: Connection) -> None:
    rates = connection[RATES]
    assert len(rates.changelog()) == 5
    assert names(rates.current()) == ["<b>&amp;", "EUR 12", "USD 5"]
    assert names(rates.current("op")) == ["EUR 12", "USD 5"]
    assert names(rates.as_of("2024-01-03")) == ["<b>&amp;", "EUR 10"]
    assert names(rates.at(1)) == ["<b>&amp;", "EUR 10"]
    assert names(rates.at(3).as_of("2024-01-03")) == ["<b>&amp;", "EUR 10"]
    assert names(rates.at(3).as_of("2024-01-06")) == ["<b>&amp;", "EUR 12"]
    assert rates.tail(2).table.column("name").to_pylist() == ["EUR 12", "USD 5"]
    with pytest.raises(UsageError, match=r"num_rows must be a whole number, at least 0, not 2\.5"):
        rates.tail(2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "time",
    [
        "2024-01-06",
        date(2024, 1, 6),
        datetime(2024, 1, 6),  # noqa: DTZ001  without a zone, it is in UTC
        datetime(2024, 1, 6, 1, tzinfo=timezone.utc),
    ],
)
def test_times_may_be_texts_and_values(connection: Connection, time: Any) -> None:
    assert names(connection[RATES].as_of(time)) == ["<b>&amp;", "EUR 12"]


def test_as_at_takes_times_and_blocks(connection: Connection, workspace: odfpy.Workspace) -> None:
    second = next(block for block in workspace.datasets.log(RATES) if block.block.sequence_number == 4)
    for moment in (second.hash, str(second.hash), second.block.system_time, str(second.block.system_time)):
        assert names(connection[RATES].at(moment)) == ["<b>&amp;", "EUR 12"]


def test_what_is_no_time_is_said_to_be_none(connection: Connection) -> None:
    rates = connection[RATES]
    for ask in (lambda: rates.as_of("soon"), lambda: rates.at(-1), lambda: rates.at(1.5), lambda: rates.at(True)):  # type: ignore[arg-type]
        with pytest.raises(InvalidValue):
            ask()


def test_rows_per_day(connection: Connection) -> None:
    assert connection[RATES].rows_per_day() == {date(2024, 1, 1): 3, date(2024, 1, 5): 1, date(2024, 1, 9): 1}


# --- What only some places tell ---


def test_watermark_and_lineage_are_told_by_workspaces_and_servers(urls: dict[str, str]) -> None:
    for name in ("workspace", "rest"):
        connection = odfpy.connect(urls[name])
        assert connection[RATES].watermark == "2024-01-09T00:00:00Z"
        assert connection[RATES].kind == "Root"
        assert str(connection[RATES].id).startswith("did:odf:")
        lineage = connection[SCREAMED].lineage()
        assert lineage.names() == [SCREAMED, RATES]
        assert repr(lineage) == f"{SCREAMED}  derivative\n  {RATES}  root"


def test_what_a_place_cannot_tell_is_said(urls: dict[str, str]) -> None:
    for name in ("rest", "flight"):
        connection = odfpy.connect(urls[name], engine="datafusion")
        with pytest.raises(UsageError, match="provenance"):
            connection[SCREAMED].provenance(0)
        with pytest.raises(UsageError, match="as at 2024") as caught:
            connection.sql("SELECT 1", as_at="2024-01-01")
        assert caught.value.hint is not None
        assert "odf_as_at" in caught.value.hint
    with pytest.raises(UsageError, match="does not provide lineage"):
        odfpy.connect(urls["flight"])[RATES].lineage()


def test_a_frame_of_spark_needs_a_session(here: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)  # other tests of this process may have one
    with pytest.raises(UsageError, match="no Spark session") as caught:
        here.sql("SELECT 1").to_spark()
    assert caught.value.hint is not None
    assert "to_spark(session)" in caught.value.hint


# --- Places ---


@pytest.fixture
def static_page(tmp_path: Path) -> Iterator[str]:
    """The URL of a server that is not a node: it has a page for whatever is asked."""
    (tmp_path / "datasets").write_text("<html>hello</html>")
    with static_server(tmp_path) as server:
        yield server.url


@pytest.mark.parametrize(
    ("place", "error", "said"),
    [
        ("ftp://127.0.0.1", UsageError, "ftp://"),
        ("https://a b", InvalidValue, "URL"),
        ("http://127.0.0.1:1", TransferError, r"127\.0\.0\.1:1"),
        ("grpc://127.0.0.1:1", TransferError, r"127\.0\.0\.1:1"),
        ("grpc://", InvalidValue, "'grpc://'"),
    ],
)
def test_places_that_are_none(place: str, error: type[odfpy.OdfError], said: str) -> None:
    with pytest.raises(error, match=said):
        odfpy.connect(place).sql("SELECT 1")


def test_one_row_may_be_large_over_flight(urls: dict[str, str]) -> None:
    rows = odfpy.connect(urls["flight"]).sql("SELECT repeat('x', 17000000) AS text", engine="datafusion")
    assert len(rows.to_arrow().column(0)[0].as_py()) == 17_000_000


def test_a_certificate_that_nobody_vouches_for_over_flight(workspace: Workspace, tmp_path: Path) -> None:
    address = ListenAddress("127.0.0.1", 0, Tls(*self_signed(tmp_path)))
    with (
        serving_flight([workspace], address, ServeSettings()) as url,
        pytest.raises(TransferError, match="certificate") as caught,
    ):
        odfpy.connect(url).sql("SELECT 1")
    assert "SSL_CERT_FILE" in str(caught.value.hint)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Where somebody listens, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield silent.getsockname()[1]


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_password_in_a_url_is_not_shown(scheme: str) -> None:
    connection = odfpy.connect(f"{scheme}://me:secret@127.0.0.1:1")
    assert connection.place == f"{scheme}://127.0.0.1:1"
    with pytest.raises(TransferError) as caught:
        connection.sql("SELECT 1")
    assert "secret" not in f"{caught.value} {caught.value.hint} {connection}"


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_server_that_says_nothing_is_waited_for_as_long_as_one_likes(silent_port: int, scheme: str) -> None:
    with pytest.raises(QueryTimedOut):
        odfpy.connect(f"{scheme}://127.0.0.1:{silent_port}").sql("SELECT 1", timeout=0.2)


def test_a_flight_port_where_nobody_answers_is_given_up_soon(silent_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert flight._CONNECT_SECONDS == 5.0
    monkeypatch.setattr(flight, "_CONNECT_SECONDS", 0.2)
    silent = odfpy.connect(f"grpc://127.0.0.1:{silent_port}")
    for ask in (lambda: silent.sql("SELECT 1"), lambda: list(silent), lambda: silent.sql("SELECT 1", timeout=60)):
        with pytest.raises(TransferError, match=r"Cannot reach .*it did not respond for 0\.2 s"):
            ask()


def test_a_query_over_flight_that_takes_too_long_while_it_runs(urls: dict[str, str]) -> None:
    text = "SELECT count(*) FROM generate_series(1, 100000000000)"
    with pytest.raises(QueryTimedOut, match="exceeded its time limit"):
        odfpy.connect(urls["flight"]).sql(text, engine="datafusion", timeout=0.5)


def test_an_answer_that_is_none(static_page: str) -> None:
    with pytest.raises(NotAnAnswer, match="cannot be understood"):
        list(odfpy.connect(static_page))


def test_a_folder_without_a_workspace(tmp_path: Path) -> None:
    with pytest.raises(odfpy.OdfError, match="No workspace"):
        odfpy.connect(tmp_path)
    with pytest.raises(UsageError, match="token"):
        odfpy.connect(tmp_path, token="abc")


def test_a_token_that_is_none_is_refused_without_being_shown(urls: dict[str, str]) -> None:
    for name in ("rest", "flight"):
        with pytest.raises(odfpy.OdfError, match="does not allow that") as caught:
            odfpy.connect(urls[name], token="never-seen-before").sql("SELECT 1", engine="datafusion")
        assert "never-seen-before" not in f"{caught.value} {caught.value.hint}"
