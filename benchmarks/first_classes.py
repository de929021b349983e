"""Which classes a first transform needs from Spark's jars, written down for starts without a start-up cache.

    python benchmarks/first_classes.py

Java tells what it loads, from its start to the end of a transform of a few rows. Those of Spark's SQL and of what it
reads and writes files with go into `odfpy/engine/spark/process/first_classes.txt`, in the order in which they are
needed: each line has a package and classes of it. Other classes are needed while Spark starts, which itself loads them
then. Classes inside of others come with these. Run it after an upgrade of Spark.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from textwrap import wrap

from support import REPOSITORY, print_machine

from odfpy.engine.contract import TransformRequest
from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process.java import find_java
from odfpy.engine.worker.spark_host import SparkHost
from odfpy.engine.worker.training import training_jobs

WRITTEN = REPOSITORY / "odfpy" / "engine" / "spark" / "process" / "first_classes.txt"
LOADED = re.compile(r" (\S+) source: \S*/([^/\s]+)\.jar$", re.MULTILINE)
JARS = re.compile(
    r"spark-(catalyst|sql|unsafe|variant|sketch)|parquet-|arrow-|flatbuffers-|antlr4-|json4s-|icu4j-|datasketches-"
)
WIDTH = 119
INNER = re.compile(r"\$.")


def main() -> None:
    print_machine("pyspark")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told = folder / "classes.log"
        options = [f"-Xlog:class+load:file={told}"]
        host = SparkHost(EngineSettings(startup_cache=False), find_java(), folder, sys.stderr.fileno(), options)
        host.start()
        try:
            job = next(job for job in training_jobs(folder) if isinstance(job, TransformRequest))
            print(host.serve(job))
        finally:
            host.end()
        packages: dict[str, list[str]] = {}
        for full, jar in LOADED.findall(told.read_text()):
            package, _, plain = full.rpartition(".")
            if JARS.match(jar) and not INNER.search(plain):
                packages.setdefault(package, []).append(plain)
    lines = [f"{package} {line}" for package, names in packages.items() for line in in_lines(package, names)]
    WRITTEN.write_text("".join(f"{line}\n" for line in lines))
    print(f"{sum(map(len, packages.values()))} classes of {len(packages)} packages, {WRITTEN.stat().st_size} bytes")


def in_lines(package: str, names: list[str]) -> list[str]:
    """The names, in as many lines as they need after the package's."""
    return wrap(" ".join(names), WIDTH - len(package), break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    main()
