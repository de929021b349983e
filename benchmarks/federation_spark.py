"""TPC-H Q3, a join of three entities, in Spark over a web of five relays, beside the same Parquet read by Spark itself.

Where the time goes is measured, too: asking and planning, what the relays send when nobody does more than count it, and
what Spark takes to read the three entities and do nothing with them.

    .venv/bin/python benchmarks/federation_spark.py [--scale 1] [--rounds 3]

The web is that of `odf relay demo`, with another TPC-H: each relay has a fifth of each table, in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import odfpy.web
from odfpy.federation.demo.data import ROWS
from odfpy.federation.demo.documents import ALL_ACCESS
from odfpy.federation.demo.layout import WebFolder, web_folder
from odfpy.federation.demo.questions import FILES
from odfpy.federation.demo.running import running_web
from odfpy.federation.demo.words import RELAYS
from odfpy.federation.execution.execute import StartedQuery, start_query
from odfpy.federation.relay.question import AnswerOptions, Part

RELAY = "global"
QUERY = FILES["q3_fractions.sql"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "3g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    with TemporaryDirectory() as place:
        folder = web_folder(Path(place) / "web")
        put_tables(folder, arguments.scale)
        with running_web(folder, offline=False) as web, closing(web.connect(RELAY, ALL_ACCESS)) as connected:
            spark = builder.config("spark.log.level", "OFF").getOrCreate()
            try:
                measure(spark, folder, connected, arguments.rounds)
            finally:
                spark.stop()


def put_tables(folder: WebFolder, scale: float) -> None:
    """Give each relay a part of the tables."""
    program = str(Path(sys.executable).parent / "tpchgen-cli")
    for number, relay in enumerate(RELAYS, 1):
        for table in ROWS:
            there = folder.path / "parts" / f"{table}-{number}"
            part = ["--parts", str(len(RELAYS)), "--part", str(number), "--output-dir", str(there)]
            subprocess.run([program, "parquet", "-q", "-s", f"{scale:g}", "--tables", table, *part], check=True)
            [file] = there.rglob("*.parquet")
            file.replace(folder.data(relay, table))


def measure(spark: Any, folder: WebFolder, web: odfpy.web.Web, rounds: int) -> None:
    """Both ways, again and again in turn, and the parts of the way over the web."""
    local(spark, folder)
    mine = QUERY.replace("c.mktsegment", "c.acctbal > 0 AND c.mktsegment")  # of others, nobody has granted more
    found: dict[str, Any] = {}

    def over_the_web() -> None:
        found["web"] = odfpy.web.spark_sql(spark, web, QUERY).collect()

    def by_hand() -> None:
        found["local"] = spark.sql(mine).collect()

    ways: dict[str, Callable[[], Any]] = {
        "Spark over the web": over_the_web,
        "Spark over the same Parquet": by_hand,
        "Spark over the web, small answers by tasks, too": (
            lambda: odfpy.web.spark_sql(spark, web, QUERY, small=0).collect()
        ),
        "splitting and asking": lambda: question(web),
        "that, small answers, and Spark's analysis": lambda: odfpy.web.spark_sql(spark, web, QUERY),
        "the relays' rows, counted in this process": lambda: drained(web),
        "Spark reads the three fragments": lambda: read_in_spark(spark, web),
    }
    least = dict.fromkeys(ways, float("inf"))
    for number in range(rounds + 1):  # the first one warms up
        for label, way in ways.items():
            began = time.perf_counter()
            way()
            if number:
                least[label] = min(least[label], time.perf_counter() - began)
        assert close(found["web"], found["local"]), found
    for label, seconds in least.items():
        print(f"{label}: {seconds:.2f} s")
    print(f"rows that travel: {drained(web):,}")
    web_seconds, local_seconds = least["Spark over the web"], least["Spark over the same Parquet"]
    print(f"over the web beside local: {web_seconds / local_seconds:.2f}x; to reach: 2x")


def local(spark: Any, folder: WebFolder) -> None:
    """Name the tables as the relays do."""
    for table in ROWS:
        frame = spark.read.parquet(*(str(folder.data(relay, table)) for relay in RELAYS))
        frame.toDF(*(name.partition("_")[2] for name in frame.columns)).createOrReplaceTempView(table)


def close(one: list[Any], other: list[Any]) -> bool:
    """Compare answers; prices are doubles on one side."""
    return len(one) == len(other) == 10 and all(
        left.orderkey == right.orderkey and abs(left.revenue / float(right.revenue) - 1) < 1e-9
        for left, right in zip(one, other, strict=True)
    )


def question(web: odfpy.web.Web) -> StartedQuery:
    """Split the query, and ask."""
    return start_query(web.asker, QUERY, time.monotonic() + 60, AnswerOptions(), dialect="spark")


def drained(web: odfpy.web.Web) -> int:
    """The number of rows that come, two parts at a time, as Spark reads them."""
    answers = question(web).answers.values()

    def drain(part: Part) -> int:
        with web.asker.rows(part, 600) as chunks:
            return sum(chunk.data.num_rows for chunk in chunks if chunk.data is not None)

    with ThreadPoolExecutor(2) as threads:
        return sum(threads.map(drain, (part for answer in answers for part in answer.parts)))


def read_in_spark(spark: Any, web: odfpy.web.Web) -> None:
    """Let Spark read the same rows, and do nothing with them."""
    fragments = (
        "SELECT custkey FROM customer WHERE mktsegment = 'BUILDING'",
        "SELECT orderkey, custkey, orderdate, shippriority FROM orders WHERE orderdate < DATE '1995-03-15'",
        "SELECT orderkey, extendedprice, discount FROM lineitem WHERE shipdate > DATE '1995-03-15'",
    )
    for query in fragments:
        odfpy.web.spark_sql(spark, web, query).write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
