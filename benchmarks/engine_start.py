"""Start of the Spark engine, cold and warm, with its parts: wall time and processor time.

    python benchmarks/engine_start.py [--rounds 3] [--memory 1g]

The engine is started in a folder of its own, without a start-up cache and with one, which is made first. Wall times
depend on what else the machine does; the processor time of worker and Java does so much less.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from support import REPOSITORY, print_machine

from odfpy.data.offset_interval import OffsetInterval
from odfpy.dataset.transform import TransformSql
from odfpy.engine.contract import TransformRequest, TransformResponseSuccess
from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process.java import find_java
from odfpy.engine.spark.process.jvm import spark_home
from odfpy.engine.spark.process.startup_cache import StartupCache
from odfpy.engine.worker.admin import engine_status, stop_engine
from odfpy.engine.worker.client import SparkEngine
from odfpy.engine.worker.training import training_jobs

COLD_GOAL, WARM_GOAL, ACCEPT_GOAL = 4.5, 1.0, 0.05
PARTS = re.compile(r"ready after \d+ ms: python ([\d.]+) s, java ([\d.]+) s, spark ([\d.]+) s")
QUERY = "SELECT event_time, name, amount * 2 AS twice, price FROM first WHERE amount < 8"
CLIENT = """
import sys, json
from pathlib import Path
from odfpy.codec.tree import from_tree
from odfpy.engine.worker.client import SparkEngine
from odfpy.engine.contract import TransformRequest
from odfpy.engine.settings import EngineSettings
run, settings, request = sys.argv[1:]
engine = SparkEngine(Path(run), from_tree(EngineSettings, json.loads(settings)))
engine.transform(from_tree(TransformRequest, json.loads(request)))
"""


@dataclass(frozen=True)
class Times:
    """Seconds of one round."""

    cold: float
    python: float
    java: float
    spark: float
    first_job: float
    processor: float
    accept: float
    warm: float
    process: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="1g")
    options = parser.parse_args()
    print_machine("pyspark")
    java = find_java()
    print(f"Java {java.version} ({java.source})\n")
    with tempfile.TemporaryDirectory(prefix="odf-benchmark-") as name:
        folder = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        plain = EngineSettings(memory=options.memory, startup_cache=False)
        cached = EngineSettings(memory=options.memory, startup_cache=True)
        print_times("without start-up cache", [measure(folder, plain) for _ in range(options.rounds)])
        make_cache(options.memory)
        print_times("with start-up cache", [measure(folder, cached) for _ in range(options.rounds)])


def make_cache(memory: str) -> None:
    cache = StartupCache.of(find_java(), spark_home(), os.environ, memory)
    if cache is None or not cache.is_wanted:
        sys.exit("No start-up cache can be made here")
    begin = time.monotonic()
    command = [sys.executable, "-m", "odfpy.engine.worker.training", str(cache.path), memory]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"The training run failed:\n{done.stderr}")
    size = cache.path.stat().st_size / 1e6
    print(f"start-up cache: {size:.0f} MB, made in {time.monotonic() - begin:.1f} s\n")


@contextmanager
def requests(folder: Path) -> Iterator[TransformRequest]:
    path = Path(tempfile.mkdtemp(dir=folder))
    try:
        job = next(job for job in training_jobs(path) if isinstance(job, TransformRequest))
        source = replace(job.query_inputs[0], offset_interval=OffsetInterval(0, 9))
        yield replace(job, transform=TransformSql(engine="spark", query=QUERY), query_inputs=(source,))
    finally:
        shutil.rmtree(path)


def measure(folder: Path, settings: EngineSettings) -> Times:
    import json

    from odfpy.codec.tree import to_tree

    run = Path(tempfile.mkdtemp(dir=folder))
    engine = SparkEngine(run, settings)
    with requests(folder) as request:
        try:
            begin = time.monotonic()
            if not isinstance(engine.transform(request), TransformResponseSuccess):
                sys.exit("The transform failed")
            cold = time.monotonic() - begin
            status = engine_status(run)
            assert status is not None
            assert status.startup_cache == settings.startup_cache
            processor = sum(processor_seconds(pid) for pid in (status.pid, status.java_pid) if pid)
            accept = statistics.median(seconds(lambda: engine_status(run)) for _ in range(20))
            warm = statistics.median(seconds(lambda: engine.transform(request)) for _ in range(5))
            arguments = [str(run), json.dumps(to_tree(settings)), json.dumps(to_tree(request))]
            program = [sys.executable, "-c", CLIENT, *arguments]
            process = statistics.median(
                seconds(lambda: subprocess.run(program, cwd=REPOSITORY, check=True)) for _ in range(3)
            )
        finally:
            stop_engine(run)
    match = PARTS.search((run / "engine.log").read_text())
    assert match is not None
    python, java, spark = map(float, match.groups())
    return Times(cold, python, java, spark, cold - spark, processor, accept, warm, process)


def seconds(work) -> float:
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def print_times(title: str, rounds: list[Times]) -> None:
    def row(name: str, values: list[float], goal: float | None = None) -> None:
        text = f"  {name:<60} best {min(values):7.3f} s   median {statistics.median(values):7.3f} s"
        print(text + (f"   goal {goal:g} s, ratio {min(values) / goal:.2f}" if goal else ""))

    print(f"{title}, {len(rounds)} rounds")
    row("cold: from nothing to the result of a transform, ten rows", [t.cold for t in rounds], COLD_GOAL)
    row("  until Java runs and Spark's classes can be reached", [t.java for t in rounds])
    row("    of which imports of the worker, at the same time", [t.python for t in rounds])
    row("  Spark's own start (context and session)", [t.spark - t.java for t in rounds])
    row("  the first transform, and starting the worker", [t.first_job for t in rounds])
    row("  processor time of worker and Java until then", [t.processor for t in rounds])
    row("warm: connected, known to each other, a question answered", [t.accept for t in rounds], ACCEPT_GOAL)
    row("warm: transform", [t.warm for t in rounds], WARM_GOAL)
    row("warm: transform by a client process of its own", [t.process for t in rounds], WARM_GOAL)
    print()


if __name__ == "__main__":
    main()
