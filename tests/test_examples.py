"""The example datasets under `snapshots/`: what they promise, and that they hold it, from the first pull to verification.

What a dataset must hold is worked out again here, in plain Python, from the files it was ingested from.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.engine.spark_here import in_place

import odfpy
from odfpy.chain.block import DatasetSnapshot
from odfpy.chain.events import AddPushSource, SetInfo, SetLicense, SetPollingSource, SetTransform
from odfpy.coordinator.manifests import load
from odfpy.coordinator.storage.results import PullOutcome, PullResult

SNAPSHOTS = Path(__file__).resolve().parents[1] / "snapshots"
DATA = SNAPSHOTS / "data"
MANIFESTS = sorted(SNAPSHOTS.glob("*.yaml"))
LAST_DAY = "2013-02-11"
PENGUINS = "edu.lter.palmer-penguins"
MIDNIGHT = timedelta(hours=5)
"""Of New York in winter, in UTC."""
FLIGHT_KEY = ("flight_date", "carrier", "flight", "origin")

Row = dict[str, Any]


def snapshots() -> list[DatasetSnapshot]:
    return load([SNAPSHOTS], recursive=True)


def events(kind: type) -> list[Any]:
    return [event for snapshot in snapshots() for event in snapshot.metadata if isinstance(event, kind)]


# --- What they show --------------------------------------------------------------------------------------------------


def test_every_manifest_is_named_after_its_dataset():
    assert sorted(path.stem for path in MANIFESTS) == sorted(str(snapshot.name) for snapshot in snapshots())


def test_every_merge_strategy_is_shown():
    shown = {type(source.merge).KIND for source in events(SetPollingSource) + events(AddPushSource)}
    assert shown == {"Append", "Ledger", "Snapshot", "ChangelogStream", "UpsertStream"}


def test_every_reader_of_this_release_is_shown():
    shown = {type(source.read).KIND for source in events(SetPollingSource) + events(AddPushSource)}
    assert shown == {"Csv", "NdJson", "Json", "Parquet"}


def test_both_engines_and_two_levels_are_shown():
    transforms = events(SetTransform)
    assert {event.transform.engine for event in transforms} == {"spark", "datafusion"}
    derivatives = {str(snapshot.name) for snapshot in snapshots() if snapshot.kind.name == "DERIVATIVE"}
    assert any(str(item.dataset_ref) in derivatives for event in transforms for item in event.inputs)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_manifest_states_source_and_licence(path: Path):
    (snapshot,) = load([path])
    licences = [event.spdx_id for event in snapshot.metadata if isinstance(event, SetLicense)]
    assert licences == ["CC0-1.0"]
    assert any(isinstance(event, SetInfo) and event.description for event in snapshot.metadata)
    assert f"`{snapshot.name}`" in (SNAPSHOTS / "README.md").read_text()


def test_data_is_small():
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < 2_000_000


# --- What they hold --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Story:
    """A workspace with all examples, pulled once with some of the data, then with all of it, then once more."""

    workspace: odfpy.Workspace
    first: dict[str, PullResult]
    second: dict[str, PullResult]
    third: dict[str, PullResult]

    def rows(self, name: str) -> list[Row]:
        return self.workspace.tail(name, 1_000_000).to_pylist()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, spark: object) -> Iterator[Story]:
    """A workspace with all examples, whose engine runs in this process."""
    root = tmp_path_factory.mktemp("examples")
    later = {file for folder in DATA.iterdir() for file in sorted(folder.iterdir())[-1:]}
    with pytest.MonkeyPatch.context() as patch:
        in_place(patch, spark)
        workspace = odfpy.Workspace.init(root)
        workspace.add(list(reversed(snapshots())))
        shutil.copytree(DATA, root / "data", ignore=lambda at, names: [n for n in names if Path(at, n) in later])
        first = pull_everything(workspace)
        for file in later:
            shutil.copy(file, root / file.relative_to(SNAPSHOTS))
        yield Story(workspace, first, pull_everything(workspace), pull_everything(workspace))


def pull_everything(workspace: odfpy.Workspace) -> dict[str, PullResult]:
    pushed = list(workspace.ingest(PENGUINS, sorted((workspace.root / "data" / "penguins").iterdir())))
    pulled = list(workspace.pull(all=True))
    assert [result.error for result in pushed + pulled if result.error] == []
    return {result.name: result for result in pulled}


def csv_rows(folder: str) -> list[Row]:
    rows: list[Row] = []
    for path in sorted((DATA / folder).iterdir()):
        with path.open(encoding="utf-8", newline="") as file:
            rows.extend(csv.DictReader(file))
    return rows


def data_of(rows: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


def current_state(rows: list[Row], *key: str) -> dict[tuple[Any, ...], Row]:
    """The latest row of each key, unless it has been retracted."""
    state: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        at = tuple(row[column] for column in key)
        if row["op"] in {1, 2}:
            state.pop(at, None)
        else:
            state[at] = row
    return state


@pytest.mark.spark
def test_every_pull_takes_up_what_is_new_and_then_nothing(story: Story):
    polled = {str(snapshot.name) for snapshot in snapshots()} - {PENGUINS}
    assert {name for name, result in story.first.items() if result.outcome is PullOutcome.UPDATED} == polled
    assert {name for name, result in story.second.items() if result.outcome is PullOutcome.UPDATED} == polled
    assert {result.outcome for result in story.third.values()} == {PullOutcome.UP_TO_DATE}


@pytest.mark.spark
def test_ledger_keeps_each_flight_once(story: Story):
    source = csv_rows("flights")
    expected = {
        (f"{r['year']}-{int(r['month']):02}-{int(r['day']):02}", r["carrier"], int(r["flight"]), r["origin"])
        for r in source
    }
    rows = story.rows("org.nycflights.flights")
    keys = [(date.isoformat(), *rest) for date, *rest in data_of(rows, *FLIGHT_KEY)]
    assert len(source) > len(keys) == len(expected)
    assert set(keys) == expected
    assert {row["op"] for row in rows} == {0}
    assert sum(row["cancelled"] for row in rows) == len(
        {tuple(r.values()) for r in source if r["dep_time"] == "NA"},
    )


@pytest.mark.spark
def test_append_keeps_every_reading(story: Story):
    expected = [row for path in sorted((DATA / "weather").iterdir()) for row in pq.read_table(path).to_pylist()]
    columns = [column for column in expected[0] if column != "observed_at"]
    rows = story.rows("org.nycflights.weather")
    assert data_of(rows, "observed_at", *columns) == data_of(expected, "observed_at", *columns)


@pytest.mark.spark
def test_snapshot_turns_each_timetable_into_changes(story: Story):
    columns = ("carrier", "flight", "dest", "departs", "arrives")
    rows = story.rows("org.nycflights.timetable")
    state = current_state(rows, "carrier", "flight")
    newest = json.loads(max((DATA / "timetable").iterdir()).read_text())["flights"]
    assert sorted(data_of(list(state.values()), *columns)) == sorted(data_of(newest, *columns))
    assert {row["op"] for row in rows} == {0, 1, 2, 3}
    assert len(rows) < sum(len(json.loads(path.read_text())["flights"]) for path in (DATA / "timetable").iterdir())


@pytest.mark.spark
def test_changelog_keeps_what_the_source_says(story: Story):
    said = [
        json.loads(line)
        for path in sorted((DATA / "flight-status").iterdir())
        for line in path.read_text().split("\n")
        if line
    ]
    rows = story.rows("org.nycflights.flight-status")
    columns = ("op", "carrier", "flight", "status", "delay")
    assert sorted(map(str, data_of(rows, *columns))) == sorted(map(str, data_of(said, *columns)))
    left = current_state(rows, "flight_date", "carrier", "flight").values()
    assert {row["status"] for row in left} == {"departed"}


@pytest.mark.spark
def test_upsert_ends_with_nobody_in_the_air(story: Story):
    rows = story.rows("org.nycflights.in-the-air")
    assert {row["op"] for row in rows} >= {0, 1}
    assert current_state(rows, "tailnum") == {}


@pytest.mark.spark
def test_pushed_seasons_are_taken_once(story: Story):
    rows = story.rows(PENGUINS)
    assert len(rows) == len(csv_rows("penguins")) == 344
    assert {type(row["egg_date"]).__name__ for row in rows} == {"date"}
    assert sum(row["sex"] is None for row in rows) == sum(row["Sex"] == "NA" for row in csv_rows("penguins"))


@pytest.mark.spark
def test_delayed_flights_are_those_an_hour_late(story: Story):
    flights = story.rows("org.nycflights.flights")
    late = [row for row in flights if row["dep_delay"] is not None and row["dep_delay"] >= 60]
    rows = story.rows("org.nycflights.delayed-flights")
    assert data_of(rows, "event_time", *FLIGHT_KEY, "dep_delay") == data_of(
        late, "event_time", *FLIGHT_KEY, "dep_delay"
    )
    assert {row["severity"] for row in rows} == {"moderate", "long", "severe"}


@pytest.mark.spark
def test_disruptions_unite_three_inputs(story: Story):
    rows = story.rows("org.nycflights.disruptions")
    delays = [r for r in story.rows("org.nycflights.delayed-flights") if r["severity"] == "severe"]
    cancelled = [r for r in story.rows("org.nycflights.flights") if r["cancelled"]]
    storms = [r for r in story.rows("org.nycflights.weather") if r["visib"] < 1 or (r["wind_gust"] or 0) >= 35]
    assert all((delays, cancelled, storms))
    counted = {what: sum(row["what"] == what for row in rows) for what in ("delay", "cancellation", "storm")}
    assert counted == {"delay": len(delays), "cancellation": len(cancelled), "storm": len(storms)}
    assert all(row["detail"] for row in rows)


@pytest.mark.spark
def test_each_flight_that_flew_makes_two_movements(story: Story):
    flown = [row for row in story.rows("org.nycflights.flights") if row["air_time"] is not None]
    rows = story.rows("org.nycflights.movements")
    assert [row["what"] for row in rows] == ["take-off", "landing"] * len(flown)
    durations = [
        (b["event_time"] - a["event_time"]).total_seconds() / 60 for a, b in zip(rows[::2], rows[1::2], strict=True)
    ]
    assert durations == [row["air_time"] for row in flown]


@pytest.mark.spark
def test_corrections_of_the_timetable_are_corrections_on_the_board(story: Story):
    timetable = story.rows("org.nycflights.timetable")
    board = story.rows("org.nycflights.departure-board")
    assert [row["op"] for row in board] == [row["op"] for row in timetable]
    assert [row["hours"] for row in board] == [f"{row['departs']} - {row['arrives']}" for row in timetable]


@pytest.mark.spark
def test_a_day_is_told_of_once_it_is_over(story: Story):
    flights, watermark = story.rows("org.nycflights.flights"), story.second["org.nycflights.flights"].watermark
    assert watermark is not None
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in flights:
        start = (row["event_time"] - MIDNIGHT).replace(hour=0, minute=0) + MIDNIGHT
        if start + timedelta(days=1) <= watermark.to_datetime():
            groups.setdefault((start, row["carrier"]), []).append(row)
    expected = []
    for key, group in sorted(groups.items()):
        delays = [row["dep_delay"] for row in group if row["dep_delay"] is not None]
        late = sum(delay >= 60 for delay in delays)
        average = sum(delays) / len(delays) if delays else None
        expected.append((0, *key, len(group), sum(row["cancelled"] for row in group), late, average))
    rows = story.rows("org.nycflights.daily-delays")
    columns = ("op", "event_time", "carrier", "flights", "cancelled", "an_hour_late", "average_delay")
    assert data_of(rows, *columns) == expected
    in_pulls = [pull["org.nycflights.daily-delays"].num_records for pull in (story.first, story.second)]
    assert in_pulls == [40, 15]  # the last day is not over


@pytest.mark.spark
def test_the_busiest_routes_are_those_of_all_flights_so_far(story: Story):
    flown = Counter((r["origin"], r["dest"]) for r in story.rows("org.nycflights.flights") if not r["cancelled"])
    expected = {}
    for airport in ("EWR", "JFK", "LGA"):
        ranked = sorted((-count, dest) for (origin, dest), count in flown.items() if origin == airport)
        expected |= {(airport, place): (dest, -count) for place, (count, dest) in enumerate(ranked[:3], 1)}
    rows = story.rows("org.nycflights.top-routes")
    state = current_state(rows, "origin", "place")
    assert {key: (row["dest"], row["flights"]) for key, row in state.items()} == expected
    first, second = rows[:9], rows[9:]
    assert {row["op"] for row in first} == {0}
    assert [row["op"] for row in second] == [2, 3] * 9  # every place has more flights now


@pytest.mark.spark
def test_the_balance_follows_the_timetable(story: Story):
    standing: Counter[tuple[Any, ...]] = Counter()
    columns = ("carrier", "departs", "flight", "dest", "departures_so_far")
    rows = story.rows("org.nycflights.departures-so-far")
    for row in rows:
        standing[tuple(row[column] for column in columns)] += -1 if row["op"] in {1, 2} else 1
    newest = json.loads(max((DATA / "timetable").iterdir()).read_text())["flights"]
    so_far: Counter[str] = Counter()
    expected = []
    for flight in sorted(newest, key=lambda flight: (flight["carrier"], flight["departs"], flight["flight"])):
        so_far[flight["carrier"]] += 1
        expected.append((*(flight[column] for column in columns[:-1]), so_far[flight["carrier"]]))
    assert sorted(standing.elements()) == expected
    assert {row["op"] for row in rows} >= {0, 1}


@pytest.mark.spark
def test_flights_are_late_once_they_have_landed_and_missing_once_they_cannot_land_any_more(story: Story):
    flights = [r for r in story.rows("org.nycflights.flights") if r["carrier"] == "B6"]
    landings = {(r["flight_date"], int(r["flight"]), r["origin"]): r for r in csv_rows("arrivals")}
    known_until = story.second["org.nycflights.arrivals"].watermark
    assert known_until is not None
    expected = []
    for row in flights:
        landing = landings.get((row["flight_date"].isoformat(), row["flight"], row["origin"]))
        if landing is not None and int(landing["arr_delay"]) >= 60:
            expected.append((row["event_time"], row["flight"], "late"))
        elif landing is None and row["event_time"] + timedelta(hours=23) <= known_until.to_datetime():
            expected.append((row["event_time"], row["flight"], "never"))
            assert row["cancelled"]
    rows = story.rows("org.nycflights.late-arrivals")
    assert {row["op"] for row in rows} == {0}
    assert sorted(data_of(rows, "event_time", "flight", "landed")) == sorted(expected)
    assert Counter(row["landed"] for row in rows) == {"late": 67, "never": 139}


@pytest.mark.spark
def test_what_was_announced_stays_whatever_comes_late(story: Story):
    files = sorted((DATA / "flight-status").iterdir())
    said = [json.loads(line) for path in files for line in path.read_text().splitlines() if line]
    known_until = story.second["org.nycflights.flight-status"].watermark
    assert known_until is not None
    expected: Counter[tuple[Any, ...]] = Counter()
    for row in said:
        hour = datetime.fromisoformat(row["event_time"]).replace(minute=0, second=0, microsecond=0)
        if row["op"] in {0, 3} and hour + timedelta(hours=1) <= known_until.to_datetime():
            expected[hour, row["status"]] += 1
    rows = story.rows("org.nycflights.announcements")
    assert {row["op"] for row in rows} == {0}
    assert {(at, status): count for at, status, count in data_of(rows, "event_time", "status", "flights")} == expected
    assert max(expected.values()) == 53  # scheduled at midnight; none of them is so in the end


@pytest.mark.spark
def test_a_flight_has_the_weather_that_was_in_force(story: Story):
    readings: dict[str, list[Row]] = {}
    for row in story.rows("org.nycflights.weather"):
        readings.setdefault(row["origin"], []).append(row)
    watermarks = [story.second[f"org.nycflights.{name}"].watermark for name in ("flights", "weather")]
    known_until = min(watermark.to_datetime() for watermark in watermarks if watermark is not None)
    expected = []
    for flight in story.rows("org.nycflights.flights"):
        before = [row for row in readings[flight["origin"]] if row["observed_at"] <= flight["event_time"]]
        if before and flight["event_time"] <= known_until:
            expected.append(
                (flight["event_time"], flight["origin"], flight["carrier"], flight["flight"], before[-1]["visib"])
            )
    rows = story.rows("org.nycflights.flights-in-weather")
    assert {row["op"] for row in rows} == {0}
    assert len(rows) == 3318
    assert sorted(data_of(rows, "event_time", "origin", "carrier", "flight", "visibility")) == sorted(expected)


@pytest.mark.spark
def test_all_of_it_verifies(story: Story):
    reports = list(story.workspace.verify(all=True))
    assert {str(report.handle): report.findings for report in reports if report.findings} == {}
    assert sum(report.transforms_replayed for report in reports) >= 18
