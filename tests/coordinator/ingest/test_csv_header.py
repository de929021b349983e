"""CSV files whose header is not what the source says: no row is lost, and no columns are mixed up, in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chains.csv_sources import PUSHED, csv_source, polled
from support.chains.workspaces import workspace_with

from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import HeaderMissing

FIELDS = (
    "{name: event_time, type: Timestamp}, {name: id, type: Int64}, {name: deaths, type: Int64},"
    " {name: cases, type: Int64}"
)
OPERATION = "{name: op, type: Int32}"
STRATEGIES = [
    ("{kind: Append}", FIELDS, ""),
    ("{kind: Ledger, primaryKey: [id]}", FIELDS, ""),
    ("{kind: Snapshot, primaryKey: [id]}", FIELDS, ""),
    ("{kind: UpsertStream, primaryKey: [id]}", f"{OPERATION}, {FIELDS}", "0,"),
    ("{kind: ChangelogStream, primaryKey: [id]}", f"{OPERATION}, {FIELDS}", "0,"),
]
ROWS = ("2024-01-01,1,3,700", "2024-01-02,2,4,800")


def cases(folder: Path, merge: str = "{kind: Append}", fields: str = FIELDS, source: str = PUSHED) -> Workspace:
    return workspace_with(folder, csv_source("cases", fields, source=source, merge=merge))


def take_in(workspace: Workspace, text: str) -> PullResult:
    file = workspace.root / "rows.csv"
    file.write_text(text, encoding="utf-8")
    (result,) = workspace.ingest("cases", [file])
    return result


@pytest.mark.parametrize("lane", ["local", "spark"])
@pytest.mark.parametrize(("merge", "fields", "prefix"), STRATEGIES, ids=[merge[7:13] for merge, *_ in STRATEGIES])
def test_the_first_row_is_not_taken_for_the_header(
    tmp_path: Path, lane: str, merge: str, fields: str, prefix: str
) -> None:
    workspace = cases(tmp_path, merge, fields)
    workspace.config.set("ingest.lane", lane)  # no Spark starts: the file is refused before
    with pytest.raises(HeaderMissing) as error:
        take_in(workspace, "".join(f"{prefix}{row}\n" for row in ROWS))
    said = f"rows.csv has no header: the values of its first line are a row, '{prefix}{ROWS[0]}'"
    assert error.value.message.endswith(said)
    assert "`header: false`" in (error.value.hint or "")
    assert workspace.datasets.state("cases").num_records == 0


def test_an_object_of_json_is_no_header(tmp_path: Path) -> None:
    with pytest.raises(HeaderMissing, match="its first line is a JSON object") as error:
        take_in(cases(tmp_path), '{"event_time": "2024-01-01", "id": 1, "deaths": 3, "cases": 700}\n')
    assert "--input-format ndjson" in (error.value.hint or "")


@pytest.mark.parametrize("header", ["day,id,dead,ill", "event_time,nr,2023,2024"])
def test_names_of_ones_own_are_a_header(tmp_path: Path, header: str) -> None:
    assert take_in(cases(tmp_path), "\n".join([header, *ROWS])).num_records == 2


@pytest.mark.parametrize(
    ("header", "is_header"), [("Oslo,1,2,3,4", True), ("Oslo,0,1,2,3", True), ("a,1,2,4,8", False)]
)
def test_columns_may_be_called_by_their_number(tmp_path: Path, header: str, is_header: bool) -> None:
    fields = "{name: city, type: String}, " + ", ".join(f"{{name: h{hour}, type: Int64}}" for hour in range(1, 5))
    workspace = cases(tmp_path, fields=fields)
    if is_header:
        assert take_in(workspace, f"{header}\nBergen,1,2,3,4\n").num_records == 1
    else:
        with pytest.raises(HeaderMissing):
            take_in(workspace, f"{header}\nBergen,1,2,3,4\n")


def test_a_file_with_nothing_in_it_has_nothing_new(tmp_path: Path) -> None:
    workspace = cases(tmp_path)
    take_in(workspace, "\n".join(["event_time,id,deaths,cases", *ROWS]))
    assert take_in(workspace, "").outcome is PullOutcome.UP_TO_DATE


def test_a_dry_run_says_so_before_the_pull(tmp_path: Path) -> None:
    workspace = cases(tmp_path, source=polled())
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("\n".join(ROWS))
    (plan,) = workspace.plan_pull(["cases"])
    assert plan.error is not None
    assert plan.error.code == "E408"
    (result,) = workspace.pull(["cases"])
    assert result.error is not None
    assert result.error.code == "E408"
