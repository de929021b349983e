"""Delta Sharing: first bytes, rows beside bare HTTP, filtered tables beside duckdb, new versions, lists, many at once.

    python benchmarks/sharing.py [--rows 5000000] [--files 10000] [--keys 1000000] [--rounds 3]

`odf serve` is a process of its own, as are the pandas client (in `.venv-clients`) and the bare HTTP server that has the
same Parquet files. Everything goes over loopback. Ratios are of least times of rounds that take turns: of elapsed
time, and of processor time of the server and its processes, which says more on a machine that others use.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from support import ODF, Run, print_machine, processor_of, root

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.sharing.model import PrincipalKind, SharedView, SourceKind, TableSource
from odfpy.sharing.names import SharePath
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.store.tables import SCHEMAS, SHARED_TABLES
from odfpy.sharing.tables.opener import shared_dataset

REPOSITORY = Path(__file__).parents[1]
FIELDS = {"event_time": "Timestamp", "id": "Int64", "value": "Float64", "name": "String"}
TABLE = "shares/bench/schemas/main/tables"
FEW = 10
MANY = 20
AUDITED = 15  # seconds after which the audit log was committed
VECTORS = "responseformat=delta;readerfeatures=deletionvectors"
READ = """
import sys, time, delta_sharing
s = time.time()
print(len(delta_sharing.load_as_pandas(sys.argv[1])), time.time() - s)
"""
BARE = """
import sys, time, delta_sharing.reader as r, delta_sharing.rest_client as c, delta_sharing.protocol as p
from urllib.parse import urlsplit
client = c.DataSharingRestClient(p.DeltaSharingProfile.read_from_file(sys.argv[1]))
table = p.Table("large", "bench", "main")
given = client.list_files_in_table(table)  # names and sizes; the files come from elsewhere
files = [p.AddFile(u, u, {}, f.size, None) for u, f in zip(sys.argv[2:], given.add_files)]
class Client:
    def autoresolve_query_format(self, table): return "parquet"
    def list_files_in_table(self, *_, **__):
        return c.ListFilesInTableResponse(0, given.protocol, given.metadata, files, [])
s = time.time()
print(len(r.DeltaSharingReader(table, Client()).to_pandas()), time.time() - s)
"""
STATIC = """
import sys
from aiohttp import web
app = web.Application()
app.router.add_static("/", sys.argv[1])
web.run_app(app, host="127.0.0.1", port=18080, print=None)
"""


class Bench:
    """A served workspace with shares, and recipients of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = Workspace.init(folder / "workspace")
        self.sharing = Sharing.of_workspace(self.workspace.storage.odf, None)
        self.sharing.shares.add_share("bench")
        self.tokens: dict[str, str] = {}
        self.url = ""
        self.process: subprocess.Popen[str] | None = None

    def recipient(self, name: str, **grant: Any) -> None:
        self.sharing.principals.add(PrincipalKind.RECIPIENT, name)
        self.sharing.grants.add(name, SharePath("bench"), **grant)
        self.tokens[name], _ = self.sharing.principals.new_token(name)

    def profile(self, name: str) -> str:
        path = self.folder / f"{name}.share"
        tree = {"shareCredentialsVersion": 1, "endpoint": f"{self.url}/", "bearerToken": self.tokens[name]}
        path.write_text(json.dumps(tree))
        return str(path)

    def ask(
        self, path: str, who: str, body: Any = None, capabilities: str = "responseformat=parquet"
    ) -> tuple[float, float, bytes]:
        """Seconds until the first bytes, seconds until all, and the answer."""
        parts = urlsplit(f"{self.url}/{path}")
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=600)
        started = time.perf_counter()
        data = None if body is None else json.dumps(body)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        headers = {"Authorization": f"Bearer {self.tokens[who]}", "delta-sharing-capabilities": capabilities}
        connection.request("GET" if body is None else "POST", target, data, headers)
        answer = connection.getresponse()
        first = answer.read(1)
        until_first = time.perf_counter() - started
        rest = answer.read()
        assert answer.status == 200, rest
        return until_first, time.perf_counter() - started, first + rest

    def run(self, path: str, who: str, capabilities: str = "responseformat=parquet") -> Run:
        """Elapsed seconds of a query, and processor seconds of the server."""
        assert self.process is not None
        before = processor_of(self.process.pid)
        seconds = self.ask(path, who, {}, capabilities)[1]
        return Run(seconds, processor_of(self.process.pid) - before)

    def memory(self) -> float:
        """Megabytes of the server."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    @contextmanager
    def served(self) -> Iterator[None]:
        self.process = subprocess.Popen(
            [*ODF, "serve", "--port", "0"],
            cwd=self.workspace.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1] + "/delta-sharing"
        try:
            yield
        finally:
            self.process.terminate()
            self.process.wait()


def rows(first: int, count: int, *, spread: int = 1) -> pa.Table:
    ids = np.arange(first, first + count * spread, spread)
    return pa.table(
        {
            "event_time": pa.array(ids * 1000 + 1_700_000_000_000, pa.timestamp("ms", "UTC")),
            "id": pa.array(ids),
            "value": pa.array(np.random.default_rng(first).random(count)),
            "name": pa.array([f"name {number % 1000}" for number in range(count)]),
        }
    )


def least(measure: Callable[[], Run], rounds: int) -> Run:
    runs = [measure() for _ in range(rounds)]
    return Run(min(run.seconds for run in runs), min(run.processor for run in runs))


def beside(run: Run, other: Run) -> str:
    """How many times as long one takes as another, elapsed time and processor time."""
    return f"{run.seconds / other.seconds:.2f}x ({run.processor / max(other.processor, 0.01):.2f}x processor time)"


def many_files(bench: Bench, name: str, count: int) -> None:
    folder = bench.folder / name
    folder.mkdir()
    for number in range(count):
        pq.write_table(rows(number * 10, 10), folder / f"{number:05}.parquet")
    bench.sharing.shares.add_table(SharePath("bench", "main", name), TableSource(SourceKind.PARQUET, str(folder)))


def dataset(bench: Bench, name: str, merge: str, tables: list[pa.Table]) -> None:
    bench.workspace.add(load_snapshots(root(name, merge, FIELDS, read="Parquet"), name))
    more(bench, name, tables)
    found = bench.workspace.storage.get(name)
    bench.sharing.shares.add_table(SharePath("bench", "main", name), shared_dataset(found, SharedView.CURRENT, None))


def more(bench: Bench, name: str, tables: list[pa.Table]) -> None:
    paths = []
    for table in tables:
        paths.append(bench.folder / f"{uuid.uuid4()}.parquet")
        pq.write_table(table, paths[-1])
    list(bench.workspace.ingest(name, paths))


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in {"rows": 5_000_000, "files": 10_000, "keys": 1_000_000, "rounds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    print_machine("duckdb", "pyarrow", "fastapi", "sqlalchemy")
    subprocess.run([REPOSITORY / ".ci" / "clients"], check=True)
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        bench.recipient("all")
        for number in ("", *range(1, asked.rounds + 1)):  # each has a condition of their own, so files of their own
            some = f"name = 'name {number or 0}' OR value > 0.5"
            bench.recipient(f"some{number}", rows=some, columns=["id", "value", "name"])
        many_files(bench, "few", FEW)
        many_files(bench, "files", asked.files)
        dataset(bench, "large", "Append", [rows(at, 1_000_000) for at in range(0, asked.rows, 1_000_000)])
        for one in ("state", "kept"):
            dataset(bench, one, "UpsertStream", [rows(0, asked.keys)])
        with bench.served():
            first_bytes(bench, asked.files)
            new_version(bench, asked.keys)
            filtered(bench, asked.rounds)
            beside_http(bench, asked.rounds)
            lists(bench)
            at_once(bench)


def first_bytes(bench: Bench, count: int) -> None:
    bench.ask("shares", "all")
    before = bench.memory()
    for name, expected in (("few", FEW), ("files", count)):
        for remark in ("first time", "again"):
            first, whole, body = bench.ask(f"{TABLE}/{name}/query", "all", {})
            assert body.count(b"\n") - 2 == expected
            print(
                f"{expected} files, {remark}: first byte {first:.2f} s, all {whole:.2f} s,"
                f" server +{bench.memory() - before:.0f} MB"
            )
        # The libraries of the first answer, and of the first commit to the audit log, are no memory of many files.
        time.sleep(AUDITED if name == "few" else 0)
        before = bench.memory()


def new_version(bench: Bench, keys: int) -> None:
    for name, capabilities in (("state", "responseformat=parquet"), ("kept", VECTORS)):
        query = f"{TABLE}/{name}/query"
        nothing = bench.run(query, "all", capabilities)
        more(bench, name, [rows(0, 10_000, spread=max(1, keys // 10_000))])
        spread = bench.run(query, "all", capabilities)
        again = bench.run(query, "all", capabilities)
        print(
            f"current state of {keys} keys, {capabilities}: from nothing {nothing.seconds:.2f} s; after 10 000 changes"
            f" all over {spread.seconds:.2f} s, {beside(spread, nothing)}; asked again {again.seconds:.3f} s"
        )


def filtered(bench: Bench, rounds: int) -> None:
    slices = [str(one) for one in (bench.workspace.storage.get("large").folder / "data").iterdir()]
    query = f"{TABLE}/large/query"
    bench.ask(query, "some", {})  # libraries are loaded by now, as they are in the script
    numbers = iter(range(1, rounds + 1))
    first = least(lambda: bench.run(query, f"some{next(numbers)}"), rounds)

    def many(who: str) -> Run:
        runs = [bench.run(query, who) for _ in range(MANY)]
        return Run(min(run.seconds for run in runs), sum(run.processor for run in runs))

    second, whole = least(lambda: many("some"), rounds), least(lambda: many("all"), rounds)

    def script() -> Run:
        started, processor = time.perf_counter(), time.process_time()
        for number, path in enumerate(slices):
            duckdb.sql(
                f"COPY (SELECT id, value, name FROM read_parquet('{path}') WHERE name = 'name 7' OR value > 0.5)"
                f" TO '{bench.folder}/{number}.duck' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"
            )
        return Run(time.perf_counter() - started, time.process_time() - processor)

    by_duckdb = least(script, rounds)
    print(
        f"filtered table: first {first.seconds:.2f} s beside duckdb {by_duckdb.seconds:.2f} s,"
        f" {beside(first, by_duckdb)}; second {second.seconds:.3f} s beside unfiltered {whole.seconds:.3f} s,"
        f" {beside(second, whole)}"
    )


def beside_http(bench: Bench, rounds: int) -> None:
    client = str(REPOSITORY / ".venv-clients" / "bin" / "python")
    data = bench.workspace.storage.get("large").folder / "data"
    profile = bench.profile("all")
    bare = subprocess.Popen(
        [sys.executable, "-c", STATIC, str(data)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        time.sleep(1)
        urls = [f"http://127.0.0.1:18080/{one.name}" for one in data.iterdir()]
        shared, plain = [], []
        for _ in range(rounds):
            for times, command in ((shared, [READ, f"{profile}#bench.main.large"]), (plain, [BARE, profile, *urls])):
                done = subprocess.run([client, "-c", *command], capture_output=True, text=True, check=True)
                times.append(float(done.stdout.split()[-1]))
    finally:
        bare.terminate()
    print(f"pandas client: {min(shared):.2f} s beside bare HTTP {min(plain):.2f} s, {min(plain) / min(shared):.2f}x")


def lists(bench: Bench) -> None:
    with bench.sharing.database.writing() as connection:
        schema = connection.scalar(sa.select(SCHEMAS.c.id))
        row = {"schema_id": schema, "kind": "dataset", "location": "x", "shown": "current", "at": None, "comment": ""}
        names = [f"t{number}" for number in range(10_000)]
        table = [{**row, "id": str(uuid.uuid4()), "name": name, "folded": name} for name in names]
        connection.execute(sa.insert(SHARED_TABLES), table)
    times, path = [], "shares/bench/all-tables"
    while path:
        _, seconds, body = bench.ask(path, "all")
        times.append(seconds)
        token = json.loads(body).get("nextPageToken")
        path = f"shares/bench/all-tables?pageToken={token}" if token else ""
    print(
        f"10 000 tables: {len(times)} pages, median {statistics.median(times) * 1000:.0f} ms,"
        f" most {max(times) * 1000:.0f} ms"
    )


def at_once(bench: Bench) -> None:
    times: list[float] = []
    failures: list[BaseException] = []

    def one() -> None:
        try:
            times.append(bench.ask(f"{TABLE}/large/query", "all", {})[1])
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=one) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ordered = sorted(times)
    middle, late = statistics.median(ordered), ordered[int(len(ordered) * 0.95) - 1]
    print(f"100 recipients at once: {len(failures)} fail, p50 {middle:.2f} s, p95 {late:.2f} s, {late / middle:.1f}x")


if __name__ == "__main__":
    main()
