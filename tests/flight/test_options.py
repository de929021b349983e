"""Options of Spark as a server and a request, named as Presto names them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.servers.certificates import self_signed
from support.servers.plain_flight import Flight, PlainServer

from odfpy.errors import InvalidValue, OdfError, UsageError
from odfpy.flight import (
    Bearer,
    Commands,
    Filter,
    FlightSql,
    JsonCommands,
    Limits,
    OdfCommands,
    PathCommands,
    PlainCommands,
    Request,
)
from odfpy.flight.options import source_of

HERE = {"arrow-flight.server": "grpc://127.0.0.1:50050", "table": "t"}


class Mine(Commands):
    """The words of somebody else's server."""

    def command(self, request: Request) -> bytes:
        return b""


def test_a_host_and_a_port_or_a_url():
    parts = {"arrow-flight.server": "example.org", "arrow-flight.server.port": "50050", "table": "t"}
    assert source_of(parts).service.location == "grpc://example.org:50050"
    assert (
        source_of({**parts, "arrow-flight.server-ssl-enabled": "TRUE"}).service.location
        == "grpc+tls://example.org:50050"
    )
    assert source_of(HERE).service.location == "grpc://127.0.0.1:50050"


def test_names_are_read_in_any_case():
    assert source_of({"Arrow-Flight.Server": "grpc://h:1", "TABLE": "t"}).request == Request("t")


def test_a_request():
    said = {"schema": "s", "catalog": "c", "columns": "a, b", "filters": '[["a", ">", 1]]', "limit": "7"}
    expected = Request("t", "s", "c", None, ("a", "b"), (Filter("a", ">", 1),), 7)
    assert source_of({**HERE, **said}).request == expected
    assert source_of({**HERE, "columns": '["a,b"]'}).request.columns == ("a,b",)
    server = {"arrow-flight.server": "grpc://h:1"}
    assert source_of({**server, "query": "SELECT 1"}).request == Request(query="SELECT 1")
    assert source_of({**server, "path": "orders"}).request == Request("orders"), "what load(...) is given"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, FlightSql()),
        ({"arrow-flight.protocol": "flight-sql", "arrow-flight.identifier-quote": "`"}, FlightSql("`")),
        ({"arrow-flight.protocol": "odf"}, OdfCommands()),
        ({"arrow-flight.protocol": "odf", "odf.state": "current"}, OdfCommands(current=True)),
        (
            {"arrow-flight.protocol": "odf", "odf.as-at": "v1", "odf.as-of": "2024"},
            OdfCommands(as_at="v1", as_of="2024"),
        ),
    ],
)
def test_protocols_of_sql(options: dict[str, str], expected: Commands):
    assert source_of({**HERE, **options}).service.commands == expected


@pytest.mark.parametrize(
    ("name", "kind"),
    [("path", PathCommands), ("plain", PlainCommands), ("json", JsonCommands), (f"{__name__}:Mine", Mine)],
)
def test_other_protocols(name: str, kind: type[Commands]):
    assert type(source_of({**HERE, "arrow-flight.protocol": name}).service.commands) is kind


def test_credentials_headers_and_limits():
    said = {
        "arrow-flight.authenticator.name": "bearer",
        "flight.auth.token": "t",
        "flight.credential.user": "ann",
        "flight.credential.password": "p",
        "arrow-flight.header.tenant": "one",
        "arrow-flight.patience": "2.5",
        "arrow-flight.call-timeout": "3",
        "arrow-flight.rounds": "4",
        "arrow-flight.held-bytes": "5",
    }
    service = source_of({**HERE, **said}).service
    assert service.authenticator == Bearer("t")
    assert service.credentials == {"user": "ann", "password": "p"}
    assert service.headers == (("tenant", "one"),)
    assert service.limits == Limits(call=3, patience=2.5, rounds=4, held_bytes=5)


def test_certificates_are_read_where_the_options_are(tmp_path: Path):
    certificate, key = self_signed(tmp_path)
    said = {
        "arrow-flight.server-ssl-certificate": str(certificate),
        "arrow-flight.client-ssl-certificate": str(certificate),
        "arrow-flight.client-ssl-key": str(key),
        "arrow-flight.server.verify": "false",
        "arrow-flight.server-host-name": "h",
    }
    tls = source_of({**HERE, **said}).service.tls
    assert (tls.roots, tls.key) == (certificate.read_bytes(), key.read_bytes())
    assert (tls.verify, tls.host_name) == (False, "h")


def test_the_column_of_a_stream():
    assert source_of(HERE).stream_column is None
    assert source_of({**HERE, "arrow-flight.stream-column": "id"}).stream_column == "id"
    assert source_of({**HERE, "arrow-flight.protocol": "odf"}).stream_column == "offset"


def test_names_of_columns_in_another_case(server: PlainServer):
    server.flights["t"] = Flight([pa.table({"Id": [1], "name": ["n"], "NAME": ["N"]})])
    said = {
        "arrow-flight.server": server.url,
        "arrow-flight.protocol": "json",
        "table": "t",
        "columns": "ID,NAME",
        "filters": '[["id", "=", 1]]',
    }
    assert source_of(said).request.columns == ("ID", "NAME")
    request = source_of({**said, "case-sensitive-name-matching": "false"}).request
    assert request.columns == ("Id", "NAME")
    assert request.filters == (Filter("Id", "=", 1),)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"arrow-flight.server": ""}, UsageError, "The option arrow-flight.server is missing"),
        ({"arrow-flight.server": "h"}, UsageError, "The option arrow-flight.server.port is missing"),
        ({"arrow-flight.sever": "h"}, UsageError, "There is no option 'arrow-flight.sever'"),
        ({"arrow-flight.protocol": "sql"}, UsageError, "There is no protocol 'sql'"),
        ({"arrow-flight.protocol": "odf", "odf.state": "old"}, UsageError, "There is no state 'old'"),
        ({"arrow-flight.server.verify": "no"}, InvalidValue, "arrow-flight.server.verify is 'no'"),
        ({"arrow-flight.rounds": "x"}, InvalidValue, "arrow-flight.rounds is 'x', not a number"),
        ({"limit": "x"}, InvalidValue, "limit is 'x', not a number"),
        ({"columns": "[a"}, InvalidValue, "The option columns is not a list"),
        ({"filters": "a > 1"}, InvalidValue, "The filters are not JSON"),
        ({"query": "q"}, UsageError, "either a table or a query"),
    ],
)
def test_options_that_are_wrong_are_named(options: dict[str, str], kind: type[OdfError], message: str):
    with pytest.raises(kind, match=message):
        source_of({**HERE, **options})


def test_neither_table_nor_query():
    with pytest.raises(UsageError, match="neither a table nor a query"):
        source_of({"arrow-flight.server": "grpc://h:1"})
