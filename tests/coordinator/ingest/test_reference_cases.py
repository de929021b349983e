"""Small ingests of every reader and merge strategy, compared with what the reference implementation did.

Each file of `tests/golden/cases` is a manifest, ingests in turn, and the reference's answers; `odfpy` stands where
odfpy does better on purpose.
"""

from __future__ import annotations

import math
from datetime import date, datetime, time, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import CASES

from odfpy.chain.block import DatasetSnapshot
from odfpy.codec.tree import from_tree, to_tree
from odfpy.codec.yaml import load_documents
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError

SUFFIXES = {"csv": "csv", "json": "json", "ndjson": "ndjson", "geojson": "geojson", "ndgeojson": "ndjson"}


def load(path: Path) -> dict[str, Any]:
    return load_documents(path.read_text(encoding="utf-8"))[0].tree


@pytest.mark.parametrize("path", sorted(CASES.glob("*.yaml")), ids=lambda path: path.stem)
def test_case_gives_what_the_reference_gives(path: Path, tmp_path: Path) -> None:
    case = load(path)
    workspace = Workspace.init(tmp_path / "workspace")
    snapshot = from_tree(DatasetSnapshot, case["manifest"]["content"])
    workspace.add([snapshot])
    name = str(snapshot.name)
    kind = case["manifest"]["content"]["metadata"][0]["read"]["kind"].lower()

    for number, step in enumerate(case["ingests"]):
        file = tmp_path / f"input-{number}.{SUFFIXES[kind]}"
        file.write_text(step["input"], encoding="utf-8")
        check_step(workspace, name, step, file)

    differs = any("odfpy" in step for step in case["ingests"])
    if not differs:
        chain = [type(hashed.block.event).__name__ for hashed in workspace.datasets.log(name)][::-1]
        assert chain == case["reference_chain"]
        schema = workspace.datasets.state(name).schema
        assert (to_tree(schema) if schema else None) == case.get("reference_schema")


def check_step(workspace: Workspace, name: str, step: dict[str, Any], file: Path) -> None:
    wanted = {**step["reference"], **step.get("odfpy", {})}
    before = workspace.datasets.state(name)
    event_time = Timestamp.parse(step["event_time"]) if "event_time" in step else None
    if wanted["outcome"] == "error":
        with pytest.raises(OdfError):
            list(workspace.ingest(name, [file], event_time=event_time))
        assert workspace.datasets.state(name) == before, "an ingest that fails changes nothing"
        return
    (result,) = workspace.ingest(name, [file], event_time=event_time)
    rows = wanted.get("rows", [])
    up_to_date = wanted["outcome"] == "up-to-date"
    may_be_equal = "note" in step.get("odfpy", {}) and result.outcome is PullOutcome.UP_TO_DATE
    if up_to_date or may_be_equal:
        assert result.outcome is PullOutcome.UP_TO_DATE
        assert workspace.datasets.state(name).head == before.head
        return
    assert result.outcome is PullOutcome.UPDATED
    assert result.num_records == len(rows)
    if rows:
        table = workspace.tail(name, len(rows)).drop_columns(["system_time"])
        assert table.column_names == wanted["columns"]
        found = [list(row.values()) for row in table.to_pylist()]
        for found_row, wanted_row in zip(found, rows, strict=True):
            assert [comparable(value) for value in found_row] == wanted_row
    if "watermark" in step["reference"] and "outcome" not in step.get("odfpy", {}):
        assert str(workspace.datasets.state(name).watermark) == step["reference"]["watermark"]


def comparable(value: Any) -> Any:
    """A value as the cases write it."""
    match value:
        case datetime():
            return str(Timestamp.from_datetime(value.astimezone(timezone.utc)))
        case date():
            return value.isoformat()
        case time():
            return value.isoformat("microseconds")
        case Decimal():
            return str(value)
        case float() if math.isnan(value):
            return "nan"
        case float() if math.isinf(value) or (value == 0 and math.copysign(1, value) < 0):
            return str(value)
        case _:
            return value
