"""Current states with deletion vectors, for clients of the delta format that know them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from serving.sharing.conftest import Shared
from support.processes.pandas_client import PandasClient
from support.servers.serving import serving

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.sharing.app import PREFIX
from odfpy.sharing.model import SharedView
from odfpy.sharing.names import SharePath
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.tables.opener import shared_dataset

STATE = "shares/fx/schemas/main/tables/rates"
KNOWS = {"delta_sharing_capabilities": "responseformat=delta;readerfeatures=deletionvectors"}
MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: state
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Parquet}
      merge: {kind: UpsertStream, primaryKey: [id]}
    - {kind: SetVocab, eventTimeColumn: t}
"""
ROWS = 200_000
CHANGES = (
    [5, 70_000, 199_999],  # few
    [*range(66_000, 76_000)],  # most of what a container lists, and more
    [*range(3, ROWS, 50)],  # all over
)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """A state of 200 000 keys, of which some change three times."""
    folder = tmp_path_factory.mktemp("state")
    workspace = Workspace.init(folder / "workspace")
    workspace.add(load_snapshots(MANIFEST, "state.yaml"))
    for number, ids in enumerate([range(ROWS), *CHANGES]):
        keys = np.array(ids)
        times = pa.array(np.full(len(keys), number), pa.int64()).cast(pa.timestamp("ms", "UTC"))
        table = pa.table({"id": keys, "n": np.full(len(keys), number), "t": times})
        pq.write_table(table, folder / f"{number}.parquet")
        list(workspace.ingest("state", [folder / f"{number}.parquet"]))
    sharing = Sharing.of_workspace(workspace.storage.odf, None)
    sharing.shares.add_share("fx")
    dataset = workspace.storage.get("state")
    sharing.shares.add_table(SharePath("fx", "main", "rates"), shared_dataset(dataset, SharedView.CURRENT, None))
    with serving(workspace) as server:
        (mounted,) = (one.app for one in server.app.routes if getattr(one, "path", "") == PREFIX)
        found = Shared(workspace, sharing, f"{server.url}{PREFIX}", {}, mounted)
        found.recipient("all")
        found.recipient("some", rows="id < 100")
        yield found


def model(version: int) -> dict[int, int]:
    found = dict.fromkeys(range(ROWS), 0)
    for number, ids in enumerate(CHANGES[: version - 1], 1):
        found |= dict.fromkeys(ids, number)
    return found


def vectors(lines: list[dict[str, Any]]) -> list[Any]:
    actions = [line["file"]["deltaSingleAction"]["add"] for line in lines[2:]]
    return [action.get("deletionVector") for action in actions]


def test_a_file_is_not_made_again_for_few_rows(state: Shared) -> None:
    for number in (1, 2):
        answer = state.ask(f"{STATE}/query", body={"version": number}, **KNOWS)
    made = (state.workspace.storage.cache / "shared-files").rglob("*.parquet")
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in made) == len(CHANGES[0])  # not the 200 000
    answer = state.ask(f"{STATE}/query", body={}, **KNOWS)
    lines = [json.loads(line) for line in answer.body.splitlines()]
    features = lines[0]["protocol"]["deltaProtocol"]
    assert (features["minReaderVersion"], features["readerFeatures"]) == (3, ["deletionVectors"])
    assert lines[1]["metaData"]["deltaMetadata"]["configuration"]["delta.enableDeletionVectors"] == "true"
    found = vectors(lines)
    assert found[0] is not None, "the first slice lacks few rows"
    assert any(one is None for one in found), "others lack many, and are made again"
    for line, vector in zip(lines[2:], found, strict=True):
        stats = json.loads(line["file"]["deltaSingleAction"]["add"]["stats"])
        assert stats.get("tightBounds", True) is (vector is None)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_the_kernel_reads_them(state: Shared, pandas: PandasClient, tmp_path: Path, version: int) -> None:
    profile = state.profile("all", tmp_path)
    options = {"version": version, "use_delta_format": True}
    pandas.ask("rows", profile=profile, options=options, target=tmp_path / "rows.parquet")
    rows = pq.read_table(tmp_path / "rows.parquet")
    assert rows.num_rows == ROWS
    assert dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True)) == model(version)


@pytest.mark.parametrize(
    ("who", "capabilities"),
    [
        ("all", "responseformat=delta"),
        ("all", "responseformat=parquet"),
        ("all", "responseformat=delta;readerfeatures=columnmapping"),
        ("some", KNOWS["delta_sharing_capabilities"]),
    ],
)
def test_others_get_files_without_such_rows(state: Shared, who: str, capabilities: str) -> None:
    answer = state.ask(f"{STATE}/query", who, {}, delta_sharing_capabilities=capabilities)
    assert answer.status == 200
    assert b"deletionVector" not in answer.body


def test_a_limit_counts_rows_that_are_there(state: Shared) -> None:
    answer = state.ask(f"{STATE}/query", body={"limitHint": ROWS - 5_000}, **KNOWS)
    lines = [json.loads(line) for line in answer.body.splitlines()]
    counts = []
    for line in lines[2:]:
        add = line["file"]["deltaSingleAction"]["add"]
        dead = add.get("deletionVector", {"cardinality": 0})["cardinality"]
        counts.append(json.loads(add["stats"])["numRecords"] - dead)
    assert sum(counts) >= ROWS - 5_000 > sum(counts[:-1])


def test_changes_and_files_since_a_version_have_none(state: Shared) -> None:
    for path, body in ((f"{STATE}/changes?startingVersion=2", None), (f"{STATE}/query", {"startingVersion": 2})):
        answer = state.ask(path, body=body, **KNOWS)
        assert answer.status == 200
        assert b'"deletionVector"' not in answer.body
