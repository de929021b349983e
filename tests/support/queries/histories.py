"""Random histories of inputs: pulls with rows, corrections and retractions, and watermarks."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import strategies as st
from support.queries.cases import Pull

START = datetime(2024, 1, 1, tzinfo=timezone.utc)

hours = st.integers(0, 30)
keys = st.sampled_from(["x", "y", None])
values = st.integers(0, 3)


@st.composite
def histories(draw, inputs, *, in_time=False, pulls=(1, 4)):
    """Generate pulls: rows, corrections and retractions of existing rows and of some that never existed, watermarks."""
    there = {alias: [] for alias in inputs}
    marks = dict.fromkeys(inputs, -1)
    found = []
    for _ in range(draw(st.integers(*pulls))):
        arrived = {alias: [] for alias in inputs}
        for alias in inputs:
            for _ in range(draw(st.integers(0, 4))):
                what = (
                    "append" if in_time else draw(st.sampled_from(["append"] * 4 + ["retract", "correct", "nothing"]))
                )
                least = marks[alias] + 1 if in_time else 0
                row = (
                    START + timedelta(hours=draw(st.integers(least, least + 12) if in_time else hours)),
                    draw(keys),
                    draw(values),
                )
                if what in ("retract", "correct") and there[alias]:
                    old = there[alias].pop(draw(st.integers(0, len(there[alias]) - 1)))
                    arrived[alias].append(("-R" if what == "retract" else "-C", *old))
                    if what == "retract":
                        continue
                    arrived[alias].append(("+C", *row))
                    there[alias].append(row)
                elif what == "nothing":
                    # It counts against whatever group it falls into, so it has no column in common with the others.
                    apart = timedelta(days=draw(st.sampled_from([-40, 40])))
                    arrived[alias].append(("-R", row[0] + apart, "never", 7))
                else:
                    arrived[alias].append(("+A", *row))
                    there[alias].append(row)
        for alias in inputs:
            marks[alias] += draw(st.integers(0, 12))
        known = {
            alias: (START + timedelta(hours=mark)).strftime("%Y-%m-%dT%H:%M")
            for alias, mark in marks.items()
            if mark >= 0
        }
        found.append(Pull(arrived, known))
    return found
