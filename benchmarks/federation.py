"""A web of relays: TPC-H Q1 over five of them, planning over a hundred, and the memory and patience of one.

    .venv/bin/python benchmarks/federation.py [--rounds 9] [--at-once 50] [--only q1|planning|relay]

Q1 and the relay are those of the reference web (`odf relay demo`), without the relay that never answers. Planning has
relays in one process, which ask each other by calls. For the line, the limits of hops and time are lifted, which end a
question after 33 relays otherwise.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from support import REPOSITORY, print_machine

sys.path.insert(0, str(REPOSITORY / "tests" / "support" / "federation"))

RELAYS = 100


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument("--only", choices=("q1", "planning", "relay"))
    arguments = parser.parse_args()
    print_machine("pyarrow", "datafusion")
    if arguments.only in (None, "planning"):
        planning(arguments.rounds)
    if arguments.only != "planning":
        with TemporaryDirectory() as folder, five_relays(Path(folder) / "web") as web:
            if arguments.only in (None, "relay"):
                memory(web, "a relay that nobody has asked for rows")
            if arguments.only in (None, "q1"):
                q1(web, arguments.rounds)
            if arguments.only in (None, "relay"):
                at_once(web, arguments.at_once)
                memory(web, "the same relay after all of this")


# --- Five relays ---


@contextmanager
def five_relays(folder: Path) -> Iterator[Any]:
    """The reference web without the relay that never answers, as it is when it starts for the second time."""
    from odfpy.federation.demo.layout import web_folder
    from odfpy.federation.demo.running import running_web

    with running_web(web_folder(folder), offline=False) as web:
        yield web


def words_for(relay: str) -> str:
    return "percent" if relay in ("na", "na_us") else "fractions"


def q1(web: Any, rounds: int) -> None:
    """Q1 over all relays, and over each alone; and what it moves."""
    from odfpy.federation.demo.questions import FILES

    seconds: dict[str, list[float]] = {"all": []} | {name: [] for name in web.locations}
    for number in range(rounds + 1):
        for label, times in seconds.items():
            relay = "na" if label == "all" else label
            sql = FILES[f"q1_{words_for(relay)}.sql"]
            with web.connect(relay, "all_access") as asked:
                if label != "all":
                    stay(asked)
                asked.entities()  # the connection is there
                began = time.perf_counter()
                with asked.sql(sql) as answer:
                    answer.to_arrow()
                if number:  # the first round warms up
                    times.append(time.perf_counter() - began)
    medians = {label: statistics.median(times) for label, times in seconds.items()}
    slowest = max((name for name in medians if name != "all"), key=medians.__getitem__)
    print(f"Q1 over five relays: {medians['all']:.3f} s; the slowest alone ({slowest}): {medians[slowest]:.3f} s")
    print(f"five beside the slowest alone: {medians['all'] / medians[slowest]:.2f}x; to reach: 1.5x")
    pushed = moved(web, FILES["q1_percent.sql"])
    needed = "quantity, extendedprice, discount_percent, tax_percent, returnflag, linestatus, shipdate"
    rows = moved(web, f"SELECT {needed} FROM lineitem")
    whole = moved(web, "SELECT * FROM lineitem")
    print(f"Q1 moves {pushed:,} bytes of Arrow; the columns that it needs have {rows:,}, all columns {whole:,}")
    print(f"beside these columns: {pushed / rows:.4%}; beside all: {pushed / whole:.4%}; to reach: 1 %")


def stay(asked: Any) -> None:
    """Let the relay that is asked ask no others."""
    connections = asked._connections  # noqa: SLF001
    ask = connections.ask
    connections.ask = lambda location, question: ask(location, replace(question, hops=0))


def moved(web: Any, sql: str) -> int:
    """Bytes of Arrow data that all relays send."""
    with web.connect("na", "all_access") as asked:
        connections, parts = parts_of(asked, web.locations["na"], sql)
        total = 0
        for part in parts:
            with connections.rows(part, 60) as reader:
                total += sum(chunk.data.nbytes for chunk in reader)
        return total


def parts_of(asked: Any, location: str, sql: str, hops: int = 32) -> tuple[Any, Any]:
    """The places where a question of one fragment is read."""
    from odfpy.federation.relay.question import Question, SentFragment
    from odfpy.federation.sql.split import split

    [fragment] = split(sql, asked.entities()).fragments.values()
    query = secrets.token_hex(16)
    token = asked.credentials.token(query, seconds=300)
    question = Question(f"{query} f1", SentFragment.of(fragment), hops=hops, seconds=120, requester=token)
    return asked._connections, asked._connections.ask(location, question).parts  # noqa: SLF001


# --- One relay ---


def memory(web: Any, label: str) -> None:
    """What a relay and its helper processes have of memory; pages that several share count for each in RSS."""
    pid = web.pids["na"]
    found = [sizes(one) for one in (pid, *children(pid))]
    shown = " + ".join(f"{one['Rss'] >> 10}" for one in found)
    own = sum(one["Pss"] for one in found) >> 10
    print(f"{label}: RSS {shown} MB, without what others share {own} MB; to reach: 150 MB")


def sizes(pid: int) -> Mapping[str, int]:
    """The memory of a process, in KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()[1:]
    return {name.rstrip(":"): int(value) for name, value, *_ in map(str.split, lines)}


def children(pid: int) -> Iterator[int]:
    """Processes that a process has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            yield int(stat.parent.name)


def at_once(web: Any, number: int) -> None:
    """Many queries at the same time at one relay: planned, and all rows read."""
    from odfpy.federation.demo.questions import FILES

    sql = FILES["q1_percent.sql"]
    with web.connect("na", "all_access") as asked:
        entities = asked.entities()
        asked.entities = lambda: entities

        def one(_: int) -> float | str:
            began = time.perf_counter()
            try:
                connections, parts = parts_of(asked, web.locations["na"], sql, hops=0)
                for part in parts:
                    with connections.rows(part, 120) as reader:
                        reader.read_all()
            except Exception as error:  # noqa: BLE001  counted
                return f"{type(error).__name__}: {error}"
            return time.perf_counter() - began

        with ThreadPoolExecutor(number) as threads:
            found = list(threads.map(one, range(number)))
    failed = [one for one in found if isinstance(one, str)]
    times = sorted(one for one in found if isinstance(one, float))
    p50, p95 = statistics.median(times), times[int(len(times) * 0.95)]
    print(f"{number} queries (Q1) at once at a relay: {len(failed)} fail {failed[:2] or ''}")
    print(f"p50 {p50:.2f} s, p95 {p95:.2f} s: {p95 / p50:.1f}x; to reach: none fails, 5x")


# --- A hundred relays ---


def planning(rounds: int) -> None:
    """Planning over relays that ask each other by calls."""
    from simulated import ASKER, COLUMNS, SimulatedWeb, token

    from odfpy.federation.relay import question, relay
    from odfpy.federation.sql.split import split

    sums = "sum(price * (1 - price / 100)) AS p, avg(price) AS a, count(*) AS n"
    sql = f"SELECT key, {sums} FROM item WHERE key < 9 GROUP BY key"
    [fragment] = split(sql, {"item": COLUMNS}).fragments.values()
    names = [f"r{number}" for number in range(RELAYS)]
    how = lambda one, other: "{v} * 100" if int(one[1:]) % 2 else "{v} / 100"  # noqa: E731, ARG005
    line = {name: {other: how(name, other) for other in names[at + 1 : at + 2]} for at, name in enumerate(names)}
    star = {names[0]: {other: how(names[0], other) for other in names[1:]}}
    star |= {other: {names[0]: how(other, names[0])} for other in names[1:]}
    mesh = {name: {other: how(name, other) for other in names if other != name} for name in names}
    question.MAX_HOPS, margin = RELAYS, relay.MARGIN
    for label, links in (("a line", line), ("a star", star), ("a full mesh", mesh)):
        relay.MARGIN = 0.0 if label == "a line" else margin
        times, made = [], None
        for _ in range(rounds if label != "a full mesh" else max(2, rounds // 3)):
            made = SimulatedWeb(links)
            query = secrets.token_hex(16)
            asked = question.Question(
                f"{query} f1", question.SentFragment.of(fragment), RELAYS, 300, token(ASKER, query)
            )
            began = time.perf_counter()
            answer = made.relays[names[0]].answer(asked, ASKER)
            times.append(time.perf_counter() - began)
            made.close()
            assert (len(answer.parts), answer.missing) == (RELAYS, ()), label
        count = sum(map(len, links.values()))
        print(
            f"planning over {RELAYS} relays in {label}: {statistics.median(times):.2f} s "
            f"({made.messages} messages, {count} links); to reach: 1 s"
        )
    relay.MARGIN = margin


if __name__ == "__main__":
    main()
