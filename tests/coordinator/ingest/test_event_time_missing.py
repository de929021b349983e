"""Rows without an event time get that of their input: it is said before and when it happens, and what could be meant."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.chains.csv_sources import PUSHED, csv_source, polled
from support.chains.workspaces import workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.ingest.event_times import event_time_candidates
from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.data.data_warning import WarningKind
from odfpy.data.timestamp import Timestamp

FIELDS = "{name: station, type: Int64}, {name: date, type: Date}, {name: value, type: Float64}"


def manifest(fields: str = FIELDS, source: str = PUSHED) -> str:
    return csv_source("measured", fields, source=source)


def remarks(folder: Path, text: str) -> tuple[str, ...]:
    (result,) = Workspace.init(folder).add(load_snapshots(text, "manifest"))
    return result.notes


def take_in(workspace: Workspace, event_time: Timestamp | None = None) -> PullResult:
    file = workspace.root / "rows.csv"
    file.write_text("station,date,value\n1,2024-03-01,0.5\n2,2024-03-02,1.5\n")
    (result,) = workspace.ingest("measured", [file], event_time=event_time)
    return result


@pytest.mark.parametrize(
    ("name", "kind", "is_meant"),
    [
        ("seen", pa.timestamp("ms", "UTC"), True),
        ("seen", pa.date32(), True),
        ("date", pa.string(), True),
        ("updated_at", pa.string(), True),
        ("createdAt", pa.int64(), True),
        ("Order Date", pa.string(), True),
        ("time_utc", pa.string(), True),
        ("unixTS", pa.int64(), True),
        ("update", pa.string(), False),
        ("candidate", pa.string(), False),
        ("lifetime", pa.int64(), False),
        ("at", pa.string(), False),
        ("time", pa.float64(), False),
        ("größe", pa.string(), False),
    ],
)
def test_columns_that_could_be_the_event_time(name: str, kind: pa.DataType, is_meant: bool) -> None:
    assert bool(event_time_candidates([(name, kind)])) is is_meant


def test_a_type_says_more_than_a_name() -> None:
    columns = [("time", pa.string()), ("id", pa.int64()), ("day", pa.date32())]
    assert event_time_candidates(columns) == ("day", "time")


def test_odf_add_names_the_columns_that_could_be_meant(tmp_path: Path) -> None:
    fields = f"{FIELDS}, {{name: updated_at, type: String}}"
    (remark,) = remarks(tmp_path, manifest(fields))
    assert remark == (
        "no column 'event_time': every row gets the time of the ingest. 'date' or 'updated_at' could be meant: rename it"
        " in the schema or in `preprocess`, or let SetVocab name it (eventTimeColumn)"
    )


@pytest.mark.parametrize(
    "text",
    [
        manifest("{name: station, type: Int64}"),
        manifest(f"{FIELDS}, {{name: event_time, type: Timestamp}}"),
        manifest(source=polled(", eventTime: {kind: FromMetadata}")),
        f"{manifest()}    - {{kind: SetVocab, eventTimeColumn: date}}\n",
    ],
    ids=["no candidates", "there is one", "the manifest has chosen", "another name"],
)
def test_odf_add_is_silent_where_nothing_can_be_meant(tmp_path: Path, text: str) -> None:
    assert remarks(tmp_path, text) == ()


def test_the_first_rows_say_what_they_get(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, manifest())
    (warning,) = take_in(workspace).warnings
    given = Timestamp.from_datetime(workspace.tail("measured", 1).column("event_time")[0].as_py())
    assert warning.kind is WarningKind.EVENT_TIME
    assert warning.message == (
        f"no row has an 'event_time': every row gets the time of the ingest, {given}; 'date' could be meant"
    )
    assert (warning.count, warning.examples) == (2, ("date",))
    assert take_in(workspace).warnings == (), "once is enough"


def test_a_time_that_a_person_gives_is_meant(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, manifest())
    assert take_in(workspace, Timestamp.parse("2024-03-03")).warnings == ()


def test_a_pull_says_so_too(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, manifest(source=polled()))
    (tmp_path / "in").mkdir()
    for day in (1, 2):
        (tmp_path / "in" / f"{day}.csv").write_text(f"station,date,value\n1,2024-03-0{day},0.5\n")
    (result,) = workspace.pull(["measured"])
    assert [warning.message.partition(", 2")[0] for warning in result.warnings] == [
        "no row has an 'event_time': every row gets the time of the pull"
    ]


def test_a_column_without_any_value_is_as_good_as_none(tmp_path: Path) -> None:
    fields = "{name: event_time, type: {kind: Option, inner: Timestamp}}, {name: n, type: Int64}"
    workspace = workspace_with(tmp_path, manifest(fields))
    file = tmp_path / "rows.csv"
    file.write_text("event_time,n\n,1\n,2\n")
    (result,) = workspace.ingest("measured", [file])
    assert result.warnings[0].message.startswith("no row has an 'event_time'")


# --- Some rows without ----------------------------------------------------------------------------------------------

TIMED = "{name: event_time, type: {kind: Option, inner: Timestamp}}, {name: n, type: Int64}"
UPSERT = "{name: op, type: Int32}, " + TIMED


def ingested(workspace: Workspace, text: str, event_time: Timestamp | None = None) -> list[str]:
    """What is said of some rows, without their time."""
    file = workspace.root / "rows.csv"
    file.write_text(text)
    (result,) = workspace.ingest("measured", [file], event_time=event_time)
    assert all(warning.kind is WarningKind.EVENT_TIME for warning in result.warnings)
    return [warning.message.partition(", 2")[0] for warning in result.warnings]


def test_rows_without_an_event_time_among_others_are_counted(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, manifest(TIMED))
    first = "event_time,n\n2024-01-01,1\n,2\n2024-01-03,3\n"
    assert ingested(workspace, first) == ["1 row of 3 has no 'event_time' and gets the time of the ingest"]
    assert ingested(workspace, "event_time,n\n2024-01-04,1\n") == []
    later = ingested(workspace, "event_time,n\n,1\n,2\n")
    assert later == ["2 rows of 2 have no 'event_time' and get the time of the ingest"], "the others had one"
    assert ingested(workspace, first, Timestamp.parse("2024-01-02")) == [], "a person has said so"


def test_the_warning_names_the_time_and_says_what_to_do(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, manifest(TIMED))
    file = tmp_path / "rows.csv"
    file.write_text("event_time,n\n2024-01-01,1\n,2\n")
    (result,) = workspace.ingest("measured", [file])
    (warning,) = result.warnings
    given = Timestamp.from_datetime(workspace.tail("measured", 1).column("event_time")[0].as_py())
    assert warning.message == (
        f"1 row of 2 has no 'event_time' and gets the time of the ingest, {given};"
        " if this is wrong, supply it in `preprocess`, or filter such rows out"
    )
    assert warning.count == 1


def test_a_manifest_that_has_chosen_does_not_mean_gaps(tmp_path: Path) -> None:
    source = polled(", eventTime: {kind: FromPath, pattern: '(.*).csv', timestampFormat: '%Y-%m-%d'}")
    workspace = workspace_with(tmp_path, manifest(TIMED, source))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "2024-02-01.csv").write_text("event_time,n\n,1\n,2\n")
    (result,) = workspace.pull(["measured"])
    assert result.warnings == ()
    (tmp_path / "in" / "2024-02-02.csv").write_text("event_time,n\n2024-01-01,1\n,2\n")
    (result,) = workspace.pull(["measured"])
    assert [warning.message.partition(";")[0] for warning in result.warnings] == [
        "1 row of 2 has no 'event_time' and gets the time in the name of the file, 2024-02-02T00:00:00Z"
    ]


def test_rows_that_an_upsert_stream_retracts_need_no_event_time(tmp_path: Path) -> None:
    text = manifest(UPSERT).replace("{kind: Append}", "{kind: UpsertStream, primaryKey: [n]}")
    workspace = workspace_with(tmp_path, text)
    assert ingested(workspace, "op,event_time,n\n0,2024-01-01,1\n0,2024-01-01,2\n") == []
    assert ingested(workspace, "op,event_time,n\n1,,1\n0,2024-01-02,3\n") == []
    assert len(ingested(workspace, "op,event_time,n\n1,,2\n0,,4\n")) == 1
    assert ingested(workspace, "op,event_time,n\n1,,2\n") == [], "nothing is written"
