"""`odf ingest --input-format`: the same rows in any format that there is a reader for."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chains.workspaces import root, workspace_with
from support.ingest.shapefiles import archive

from odfpy.coordinator.ingest.push_ingest import INPUT_FORMATS
from odfpy.errors import NotFound

ROW = {"event_time": "2024-01-01T00:00:00Z", "id": 7, "name": "a"}
FEATURE = {"type": "Feature", "properties": ROW, "geometry": None}


def as_parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([ROW]), buffer)
    return buffer.getvalue()


CONTENTS = {
    "csv": b"event_time,id,name\n2024-01-01T00:00:00Z,7,a\n",
    "json": json.dumps([ROW]).encode(),
    "ndjson": json.dumps(ROW).encode(),
    "geojson": json.dumps({"type": "FeatureCollection", "features": [FEATURE]}).encode(),
    "ndgeojson": json.dumps(FEATURE).encode(),
    "esrishapefile": archive(
        "null", [(None, ROW)], fields=(("event_time", "C", 20, 0), ("id", "N", 9, 0), ("name", "C", 9, 0))
    ),
    "parquet": as_parquet(),
}


@pytest.mark.parametrize("name", INPUT_FORMATS)
def test_every_format_that_can_be_chosen(tmp_path: Path, name: str):
    workspace = workspace_with(tmp_path / "workspace", root("a", "{kind: Append}"))
    (tmp_path / "input").write_bytes(CONTENTS[name])
    (result,) = workspace.ingest("a", [tmp_path / "input"], input_format=name)
    assert result.num_records == 1
    assert [(row["id"], row["name"]) for row in workspace.tail("a", 1).to_pylist()] == [(7, "a")]


def test_a_dash_is_no_file(tmp_path: Path):
    workspace = workspace_with(tmp_path / "workspace", root("a", "{kind: Append}"))
    with pytest.raises(NotFound, match="No such file: -") as error:
        list(workspace.ingest("a", [Path("-")]))
    assert "--stdin" in (error.value.hint or "")
