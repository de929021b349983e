"""Sources over Flight SQL: a small server of pyarrow's, and odfpy's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.federation.stored import duckdb_file
from support.servers.flight import OPEN, serving_flight, small_workspace
from support.servers.flight_sql import flight_sql_stand_in

from odfpy.federation.authority import Authority
from odfpy.federation.errors import SourceFailed
from odfpy.federation.model.connections import FlightConnection
from odfpy.federation.sources.contract import Source
from odfpy.federation.sources.flight import FlightSource
from odfpy.testing.sources import SECRET, SourceContract

COUNT = ('SELECT count(*) AS "x" FROM "typed"', pa.schema([("x", pa.int64())]))


def at(url: str, **more: object) -> Source:
    connection = FlightConnection.model_validate({"kind": "flight", "url": url, **more})
    return FlightSource("flights", connection, {"PASSWORD": SECRET})


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return duckdb_file(tmp_path_factory.mktemp("flight"))


@pytest.fixture(scope="module")
def url(database: Path) -> Iterator[str]:
    with flight_sql_stand_in(database) as found:
        yield found


class TestFlight(SourceContract):
    @pytest.fixture
    def source(self, url: str) -> Source:
        return at(url)

    @pytest.fixture
    def broken(self) -> Source:
        return at("grpc://127.0.0.1:1", user="ann", password_env="PASSWORD")


def test_a_name_and_a_password(database: Path) -> None:
    with flight_sql_stand_in(database, password=SECRET) as url:
        assert at(url, user="ann", password_env="PASSWORD").read(*COUNT).read_all().to_pylist() == [{"x": 3}]
        for stranger in (at(url), at(url, user="bob", password_env="PASSWORD"), at(url, token_env="PASSWORD")):
            with pytest.raises(SourceFailed) as caught:
                stranger.read(*COUNT).read_all()
            assert SECRET not in f"{caught.value} {caught.value.detail}"


def test_certificates_of_both_sides(database: Path, tmp_path: Path) -> None:
    authority, _ = Authority.new("flights")
    (tmp_path / "ca.pem").write_text(authority.facts.pem)
    tls, other = (tmp_path / "server.pem", tmp_path / "server.key"), Authority.new("others")[0]
    authority.issue("server", 1, hosts=["127.0.0.1"]).write(*tls)
    authority.issue("relay", 1).write(tmp_path / "relay.pem", tmp_path / "relay.key")
    other.issue("relay", 1).write(tmp_path / "other.pem", tmp_path / "other.key")
    ca = {"ca_file": str(tmp_path / "ca.pem")}
    known = {**ca, "certificate_file": str(tmp_path / "relay.pem"), "key_file": str(tmp_path / "relay.key")}
    unknown = {**ca, "certificate_file": str(tmp_path / "other.pem"), "key_file": str(tmp_path / "other.key")}
    with flight_sql_stand_in(database, tls=tls, clients=tmp_path / "ca.pem") as url:
        assert at(url, **known).read(*COUNT).read_all().to_pylist() == [{"x": 3}]
        for stranger in (ca, unknown, {key: value for key, value in known.items() if key != "ca_file"}):
            with pytest.raises(SourceFailed):
                at(url, **stranger).read(*COUNT).read_all()


def test_the_server_of_odfpy(tmp_path: Path) -> None:
    with serving_flight(small_workspace(tmp_path)) as served:
        source = at(served.url, sql="postgres", headers={"odf-dialect": "datafusion"})
        sql = f'SELECT max("offset") AS "last" FROM "{OPEN}"'
        assert source.read(sql, pa.schema([("last", pa.int64())])).read_all().to_pylist() == [{"last": 5}]
        assert "offset" in source.schema(f'SELECT * FROM "{OPEN}"').names
        with pytest.raises(SourceFailed):
            source.read('SELECT 1 AS "x" FROM "alice/com.example.secret"', pa.schema([("x", pa.int64())])).read_all()
