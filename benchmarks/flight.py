"""Flight SQL: a plain scan beside bare Flight and beside REST, and many clients at once.

    python benchmarks/flight.py [--rows 5000000] [--rounds 5] [--clients 50] [--queries 20]

`odf serve` is a process of its own, as is the bare Flight server that reads the same Parquet files and sends them.
Everything goes over loopback. Ratios are of least times of rounds that take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pyarrow.parquet as pq
from support import ODF, PUSH, print_machine, root

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.flight.messages import message, wrap

FIELDS = {"event_time": "Timestamp", "id": "Int64", "value": "Float64", "name": "String"}
REST_ROWS = 100_000
BARE = """
import sys
import pyarrow.flight as fl
import pyarrow.parquet as pq

class Server(fl.FlightServerBase):
    def do_get(self, context, ticket):
        def batches():
            for path in sys.argv[1:]:
                with pq.ParquetFile(path) as file:
                    yield from file.iter_batches(65_536)
        return fl.GeneratorStream(pq.read_schema(sys.argv[1]), batches())

server = Server("grpc://127.0.0.1:0")
print(f"bare at grpc://127.0.0.1:{server.port}", flush=True)
sys.stdin.read()
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--queries", type=int, default=20)
    options = parser.parse_args()
    print_machine("pyarrow", "datafusion")
    with tempfile.TemporaryDirectory() as name:
        workspace = made(Path(name), options.rows)
        paths = sorted(str(path) for path in (workspace.storage.get("rows").folder / "data").iterdir())
        serve = [*ODF, "-q", "-w", name, "serve", "--port", "0", "--flight-port", "0"]
        with started(serve, 2) as (process, urls), started([sys.executable, "-c", BARE, *paths], 1) as (_, (bare,)):
            http, flight = urls
            scan(flight, bare, http, options.rows, options.rounds)
            crowd(flight, process.pid, options.rows, options.clients, options.queries)


def made(folder: Path, rows: int) -> Workspace:
    """A workspace with one public dataset, of slices of a million rows."""
    workspace = Workspace.init(folder)
    workspace.add(load_snapshots(root("rows", "Append", FIELDS, read="Parquet", source=PUSH), "rows"))
    ids = np.arange(rows)
    times = pa.array(ids * 1000, pa.timestamp("ms", "UTC"))
    names = pa.array([f"name {number}" for number in range(1000)]).take(pa.array(ids % 1000))
    file = folder / "rows.parquet"
    pq.write_table(pa.table({"event_time": times, "id": ids, "value": ids / 7, "name": names}), file)
    (result,) = workspace.ingest("rows", [file])
    assert result.num_records == rows, result.error
    file.unlink()
    set_visibility(workspace.storage.get("rows").folder, Visibility.PUBLIC)
    return workspace


@contextmanager
def started(command: list[str], lines: int) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A server, and the URLs at the ends of its first lines."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process, [process.stdout.readline().split()[-1] for _ in range(lines)]
        finally:
            process.terminate()


def plan(client: Any, text: str) -> list[Any]:
    """The tickets of a query."""
    descriptor = fl.FlightDescriptor.for_command(wrap(message("CommandStatementQuery", query=text)))
    return [endpoint.ticket for endpoint in client.get_flight_info(descriptor).endpoints]


def drain(client: Any, ticket: Any) -> int:
    """Read a stream to its end; gives the number of rows."""
    rows = 0
    for chunk in client.do_get(ticket):
        rows += chunk.data.num_rows
    return rows


def scan(flight: str, bare: str, http: str, rows: int, rounds: int) -> None:
    """All rows, from the three."""
    ours, theirs = fl.connect(flight), fl.connect(bare)
    address = f"{http}/query?{urllib.parse.urlencode({'query': 'select * from rows', 'limit': REST_ROWS})}"

    def one_after_the_other() -> int:
        return sum(drain(ours, ticket) for ticket in plan(ours, "select * from rows"))

    def at_once() -> int:
        found: list[int] = []
        tickets = plan(ours, "select * from rows")
        threads = [threading.Thread(target=lambda each=each: found.append(drain(ours, each))) for each in tickets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(found)

    def rest() -> int:
        with urllib.request.urlopen(address) as answer:
            return len(json.load(answer)["output"]["data"])

    ways: dict[str, tuple[Callable[[], int], int]] = {
        "bare Flight": (lambda: drain(theirs, fl.Ticket(b"")), rows),
        "Flight SQL, endpoint by endpoint": (one_after_the_other, rows),
        "Flight SQL, all endpoints at once": (at_once, rows),
        "REST, JSON": (rest, REST_ROWS),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for label, (read, expected) in ways.items():
            began = time.perf_counter()
            assert read() == expected, label
            least[label] = min(least[label], (time.perf_counter() - began) / expected)
    for label, seconds in least.items():
        beside = f"{least['bare Flight'] / seconds:.2f}x bare Flight, {least['REST, JSON'] / seconds:.1f}x REST"
        print(f"{label}: {1 / seconds / 1e6:.2f} million rows/s, {beside}")


def crowd(flight: str, pid: int, rows: int, clients: int, queries: int) -> None:
    """Many clients with small queries, each with a connection of its own."""
    before = megabytes(pid)
    times: list[float] = []
    failed: list[Exception] = []

    def work(number: int) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        with fl.connect(flight, generic_options=options) as client:
            for turn in range(queries):
                first = (number * queries + turn) * 7919 % (rows - 10)
                where = f"offset >= {first} and offset < {first + 10}"
                text = f"select id from rows where {where}" if turn % 2 else f"select sum(id) from rows where {where}"
                began = time.perf_counter()
                try:
                    assert sum(drain(client, ticket) for ticket in plan(client, text)) == (10 if turn % 2 else 1)
                except Exception as error:  # noqa: BLE001  it is counted
                    failed.append(error)
                times.append(time.perf_counter() - began)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    print(f"{clients} clients, {len(times)} queries: {len(failed)} failed {failed[:1]}")
    print(f"p50 {p50 * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms: {p95 / p50:.1f}x; to reach: 5x")
    print(f"memory of the server: {before} MB before, at most {megabytes(pid)} MB, and for queries {held(pid)} MB")


def megabytes(pid: int) -> int:
    """The greatest resident size of a process so far; 0 of one that has just ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def held(pid: int) -> int:
    """What the processes that a process has started hold in memory."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(megabytes(int(child)) + held(int(child)) for child in found)


if __name__ == "__main__":
    main()
