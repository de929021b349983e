"""Small and random histories of changelogs, with their states: the reference models of projections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, OperationType
from odfpy.engine.contract import Projection, SqlTable

A, R, F, T = OperationType.APPEND, OperationType.RETRACT, OperationType.CORRECT_FROM, OperationType.CORRECT_TO
TIME = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", TIME, nullable=False),
        pa.field("event_time", TIME),
        pa.field("key", pa.string()),
        pa.field("value", pa.int32()),
    ]
)
DAY = 86_400_000


@dataclass(frozen=True)
class Event:
    """A row of a log; times are in days."""

    offset: int
    op: OperationType
    system: int
    time: float | None
    key: str | None
    value: int | None

    @property
    def gains(self) -> bool:
        return self.op.weight > 0

    @property
    def data(self) -> tuple[object, ...]:
        return self.time, self.key, self.value


Log = Sequence[Event]


def moment(days: float) -> Timestamp:
    return Timestamp.from_millis(round(days * DAY))


# --- Reference models ------------------------------------------------------------------------------------------------


def as_at(log: Log, system: int) -> list[Event]:
    """Return the rows recorded until a time."""
    return [row for row in log if row.system <= system]


def current(log: Log, *, keyed: bool) -> list[Event]:
    """Return the current state: the last row of each key, or rows as often as they were added more than removed."""
    if keyed:
        last = {row.key: row for row in log}
        return [row for row in last.values() if row.gains]
    left = Counter[tuple[object, ...]]()
    for row in log:
        left[row.data] += row.op.weight
    kept = []
    for row in reversed(log):
        if row.gains and left[row.data] > 0:
            left[row.data] -= 1
            kept.append(row)
    return kept


def as_of(log: Log, time: float, *, keyed: bool) -> list[Event]:
    """Return the state at an event time: of the changes until then, or the version in force of each key."""
    if not keyed:
        return current([row for row in log if row.time is not None and row.time <= time], keyed=False)
    log = [row for row in log if row.time is not None]
    return [row for key in {row.key for row in log} if (row := _in_force(log, key, time)) is not None]


def _in_force(log: Log, key: str | None, time: float) -> Event | None:
    """Return the version of a key: the last of the rows that begin or end versions up to a time."""
    rows = [row for row in log if row.key == key]
    weight, events = Counter[tuple[object, ...]](), []
    for at, row in enumerate(rows):
        if row.gains:
            weight[row.data] += 1
            continue
        after = rows[at + 1] if at + 1 < len(rows) else None
        pair = after if row.op is F and after and after.op is T and after.offset == row.offset + 1 else None
        matched = any(one.gains and one.data == row.data for one in rows[:at])
        present = sum(one.op.weight for one in rows if one.system <= row.system)
        wrong = matched and (pair is not None or present > 0)
        if wrong and not (pair is not None and pair.time > row.time):
            weight[row.data] -= 1
        if not wrong and pair is None:
            again = [one.time for one in rows[at + 1 :] if one.gains]
            ends = _told(log, row.system)
            if not matched or not again or (ends is not None and min(again) > ends):
                events.append((ends if matched else row.time, row.offset, None))
    events += [(row.time, row.offset, row) for row in rows if row.gains and weight[row.data] > 0]
    past = [event for event in events if event[0] is not None and event[0] <= time]
    return max(past, key=lambda event: event[:2])[2] if past else None


def _told(log: Log, system: int) -> float | None:
    """Return the time assigned to a commit: the latest of its rows, or just after all earlier ones."""
    before = max((row.time for row in log if row.gains and row.system < system), default=None)
    now = max((row.time for row in log if row.gains and row.system <= system), default=None)
    return now if before is None or now > before else before + 1 / DAY


# --- Random logs -----------------------------------------------------------------------------------------------------


@st.composite
def logs(draw: st.DrawFn, *, most: int = 14) -> list[Event]:
    """Generate appends, updates, corrections of corrections, retractions, late rows; also inconsistent rows:
    retractions of missing rows, half corrections, rows without a time."""
    times, keys = st.sampled_from([None, 1, 2, 3, 4, 5, 5]), st.sampled_from(["a", "b", None])
    values = st.sampled_from([1, 2, None])
    rows: list[Event] = []
    system = 0
    only_appends = draw(st.integers(0, 4)) == 0
    for _ in range(draw(st.integers(0, most))):
        system += draw(st.sampled_from([0, 0, 1]))
        there = current(rows, keyed=False)
        kind = "append" if only_appends else draw(st.sampled_from(["append", "append", "correct", "retract", "odd"]))
        old = draw(st.sampled_from(there)) if there else None
        if kind == "correct" and old is not None:
            rows.append(Event(len(rows), F, system, *old.data))
            key = old.key if draw(st.booleans()) else draw(keys)
            rows.append(Event(len(rows), T, system, draw(times), key, draw(values)))
        elif kind == "retract" and old is not None:
            time = old.time if draw(st.booleans()) else draw(times)
            rows.append(Event(len(rows), R, system, time, old.key, old.value))
        else:
            op = draw(st.sampled_from([R, F, T])) if kind == "odd" else A
            rows.append(Event(len(rows), op, system, draw(times), draw(keys), draw(values)))
    return rows


# --- As slices -------------------------------------------------------------------------------------------------------


def table_of(log: Log) -> pa.Table:
    """Return the rows of a log as a slice has them."""

    def millis(days: float | None) -> int | None:
        return None if days is None else round(days * DAY)

    rows = [(r.offset, int(r.op), millis(r.system), millis(r.time), r.key, r.value) for r in log]
    columns = [pa.array([row[at] for row in rows], pa.int64()) for at in range(4)]
    arrays = [columns[0], columns[1].cast(pa.int32()), columns[2].cast(TIME), columns[3].cast(TIME)]
    arrays += [pa.array([row[4] for row in rows], pa.string()), pa.array([row[5] for row in rows], pa.int32())]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def sql_table(folder: Path, log: Log, projection: Projection | None, name: str = "t") -> SqlTable:
    """Return a log in a folder, one slice for each commit, as a table of a query."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = folder / "schema"
    pq.write_table(SCHEMA.empty_table(), schema)
    paths = []
    for system in sorted({row.system for row in log}):
        path = folder / f"slice-{system}"
        pq.write_table(table_of([row for row in log if row.system == system]), path)
        paths.append(str(path))
    return SqlTable(name, str(schema), tuple(paths), DEFAULT_VOCABULARY, projection=projection)


def offsets_of(rows: Sequence[Event]) -> list[int]:
    return sorted(row.offset for row in rows)
