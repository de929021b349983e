"""Sources behind servers: PostgreSQL, Trino (a stand-in that speaks its protocol)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from support.federation.stored import duckdb_file, in_postgres
from support.servers.certificates import self_signed
from support.servers.postgres import postgres
from support.servers.trino import TrinoStandIn, trino_stand_in

from odfpy.federation.errors import SourceFailed
from odfpy.federation.model.connections import PostgresConnection, TrinoConnection
from odfpy.federation.sources.contract import Source
from odfpy.federation.sources.postgres import PostgresSource
from odfpy.federation.sources.trino import TrinoSource
from odfpy.testing.sources import SECRET, SourceContract

ONE = pa.schema([("x", pa.int64())])


@pytest.fixture(scope="module")
def socket() -> Iterator[str]:
    """The folder of the socket of a PostgreSQL server with the tables."""
    with postgres() as url:
        folder = str(sa.make_url(url).query["host"])
        with psycopg.connect(host=folder, user="odf", dbname="postgres") as connection:
            in_postgres(connection)
            connection.execute("CREATE SEQUENCE counter")
        yield folder


class TestPostgres(SourceContract):
    @pytest.fixture
    def source(self, socket: str) -> Source:
        return opened(socket)

    @pytest.fixture
    def broken(self, tmp_path: Path) -> Source:
        return opened(str(tmp_path), password_env="PASSWORD")

    def test_nothing_can_be_changed(self, source: Source) -> None:
        with pytest.raises(SourceFailed) as caught:
            source.read("WITH d AS (DELETE FROM typed RETURNING 1 AS x) SELECT x FROM d", ONE).read_all()
        assert caught.value.detail
        with pytest.raises(SourceFailed):
            source.read("SELECT nextval('counter') AS x", ONE).read_all()

    def test_exact_numbers_without_a_limit_and_other_types(self, source: Source) -> None:
        sql = (
            "SELECT 1.25::numeric AS x, '{\"a\": [1]}'::jsonb AS j, gen_random_uuid() AS u, now() AS t,"
            " '\\x00ff'::bytea AS b, '12:30'::time AS c"
        )
        kinds = {"x": pa.decimal128(10, 3), "j": pa.string(), "u": pa.string(), "t": pa.timestamp("us", "UTC")}
        wanted = pa.schema({**kinds, "b": pa.binary(), "c": pa.time64("us")}.items())
        (row,) = source.read(sql, wanted).read_all().to_pylist()
        assert (str(row["x"]), row["j"], row["b"], len(row["u"])) == ("1.250", '{"a": [1]}', b"\x00\xff", 36)

    def test_a_type_that_is_not_read_is_named(self, source: Source) -> None:
        with pytest.raises(SourceFailed) as caught:
            source.schema("SELECT point(1, 2) AS p")
        assert "column 'p' has an unsupported type: point" in caught.value.detail


def opened(folder: str, **more: object) -> Source:
    tree = {"kind": "postgres", "host": folder, "database": "postgres", "user": "odf", "sslmode": "disable", **more}
    return PostgresSource("pg", PostgresConnection.model_validate(tree), {"PASSWORD": SECRET})


def test_a_password_that_is_not_set() -> None:
    tree = {"kind": "postgres", "host": "h", "database": "d", "user": "u", "password_env": "NOT_SET_ANYWHERE"}
    with pytest.raises(SourceFailed, match="its password is not set") as caught:
        PostgresSource("pg", PostgresConnection.model_validate(tree), {})
    assert "NOT_SET_ANYWHERE" in caught.value.detail


@pytest.fixture(scope="module")
def trino(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrinoStandIn]:
    with trino_stand_in(duckdb_file(tmp_path_factory.mktemp("trino"))) as server:
        yield server


class TestTrino(SourceContract):
    @pytest.fixture
    def source(self, trino: TrinoStandIn) -> Source:
        return at(trino.server_port, secure=False)

    @pytest.fixture
    def broken(self) -> Source:
        return at(1, password_env="PASSWORD")

    def test_a_query_that_is_given_up_is_cancelled_there(self, source: Source, trino: TrinoStandIn) -> None:
        before = trino.cancelled
        reader = source.read(self.endless(), pa.schema([("id", pa.int64())]))
        reader.read_next_batch()
        del reader
        assert trino.cancelled > before


def at(port: int, **more: object) -> Source:
    tree = {"kind": "trino", "host": "127.0.0.1", "port": port, "user": "ann", **more}
    return TrinoSource("trino", TrinoConnection.model_validate(tree), {"PASSWORD": SECRET})


def test_trino_with_a_password_over_tls(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    database = duckdb_file(tmp_path)
    query = ('SELECT count(*) AS "x" FROM "typed"', ONE)
    with trino_stand_in(database, password=SECRET, tls=(certificate, key)) as server:
        known = at(server.server_port, password_env="PASSWORD", ca_file=str(certificate))
        assert known.read(*query).read_all().to_pylist() == [{"x": 3}]
    with trino_stand_in(database, password="another", tls=(certificate, key)) as server:
        stranger = at(server.server_port, password_env="PASSWORD", ca_file=str(certificate))
        unsure = at(server.server_port, password_env="PASSWORD")
        for one in (stranger, unsure):
            with pytest.raises(SourceFailed) as caught:
                one.read(*query)
            assert SECRET not in f"{caught.value} {caught.value.detail}"
