"""The rows of current states, found from the version before, beside those of a query over everything."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.examples import examples

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.slices import slices_of
from odfpy.coordinator.workspace import Workspace
from odfpy.sharing.tables.live_rows import LiveRows

MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: states
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, ddlSchema: [op INT, key1 KIND, '`Key 2` STRING', n BIGINT, t TIMESTAMP]}
      merge: MERGE
    - {kind: SetVocab, eventTimeColumn: t}
"""
CHANGES = "{kind: ChangelogStream, primaryKey: [key1, Key 2]}"
UPSERTS = "{kind: UpsertStream, primaryKey: [key1, Key 2]}"
ROW = st.fixed_dictionaries(
    {
        "op": st.sampled_from([0, 0, 1, 2, 3]),
        "key1": st.integers(0, 2),
        "Key 2": st.sampled_from(["", "a", "NULL"]),
        "n": st.integers(0, 9),
    }
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def dataset_of(folder: Path, batches: list[list[dict[str, Any]]], merge: str, kind: str = "INT") -> Any:
    """A workspace with a dataset of some batches."""
    shutil.rmtree(folder, ignore_errors=True)
    workspace = Workspace.init(folder / "workspace")
    manifest = MANIFEST.replace("MERGE", merge).replace("KIND", kind)
    if "Append" in merge:
        manifest = manifest.replace("op INT, ", "")
    workspace.add(load_snapshots(manifest, "states.yaml"))
    for number, rows in enumerate(batches):
        path = folder / f"{number}.ndjson"
        lines = [json.dumps({**row, "t": f"2024-01-01T00:00:{number:02}Z"}) for row in rows]
        path.write_text("".join(f"{line}\n" for line in lines))
        list(workspace.ingest("states", [path], allow_retractions=True))
    return workspace


def live_rows(workspace: Workspace, asked: list[str] | None = None) -> tuple[LiveRows, int]:
    """The rows that count, and how many versions there are; `asked` is told the queries."""
    dataset = workspace.storage.get("states")
    slices = slices_of(dataset.chain.in_order())
    found = LiveRows(dataset, slices, workspace.queries.service)
    if asked is not None:
        plain = found._offsets
        found._offsets = lambda version, sql: asked.append(sql) or plain(version, sql)  # type: ignore[method-assign,func-returns-value]
    return found, len(slices)


@settings(max_examples=examples(8, 25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(ROW, min_size=1, max_size=6), min_size=1, max_size=4), st.sampled_from([CHANGES, UPSERTS]))
def test_one_step_after_the_other_is_the_whole(folder: Path, batches: list[list[dict[str, Any]]], merge: str) -> None:
    workspace = dataset_of(folder / "w", batches, merge)
    asked: list[str] = []
    stepwise, count = live_rows(workspace, asked)
    found = [stepwise.at(version) for version in range(1, count + 1)]
    if merge == UPSERTS:  # which promises one row a key; then only the first one reads everything
        assert sum("odf_as_at" in sql for sql in asked) == min(1, count)
    for version in range(count, 0, -1):
        shutil.rmtree(stepwise._folder)
        whole, _ = live_rows(workspace)
        assert np.array_equal(whole.at(version), found[version - 1])


ONE_BY_ONE = [[{"op": 0, "key1": 1, "Key 2": "a", "n": n}] for n in range(3)]


def test_without_a_plain_key_everything_is_read(folder: Path) -> None:
    workspace = dataset_of(folder / "w", ONE_BY_ONE, UPSERTS, "DOUBLE")
    asked: list[str] = []
    found, count = live_rows(workspace, asked)
    assert [list(found.at(version)).count(True) for version in range(1, count + 1)] == [1, 1, 1]
    assert all("odf_as_at" in sql for sql in asked)
    assert len(asked) == count


def test_without_a_key_nothing_is_read_of_appended_rows(folder: Path) -> None:
    workspace = dataset_of(folder / "w", ONE_BY_ONE, "{kind: Append}")
    asked: list[str] = []
    found, count = live_rows(workspace, asked)
    assert [found.at(version).tolist() for version in range(1, count + 1)] == [[True], 2 * [True], 3 * [True]]
    assert not asked


def test_without_a_key_a_retraction_is_asked_for(folder: Path) -> None:
    rows = [[{"op": op, "key1": 1, "Key 2": "a", "n": 1}] for op in (0, 1)]
    workspace = dataset_of(folder / "w", rows, "{kind: ChangelogStream, primaryKey: [n]}")
    asked: list[str] = []
    found, count = live_rows(workspace, asked)
    assert workspace.storage.get("states").state.primary_key is None
    assert [found.at(version).tolist() for version in range(1, count + 1)] == [[True], [True, False]]
    assert len(asked) == 1


def test_what_is_known_is_not_found_again(folder: Path) -> None:
    workspace = dataset_of(folder / "w", [[{"op": 0, "key1": 1, "Key 2": "a", "n": n}] for n in range(4)], UPSERTS)
    asked: list[str] = []
    found, _ = live_rows(workspace, asked)
    first = found.at(4)
    again, _ = live_rows(workspace, asked)
    assert np.array_equal(again.at(4), first)
    assert len(asked) == 1
    assert again.at(2).tolist() != again.at(3).tolist()
