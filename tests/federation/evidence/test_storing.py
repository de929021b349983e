"""Keeping answers: whole, verified, and with what the relays have signed; or nothing of them stays."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.federation.kept import rows_in
from support.federation.served import ServedWeb, credentials, served_web

from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import AlreadyExists, OdfError, UsageError
from odfpy.federation.authority import Issued
from odfpy.federation.errors import AnswerNotKept
from odfpy.federation.evidence.answer_datasets import AnswerDatasets
from odfpy.federation.evidence.recompute import counted
from odfpy.federation.evidence.rows import PartFiles, write_parts
from odfpy.federation.evidence.verifying import verify
from odfpy.federation.execution.options import QueryOptions
from odfpy.federation.relay.errors import IncompleteAnswer
from odfpy.federation.relay.requesters import Authorities
from odfpy.federation.relay.statements import RowsSigner

IDS = "SELECT id FROM item"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.init(tmp_path / "w")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def names(workspace: Workspace) -> list[str]:
    return [str(one.handle) for one in workspace.datasets.all()]


# --- What is kept ---


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT flag, count(*) AS n FROM item GROUP BY flag", [{"flag": "N", "n": 3}, {"flag": "R", "n": 2}]),
        ("SELECT a.id FROM item AS a JOIN item AS b ON a.id = b.id WHERE a.price > 15 AND b.flag = 'R'", [{"id": 2}]),
        ("SELECT id FROM item ORDER BY price DESC LIMIT 2", [{"id": 2}, {"id": 10}]),
        ("SELECT id FROM item WHERE id > 100", []),
        ("SELECT 1 + 1 AS two", [{"two": 2}]),
    ],
)
def test_answers_become_datasets(
    query: str, rows: list[Any], web: ServedWeb, ann: Issued, workspace: Workspace, trusted: Authorities
) -> None:
    assert web.asks(ann, "na").sql_into(query, workspace, "org.answer").holds
    found = rows_in(workspace, "org.answer").to_pylist()
    assert sorted(found, key=str) == sorted(rows, key=str)
    assert verify(workspace, "org.answer", trusted).holds
    report = list(workspace.verify(["org.answer"]))
    assert [one.ok for one in report] == [True]


def test_values_of_all_kinds(web: ServedWeb, ann: Issued, workspace: Workspace) -> None:
    query = """SELECT CAST(1.5 AS DECIMAL(10, 2)) AS d, TIMESTAMP '2020-01-01T00:00:00.123456789' AS t,
        CAST('NaN' AS DOUBLE) AS nan, CAST(NULL AS INT) AS none, 'a "quoted"' || chr(10) || '''text''' AS x,
        DATE '2020-02-29' AS day, -0.0 AS zero FROM item WHERE id = 1"""
    web.asks(ann, "na").sql_into(query, workspace, "answer")
    [row] = rows_in(workspace, "answer").to_pylist()
    assert str(row.pop("nan")) == "nan"
    assert row == {
        "d": Decimal("1.50"),
        "t": dt.datetime(2020, 1, 1, 0, 0, 0, 123_000, dt.timezone.utc),
        "none": None,
        "x": "a \"quoted\"\n'text'",
        "day": dt.date(2020, 2, 29),
        "zero": 0.0,
    }


def test_rows_of_parts_come_back_exactly(workspace: Workspace, tmp_path: Path) -> None:
    at = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.timezone.utc).replace(tzinfo=None)
    table = pa.table(
        {
            "offset": pa.array([1, None], pa.uint64()),
            "op": pa.array([float("nan"), -0.0]),
            "system_time": pa.array([at, None], pa.timestamp("ns")),
            "event_time": pa.array([at, None], pa.timestamp("us", "Europe/Berlin")),
            "seconds": pa.array([at.replace(microsecond=0), None], pa.timestamp("s")),
            'a "name"': pa.array(['"\n', None], pa.large_string()),
            "decimal": pa.array([Decimal("-1.50"), None], pa.decimal128(38, 2)),
            "large": pa.array([Decimal("9" * 60), None], pa.decimal256(70, 0)),
            "nothing": pa.nulls(2),
            "time": pa.array([dt.time(1, 2, 3, 4), None], pa.time64("us")),
            "short": pa.array([dt.time(1, 2, 3), None], pa.time32("s")),
            "lasts": pa.array([dt.timedelta(seconds=-1), None], pa.duration("ns")),
            "old day": pa.array([dt.date(1970, 1, 2), None], pa.date64()),
            "day": pa.array([dt.date(1, 1, 1), None], pa.date32()),
            "bytes": pa.array([b"\x00\xff", None], pa.large_binary()),
            "fixed": pa.array([b"ab", None], pa.binary(2)),
            "list": pa.array([[at, None], None], pa.list_(pa.timestamp("ns"))),
            "half": pa.array([1.5, None], pa.float32()).cast(pa.float16()),
            "yes": pa.array([True, None]),
        }
    )
    parts = []
    for number in range(3):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table.slice(0, number), path)  # one without rows
        parts.append((number, [path]))
    write_parts(tmp_path / "all.parquet", table.schema, parts)
    made = AnswerDatasets(workspace, "answer").make("parts", "parts", tmp_path / "all.parquet")
    found = PartFiles("f1", table.schema, range(3), tmp_path)
    with CancellationToken() as control:
        found.read(workspace, made, control)
    for number, path in enumerate(found.paths):
        assert found.sizes[number] == counted(table.slice(0, number).to_batches())
        back = pq.read_table(path)
        assert str(back.cast(table.schema).to_pylist()) == str(table.slice(0, number).to_pylist())


def test_a_copy_is_verified_without_any_relay(
    web: ServedWeb, ann: Issued, workspace: Workspace, trusted: Authorities, tmp_path: Path
) -> None:
    web.asks(ann, "na").sql_into(IDS, workspace, "answer")
    place = (tmp_path / "shelf").as_uri()
    for name in names(workspace):
        list(workspace.push([name], to=f"{place}/{name}"))
    other = Workspace.init(tmp_path / "other")
    list(other.pull([f"{place}/answer"], as_name="theirs"))
    [finding] = verify(other, "theirs", trusted).findings
    assert finding.startswith("parts of f1: they are not in this workspace: pull the dataset did:odf:")
    list(other.pull([f"{place}/answer.parts.1"], as_name="pieces"))
    assert verify(other, "theirs", trusted).holds


def test_what_was_asked_for_later_is_kept_when_it_is_fetched(
    web: ServedWeb, ann: Issued, workspace: Workspace, trusted: Authorities
) -> None:
    asked = web.asks(ann, "na")
    for signed in (False, True):
        query = asked.later.start(IDS, QueryOptions(signed=signed)).query
        with asked.later.fetch(query) as answer:
            if signed:
                assert asked.keep(answer, workspace, "answer").query == query
                continue
            with pytest.raises(UsageError, match="have not signed"):
                asked.keep(answer, workspace, "answer")
    assert verify(workspace, "answer", trusted).holds


def test_a_long_query(web: ServedWeb, ann: Issued, workspace: Workspace) -> None:
    query = f"SELECT id FROM item WHERE id IN ({', '.join(map(str, range(7_000)))})"
    assert len(web.asks(ann, "na").sql_into(query, workspace, "answer").signed) == 2


# --- What is not kept ---


@pytest.mark.parametrize("column", ["offset", "op", "system_time", "event_time"])
def test_columns_that_every_dataset_has_are_refused_before_anybody_is_asked(
    column: str, web: ServedWeb, ann: Issued, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = web.asks(ann, "na")
    monkeypatch.delattr(type(asked.asker), "ask")
    with pytest.raises(UsageError, match=f"called {column}") as refused:
        asked.sql_into(f'SELECT id AS "{column}" FROM item', workspace, "answer")
    assert "AS" in refused.value.hint
    with pytest.raises(UsageError, match="EXPLAIN"):
        asked.sql_into("EXPLAIN SELECT id FROM item", workspace, "answer")


def test_names_that_are_taken_are_refused_before_anybody_is_asked(
    web: ServedWeb, ann: Issued, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [1]}), file)
    AnswerDatasets(workspace, "x").make("Taken", "something", file)
    workspace.add(workspace.load([_manifest(tmp_path, "below.parts.1")]))
    asked = web.asks(ann, "na")
    monkeypatch.delattr(type(asked.asker), "ask")
    for name in ("taken", "below"):
        with pytest.raises(AlreadyExists):
            asked.sql_into(IDS, workspace, name)
    with pytest.raises(UsageError):
        asked.sql_into(IDS, workspace, "no name")
    assert names(workspace) == ["below.parts.1", "Taken"]


def test_parts_of_an_answer_that_has_another_name_now_stay(
    web: ServedWeb, ann: Issued, workspace: Workspace, trusted: Authorities, tmp_path: Path
) -> None:
    asked = web.asks(ann, "na")
    asked.sql_into(IDS, workspace, "answer")
    workspace.datasets.rename("answer", "renamed")
    other = Workspace.init(tmp_path / "other")
    place = (tmp_path / "shelf").as_uri()
    list(workspace.push(["answer.parts.1"], to=f"{place}/parts"))
    list(other.pull([f"{place}/parts"], as_name="answer.parts.1"))
    for one in (workspace, other):
        before = names(one)
        with pytest.raises(AlreadyExists, match=r"answer\.parts\.1"):
            asked.sql_into(IDS, one, "answer")
        assert names(one) == before
    assert verify(workspace, "renamed", trusted).holds


def _manifest(folder: Path, name: str) -> Path:
    path = folder / "manifest.yaml"
    path.write_text(f"kind: DatasetSnapshot\nversion: 1\ncontent: {{name: {name}, kind: Root, metadata: []}}\n")
    return path


@pytest.mark.parametrize("query", ["SELECT id, random() AS r FROM item", "SELECT id, now() AS t FROM item"])
def test_what_gives_other_rows_each_time_is_not_kept(
    query: str, web: ServedWeb, ann: Issued, workspace: Workspace
) -> None:
    with pytest.raises(AnswerNotKept, match="does not give the rows that were recorded"):
        web.asks(ann, "na").sql_into(query, workspace, "answer")
    assert names(workspace) == []


def test_who_is_missing_is_recorded_or_an_error(tmp_path: Path, workspace: Workspace) -> None:
    folder = tmp_path / "web"
    folder.mkdir()
    with served_web(folder) as made:
        made.relay("na", "price", "1,1,N\n")
        made.relay("gone", "price", "2,1,N\n")
        made.link("na", "gone", "{v}")
        made.relays["gone"].running.close()
        asked = made.asks(made.user("ann"), "na")
        with pytest.raises(IncompleteAnswer):
            asked.sql_into(IDS, workspace, "answer", QueryOptions(require_complete=True))
        assert names(workspace) == []
        kept = asked.sql_into(IDS, workspace, "answer")
        found = verify(workspace, "answer", Authorities(made.issued.facts.pem.encode()))
    assert [one.relay for one in found.missing] == [one.relay for one in kept.missing] == ["gone"]
    assert found.holds
    assert rows_in(workspace, "answer").to_pylist() == [{"id": 1}]


def test_a_relay_that_signs_for_other_rows_is_missing(
    web: ServedWeb, ann: Issued, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = RowsSigner.signed

    def lying(self: RowsSigner, ticket: Any, rows: int, digest: Multihash) -> str:
        return original(self, ticket, rows + (self._relay == "global"), digest)

    monkeypatch.setattr(RowsSigner, "signed", lying)
    asked = web.asks(ann, "na")
    with pytest.raises(IncompleteAnswer, match="global: global has signed other rows than"):
        asked.sql_into(IDS, workspace, "answer", QueryOptions(require_complete=True))
    found = asked.sql_into(IDS, workspace, "answer")
    assert [one.relay for one in found.missing] == ["global"]
    assert [one.relay for one in found.signed] == ["na"]
    assert rows_in(workspace, "answer")["id"].to_pylist() == [1, 2, 3]


# --- Whole or not at all ---

KILLED = """
import os, signal, sys
from odfpy.coordinator.workspace import Workspace
from odfpy.federation.evidence.answer_datasets import AnswerDatasets
from odfpy.federation.evidence import storing
from odfpy.web import connect

folder, location, how, certificate = sys.argv[1:]

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if how == "before rows":
    Workspace.ingest = killed
elif how == "before the answer":
    storing._Keeper._write_rest = killed
elif how == "before it is verified":
    storing.verify = lambda *_, **__: killed()
else:
    AnswerDatasets.finish = killed
with connect(location, f"{certificate}.pem", f"{certificate}.key", f"{certificate}.ca") as web:
    web.sql_into("SELECT id FROM item", Workspace.open(folder), "answer")
"""


def test_what_a_killed_process_has_left_is_removed_by_the_next_one(
    web: ServedWeb, ann: Issued, workspace: Workspace, tmp_path: Path
) -> None:
    stem = tmp_path / "ann"
    own = credentials(ann)
    for suffix, data in {"pem": own.certificates, "key": own.key, "ca": web.issued.facts.pem.encode()}.items():
        Path(f"{stem}.{suffix}").write_bytes(data)
    left = {
        "before rows": ["answer.parts.1"],
        "before the answer": ["answer.parts.1"],
        "before it is verified": ["answer.parts.1", "answer.parts.answer"],
        "before it has its name": ["answer.parts.1", "answer.parts.answer"],
    }
    for how, there in left.items():
        program = [sys.executable, "-c", KILLED, str(workspace.root), web.relays["na"].server.location, how, str(stem)]
        assert subprocess.run(program, check=False, env=os.environ).returncode == -signal.SIGKILL
        assert names(workspace) == there
    assert web.asks(ann, "na").sql_into(IDS, workspace, "answer").holds
    assert names(workspace) == ["answer", "answer.parts.1"]


@pytest.mark.parametrize("step", ["make", "finish"])
def test_nothing_is_left_when_something_fails(
    step: str, web: ServedWeb, ann: Issued, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(AnswerDatasets, step)

    def failing(self: AnswerDatasets, *given: Any) -> str:
        if step == "make" and given[0] == "answer.parts.1":
            found: str = original(self, *given)
            return found
        raise OdfError("The disk is full")

    monkeypatch.setattr(AnswerDatasets, step, failing)
    with pytest.raises(OdfError, match="disk is full"):
        web.asks(ann, "na").sql_into(IDS, workspace, "answer")
    assert names(workspace) == []


def test_an_answer_that_is_at_hand_is_kept_beside_its_rows(web: ServedWeb, ann: Issued, workspace: Workspace) -> None:
    asked = web.asks(ann, "na")
    with asked.sql(IDS, signed=True) as answer:
        taken = answer.to_arrow()
        asked.keep(answer, workspace, "answer")
    assert rows_in(workspace, "answer").equals(taken)
    with asked.sql(IDS) as answer, pytest.raises(UsageError, match="have not signed"):
        asked.keep(answer, workspace, "other")
    with asked.sql(f"EXPLAIN {IDS}", signed=True) as answer, pytest.raises(UsageError, match="EXPLAIN"):
        asked.keep(answer, workspace, "other")
    record = json.loads(workspace.datasets.state("answer").attachments.attachments.items[0].content)["record"]
    assert record["plan"]["sql"] == IDS
