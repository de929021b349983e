"""Answers of `odf web sql` that are far larger than what was asked of the relays: joins without a condition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.federation.served import ServedWeb, served_web
from support.processes.terminal import PATIENCE, start

from odfpy.errors import QueryEnded, QueryTimedOut
from odfpy.federation.authority import Issued

ROWS = 1000
BILLION = "FROM item AS a, item AS b, item AS c"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web")


@pytest.fixture(scope="module")
def web(folder: Path) -> Iterator[ServedWeb]:
    with served_web(folder) as made:
        made.relay("na", "price", "".join(f"{at},1.5,N\n" for at in range(ROWS)))
        yield made


@pytest.fixture(scope="module")
def ann(web: ServedWeb, folder: Path) -> Issued:
    issued = web.known_user("ann", ["na"])
    issued.write(folder / "ann.pem", folder / "ann.key")
    return issued


@pytest.fixture
def keys(web: ServedWeb, ann: Issued, folder: Path) -> tuple[str, ...]:
    del ann
    files = ("--cert", str(folder / "ann.pem"), "--key", str(folder / "ann.key"), "--ca", str(folder / "ca.pem"))
    return ("--relay", web.relays["na"].server.location, *files)


@pytest.mark.parametrize(("form", "first"), [("csv", "x,y,z\n"), ("ndjson", '{"x":'), ("json", "[\n")])
def test_a_billion_rows_are_printed_as_they_come(keys: tuple[str, ...], folder: Path, form: str, first: str) -> None:
    """Whoever has read enough of them closes the pipe, long before there are all."""
    query = f"SELECT a.id AS x, b.id AS y, c.id AS z {BILLION}"
    process = start("web", "sql", query, *keys, "-o", form, "--timeout", "280", cwd=folder)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(20_000)]
    assert lines[0].startswith(first)
    assert all(lines)
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (141, "")


@pytest.mark.parametrize("form", ["table", "yaml"])
def test_a_billion_rows_are_no_table(keys: tuple[str, ...], folder: Path, form: str) -> None:
    query = f"SELECT a.id AS x, b.id AS y, c.id AS z {BILLION}"
    process = start("web", "sql", query, *keys, "-o", form, "--timeout", "280", cwd=folder)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "")
    assert err.startswith("error: The answer has more than 32 MiB, too much for a table (E704)\nhint: `-o csv`")


def test_answers_have_no_end_only_as_long_as_they_have_time_and_memory(web: ServedWeb, ann: Issued) -> None:
    asked = web.asks(ann, "na")
    with (
        pytest.raises(QueryTimedOut),
        asked.sql(
            f"SELECT count(*) AS n {BILLION} WHERE CAST(a.id * b.id + c.id AS VARCHAR) LIKE '%7%3%1'", seconds=2
        ) as answer,
    ):
        answer.to_arrow()
    with (
        pytest.raises(QueryEnded, match=r"more than 0\.25 GiB"),
        asked.sql(f"SELECT a.id {BILLION} ORDER BY a.id * b.id + c.id", memory=256 << 20, seconds=280) as answer,
    ):
        answer.to_arrow()
    with asked.sql("SELECT count(*) AS n FROM item") as answer:
        assert answer.to_arrow()["n"].to_pylist() == [ROWS]
