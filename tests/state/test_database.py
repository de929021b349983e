from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from odfpy.errors import IngestError, IntegrityError, OdfError
from odfpy.state.database import SharedDatabase, database, literal, quoted


def test_times_are_in_utc() -> None:
    with database() as db:
        (zone,) = db.execute("SELECT current_setting('TimeZone')").fetchall()[0]
    assert zone == "UTC"


def test_variables_of_python_are_no_tables() -> None:
    table = pa.table({"a": [1]})
    with pytest.raises(IngestError, match="table"), database() as db:
        db.sql("SELECT * FROM table").to_arrow_table()
    assert table.num_rows == 1


def test_what_fails_inside_is_one_of_our_errors_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(OdfError) as error, database() as db:
        db.sql("SELECT CAST('x' AS INTEGER)").to_arrow_table()
    assert "\n" not in error.value.message
    with pytest.raises(IngestError, match="nowhere"), database() as db:
        db.sql(f"SELECT * FROM read_parquet({literal(str(tmp_path / 'nowhere'))})").to_arrow_table()


@pytest.mark.parametrize("text", ["KeyboardInterrupt", "Query interrupted"])
def test_a_value_that_reads_like_an_interruption_is_none(text: str) -> None:
    with pytest.raises(IngestError, match=text), database() as db:
        db.sql(f"SELECT CAST({literal(text)} AS INTEGER)").to_arrow_table()


def test_a_better_error_wins() -> None:
    def diagnose() -> None:
        raise IntegrityError("the cause")

    with pytest.raises(IntegrityError, match="the cause"), database(diagnose=diagnose) as db:
        db.execute("SELECT nonsense")


def test_the_next_job_finds_it_open_and_empty(tmp_path: Path) -> None:
    opened = []
    for name in ("first", "second"):
        with SharedDatabase(scratch=tmp_path / name) as shared:
            with shared.session() as db:
                db.from_arrow(pa.table({"a": [1]})).create_view('a "view"')
                db.register("registered", pa.table({"a": [1]}))
                db.execute("CREATE TABLE made AS SELECT 1 AS a")
            with shared.session() as db:
                assert db.execute('SELECT count(*) FROM made, "a ""view"""').fetchall() == [(1,)]
                assert db.execute("SELECT current_setting('temp_directory')").fetchall() == [(str(tmp_path / name),)]
                with pytest.raises(duckdb.CatalogException):
                    db.execute("FROM registered")
            opened.append(shared._instance)
    assert opened[0] is opened[1]


def test_a_job_that_fails_leaves_its_database_to_nobody() -> None:
    with SharedDatabase() as shared:
        with pytest.raises(IngestError), shared.session() as db:
            db.execute("SELECT nonsense")
        failed = shared._instance
    with SharedDatabase() as shared, shared.session():
        assert shared._instance is not failed


def test_two_jobs_at_once_have_two() -> None:
    with SharedDatabase() as first, SharedDatabase() as second, first.session() as one, second.session() as other:
        one.execute("CREATE TABLE made AS SELECT 1 AS a")
        other.execute("CREATE TABLE made AS SELECT 2 AS a")
        assert one.execute("FROM made").fetchall() == [(1,)]


def test_nothing_is_left_in_the_scratch_folder(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    with database(scratch=scratch, threads=1) as db:
        db.execute("SET memory_limit = '60MB'")
        count = db.execute(
            "SELECT COUNT(*) FROM (SELECT DISTINCT hash(range) AS h, range AS r FROM range(4000000))"
        ).fetchall()
    assert count == [(4_000_000,)]
    assert not scratch.exists()


@pytest.mark.parametrize("name", ["plain", 'with "quotes"', "it's", "", "sel;ect --"])
def test_names_and_texts_are_quoted(name: str) -> None:
    with database() as db:
        rows = db.sql(f"SELECT {literal(name)} AS {quoted(name or 'empty')}").to_arrow_table().to_pylist()
    assert rows == [{name or "empty": name}]


def test_a_kept_database_keeps_nothing_but_itself() -> None:
    with database() as db:
        assert db.execute("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
        assert db.from_arrow(pa.table({"a": [1, 2]})).sum("a").fetchall() == [(3,)]
    with pytest.raises(IngestError), database() as db:
        db.execute("SELECT nonsense")
    with database() as db:
        assert db.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchall() == [(0,)]


def test_the_sessions_of_a_shared_database_open_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[duckdb.DuckDBPyConnection] = []
    connect = duckdb.connect

    def counted(**options: Any) -> duckdb.DuckDBPyConnection:
        opened.append(connect(**options))
        return opened[-1]

    monkeypatch.setattr(duckdb, "connect", counted)
    monkeypatch.setattr("odfpy.state.database._KEPT", {})
    with SharedDatabase(threads=2, scratch=tmp_path / "scratch") as shared:
        assert opened == []
        for _ in range(2):
            with shared.session() as db:
                db.register("new", pa.table({"a": [1, 2]}))
                assert db.execute("SELECT current_setting('TimeZone'), sum(a) FROM new").fetchall() == [("UTC", 3)]
            with pytest.raises(IngestError, match="nonsense"), shared.session() as db:
                db.execute("SELECT nonsense")
    (instance,) = opened
    with pytest.raises(duckdb.Error):
        instance.execute("SELECT 1")


def test_what_is_too_much_for_its_memory_is_put_aside(tmp_path: Path) -> None:
    with database(memory="24MB", scratch=tmp_path / "scratch") as db:
        sorted_hashes = (
            "SELECT h, LAG(h) OVER (ORDER BY h) AS before FROM (SELECT hash(range) AS h FROM range(1000000))"
        )
        found = db.execute(f"SELECT COUNT(*) FROM ({sorted_hashes}) WHERE h > before").fetchall()
    assert found == [(999_999,)]
    assert not (tmp_path / "scratch").exists()
