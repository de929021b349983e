"""A ledger tells of keys that it knows with different values, without reading its history."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.chains.workspaces import feed, root, rows, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.data.data_warning import DataWarning, WarningKind
from odfpy.state.database import database
from odfpy.state.value_fingerprints import value_fingerprints

LEDGER = "{kind: Ledger, primaryKey: [id]}"


@pytest.fixture
def ledger(tmp_path: Path) -> Workspace:
    workspace = workspace_with(tmp_path, root(merge=LEDGER))
    feed(workspace, "root", "1 a", "2 b", "3 c")
    return workspace


def otherwise(result: PullResult) -> list[DataWarning]:
    return [warning for warning in result.warnings if warning.kind is WarningKind.KNOWN_OTHERWISE]


def test_known_rows_need_no_word(ledger: Workspace) -> None:
    assert feed(ledger, "root", "1 a", "3 c", "4 d").warnings == ()


def test_keys_with_other_values_are_counted_and_named(ledger: Workspace) -> None:
    result = feed(ledger, "root", "4 d", "3 C", "1 a", "2 B")
    assert otherwise(result) == [
        DataWarning(
            WarningKind.KNOWN_OTHERWISE,
            "2 keys are known with different values, which a ledger leaves as they are (-v lists them, after a pull with"
            " --force); Snapshot or UpsertStream would record corrections",
            2,
            ("id = 3", "id = 2"),
        )
    ]
    assert rows(ledger, "root") == ["+A 1 a", "+A 2 b", "+A 3 c", "+A 4 d"]


def test_they_are_told_also_if_nothing_is_new(ledger: Workspace) -> None:
    result = feed(ledger, "root", "1 A")
    assert result.outcome is PullOutcome.UP_TO_DATE
    assert otherwise(result)[0].message.startswith("1 key is known with different values")
    assert "(-v lists it, after a pull with --force)" in otherwise(result)[0].message


def test_a_null_is_another_value(ledger: Workspace) -> None:
    assert otherwise(feed(ledger, "root", "1"))[0].count == 1


def test_another_event_time_is_none(ledger: Workspace) -> None:
    assert feed(ledger, "root", "1 a", day=7).warnings == ()


def test_a_key_that_came_twice_is_known_as_both(ledger: Workspace) -> None:
    feed(ledger, "root", "5 x", "5 y")
    assert otherwise(feed(ledger, "root", "5 x", "5 y")) == []
    assert otherwise(feed(ledger, "root", "5 z", "5 z"))[0].count == 1


def test_the_index_may_be_made_again_and_grow(ledger: Workspace) -> None:
    for number in range(4, 9):
        feed(ledger, "root", f"{number} n")
    (index,) = ledger.storage.get("root").cache.glob("keys/*/index")
    assert otherwise(feed(ledger, "root", "4 N"))[0].examples == ("id = 4",)
    index.unlink()
    assert otherwise(feed(ledger, "root", "4 N", "8 N", "1 a"))[0].examples == ("id = 4", "id = 8")


def test_a_new_column_is_a_new_value_only_where_it_has_one(ledger: Workspace) -> None:
    grown = root(merge=LEDGER) + "    - {kind: SetInfo, description: grown}\n"
    grown = grown.replace(
        "{kind: Option, inner: String}}\n",
        "{kind: Option, inner: String}}\n            - {name: more, type: {kind: Option, inner: Int64}}\n",
    )
    ledger.add(load_snapshots(grown, "manifest"), replace=True)
    file = ledger.root / "rows"
    file.write_text('{"event_time":"2024-01-01","id":9,"name":"i"}\n{"event_time":"2024-01-01","id":2,"name":"b"}\n')
    (result,) = ledger.ingest("root", [file])
    assert otherwise(result) == []
    file.write_text('{"event_time":"2024-01-01","id":2,"name":"b","more":1}\n')
    (result,) = ledger.ingest("root", [file])
    assert otherwise(result)[0].examples == ("id = 2",)


def fingerprints(**columns: pa.Array) -> list[int]:
    with database() as db:
        found: list[int] = value_fingerprints(db, pa.table(columns)).to_pylist()
    return found


def test_fingerprints_tell_values_apart_as_merges_do() -> None:
    nan = float("nan")
    same = fingerprints(x=pa.array([0.0, -0.0]), y=pa.array([[nan, None], [nan, None]]))
    assert same[0] == same[1]
    assert len(set(fingerprints(x=pa.array([0.0, 1.0, nan, None])))) == 4
    assert len(set(fingerprints(x=pa.array(["a", "b", None]), y=pa.array(["b", "a", "a"])))) == 3
    assert fingerprints(a=pa.array([1]), b=pa.array([2])) == fingerprints(b=pa.array([2]), a=pa.array([1]))
    assert fingerprints(a=pa.array([1]), b=pa.array([None], pa.string())) == fingerprints(a=pa.array([1]))
    assert fingerprints(a=pa.array([1])) != fingerprints(b=pa.array([1]))
    halves = pa.array([1, 2]).cast(pa.float16())
    wide = pa.array([1, 1]).cast(pa.decimal256(60, 2))
    first, second = fingerprints(halves=halves, wide=wide)
    assert first != second
