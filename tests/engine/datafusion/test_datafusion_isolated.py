"""Whatever DataFusion is to do has a process of its own, which ends with it whatever it is at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.contract import SqlRequest
from odfpy.engine.datafusion.ad_hoc import DataFusionRows
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.engine.datafusion.isolated import ForkServer, fork_server
from odfpy.errors import InvalidQuery, OdfError, QueryCancelled, QueryEnded, QueryTimedOut, ResultTooLarge

MEMORY = 512 << 20
PATIENCE = 300.0

ENDLESS = "SELECT count(*) AS n FROM generate_series(1, 1000000) a CROSS JOIN generate_series(1, 1000000) b"
LARGE = "SELECT a.value + b.value AS v FROM generate_series(1, 100000) a CROSS JOIN generate_series(1, 100000) b"


def request(query: str, **more: int) -> SqlRequest:
    return SqlRequest(query, (), "", **more)


def run(engine: DataFusionEngine, what: SqlRequest, control: CancellationToken | None = None) -> pa.Table:
    rows = engine.stream(what, control or CancellationToken())
    try:
        return pa.Table.from_batches(rows, rows.schema)
    finally:
        rows.close()


def asked(
    engine: DataFusionEngine, what: SqlRequest, control: CancellationToken | None = None
) -> pa.Table | tuple[type, str]:
    """The rows, or the error."""
    try:
        return run(engine, what, control)
    except OdfError as error:
        return type(error), f"{error.message} / {error.hint}"


def in_this_process(what: SqlRequest) -> pa.Table | tuple[type, str]:
    try:
        rows = DataFusionRows(what)
        return pa.Table.from_batches(rows, rows.schema)
    except OdfError as error:
        return type(error), f"{error.message} / {error.hint}"


@pytest.fixture(scope="module")
def isolated() -> DataFusionEngine:
    return DataFusionEngine(fork_server(MEMORY))


QUERIES = {
    "rows": request("SELECT value AS v, 'a' || value AS t FROM generate_series(1, 200000)"),
    "some": request("SELECT value AS v FROM generate_series(1, 200000)", skip=70_000, limit=5),
    "nothing": request("SELECT value AS v FROM generate_series(1, 10) WHERE value > 10"),
    "types": request("SELECT [1, NULL] AS l, {'a': 1.5} AS s, CAST(1.5 AS DECIMAL(9, 2)) AS d, json_get_int('{\"a\":7}', 'a')"),
    "wrong": request("SELECT valeu FROM generate_series(1, 10)"),
    "wrong rows": request("SELECT 1 / (value - 100000) AS v FROM generate_series(1, 200000)"),
    "too large": request("SELECT value FROM generate_series(1, 200000)", max_bytes=100_000),
    "no query": request("SHOW TABLES"),
}  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_what_comes_is_what_comes_in_this_process(isolated, name):
    assert asked(isolated, QUERIES[name]) == in_this_process(QUERIES[name])


def test_errors_are_what_they_were(isolated):
    kinds = [asked(isolated, QUERIES[name])[0] for name in ("wrong", "wrong rows", "too large")]
    assert kinds == [InvalidQuery, InvalidQuery, ResultTooLarge]


def test_a_query_that_hears_nothing_ends_with_its_time(isolated):
    with CancellationToken(0.3) as control:
        kind, _ = asked(isolated, request(ENDLESS), control)
    assert kind is QueryTimedOut
    wait_until(lambda: not queries())


def test_a_query_ends_when_it_is_cancelled_or_dropped(isolated):
    control = CancellationToken()
    rows = isolated.stream(request(ENDLESS), control)
    wait_until(queries)
    control.cancel()
    with pytest.raises(QueryCancelled):
        list(rows)
    rows.close()
    dropped = isolated.stream(request(LARGE), CancellationToken())
    assert next(iter(dropped)).num_rows
    dropped.close()
    wait_until(lambda: not queries())


def test_one_that_takes_too_much_memory_ends_alone(isolated):
    kind, message = asked(isolated, request(f"{LARGE} ORDER BY v"))
    assert (kind, "more than 0.5 GiB of memory" in message) == (QueryEnded, True)
    assert run(isolated, QUERIES["some"]).num_rows == 5


def test_the_process_that_starts_them_may_be_killed():
    server = ForkServer(MEMORY)
    engine = DataFusionEngine(server)
    before = set(children(os.getpid()))
    assert run(engine, QUERIES["some"]).num_rows == 5
    (pid,) = set(children(os.getpid())) - before
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert run(engine, QUERIES["some"]).num_rows == 5


def test_all_of_them_end_with_whoever_has_asked():
    program = (
        "from odfpy.engine.contract import SqlRequest; from odfpy.engine.cancellation import CancellationToken\n"
        "from odfpy.engine.datafusion.isolated import fork_server, IsolatedQuery\n"
        f"rows = IsolatedQuery(fork_server({MEMORY}), SqlRequest({ENDLESS!r}, (), ''), CancellationToken()); print('begun', flush=True); list(rows)"
    )
    client = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "begun\n"
    (server,) = children(client.pid)
    (query,) = children(server)
    client.kill()
    client.wait()
    client.stdout.close()
    wait_until(lambda: not Path(f"/proc/{server}").exists() and not Path(f"/proc/{query}").exists())


def test_what_nobody_asks_for_a_while_gives_its_memory_back_and_starts_anew():
    server = ForkServer(MEMORY, idle=0.2)
    engine = DataFusionEngine(server)
    one = request("SELECT 1 AS one")
    assert run(engine, one).to_pylist() == [{"one": 1}]
    first = server.pid
    wait_until(lambda: Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    assert run(engine, one).to_pylist() == [{"one": 1}]
    assert server.pid != first


def test_it_stays_as_long_as_a_query_runs():
    server = ForkServer(MEMORY, idle=0.05)
    rows = DataFusionEngine(server).stream(request(LARGE), CancellationToken())
    until = time.monotonic() + 20 * server.idle
    while time.monotonic() < until:
        assert next(iter(rows)).num_rows
    (query,) = children(server.pid)
    assert server.pid in children(os.getpid())
    rows.close()
    wait_until(lambda: not Path(f"/proc/{query}").exists())


# --- Processes -------------------------------------------------------------------------------------------------------


def children(pid: int) -> list[int]:
    """The processes that a process has started and that are at work."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if fields[1] == str(pid) and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def queries() -> list[int]:
    """The processes of queries of the fork server of this process, which may have engines of other tests as well."""
    server = fork_server(MEMORY).pid
    return [] if server is None else children(server)


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
