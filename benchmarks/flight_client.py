"""`spark.read.format("flight")` beside bare pyarrow Flight over loopback, and two endpoints beside one.

A third measure is Spark's own: a source in Python that has the same batches in memory, and asks nobody.

    .venv/bin/python benchmarks/flight_client.py [--rows 5000000] [--rounds 3]

The server is a plain one, in processes of its own. Spark counts bytes that it has looked at, with a filter that lets no
row go: rows reach Spark's operators, and no other process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow.flight as fl

PROGRAM = """
import sys
import numpy as np, pyarrow as pa, pyarrow.flight as fl

rows, endpoints = int(sys.argv[1]), int(sys.argv[2])

class Server(fl.FlightServerBase):
    def get_flight_info(self, context, descriptor):
        count = int(descriptor.command)
        tickets = [fl.FlightEndpoint(f"{number} {count}", []) for number in range(count)]
        return fl.FlightInfo(batches[0].schema, descriptor, tickets, rows, -1)

    def do_get(self, context, ticket):
        number, count = map(int, ticket.ticket.split())
        return fl.GeneratorStream(batches[0].schema, iter(batches[number::count]))

ids = np.arange(rows)
table = pa.table({"id": ids, "value": ids / 7, "number": (ids % 1000).astype("int32"), "time": ids.astype("M8[us]")})
batches = table.to_batches(65536)
server = Server("grpc://127.0.0.1:0")
print(f"grpc://127.0.0.1:{server.port}", flush=True)
server.serve()
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
    spark = builder.config("spark.ui.enabled", "false").config("spark.log.level", "OFF").getOrCreate()
    with server(arguments.rows) as url:
        measure(spark, url, arguments.rows, arguments.rounds)
    spark.stop()


@contextmanager
def server(rows: int) -> Iterator[str]:
    """A server in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, str(rows), "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def measure(spark: Any, url: str, rows: int, rounds: int) -> None:
    """All rows: bare with one stream and with two, the client, and Spark with one endpoint and with two."""
    from odfpy.flight import FlightService, PlainCommands, Request
    from odfpy.flight.spark import register

    register(spark)

    def bare(endpoints: int) -> int:
        client = fl.connect(url)
        info = client.get_flight_info(fl.FlightDescriptor.for_command(str(endpoints)))
        found: list[int] = []

        def drain(ticket: Any) -> None:
            found.append(sum(chunk.data.num_rows for chunk in client.do_get(ticket)))

        threads = [threading.Thread(target=drain, args=(one.ticket,)) for one in info.endpoints]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(found)

    def client() -> int:
        stream = FlightService(url, PlainCommands()).stream(Request("1"))
        return sum(batch.num_rows for batch in stream)

    spark.dataSource.register(in_memory(rows))
    memory = spark.read.format("memory").load()
    frames = {
        endpoints: spark.read.format("flight")
        .options(**{"arrow-flight.server": url, "arrow-flight.protocol": "plain"})
        .load(str(endpoints))
        for endpoints in (1, 2)
    }

    def in_spark(frame: Any) -> int:
        frame.write.format("noop").mode("overwrite").save()
        return rows

    ways: dict[str, Callable[[], int]] = {
        "bare pyarrow, one endpoint": lambda: bare(1),
        "bare pyarrow, two endpoints": lambda: bare(2),
        "odfpy.flight, one endpoint": client,
        "Spark, one endpoint": lambda: in_spark(frames[1]),
        "Spark, two endpoints": lambda: in_spark(frames[2]),
        "Spark, a source in memory": lambda: in_spark(memory),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds + 1):  # the first one warms up
        for label, read in ways.items():
            began = time.perf_counter()
            assert read() == rows, label
            least[label] = min(least[label], time.perf_counter() - began)
    for label, seconds in least.items():
        print(f"{label}: {seconds:.2f} s, {rows / seconds / 1e6:.1f} million rows/s")
    one, two = least["Spark, one endpoint"], least["Spark, two endpoints"]
    print(f"Spark beside bare pyarrow: {least['bare pyarrow, one endpoint'] / one:.2f}x; to reach: 0.8x")
    print(f"Spark beside a source in memory: {least['Spark, a source in memory'] / one:.2f}x")
    print(f"two endpoints beside one: {one / two:.2f}x; to reach: 1.7x")


def in_memory(rows: int) -> Any:
    """A source of batches like those of the server: one batch, again and again."""
    from pyspark.sql.datasource import DataSource, DataSourceReader

    class Reader(DataSourceReader):
        def read(self, partition: Any) -> Iterator[Any]:
            import numpy as np
            import pyarrow as pa

            del partition
            ids = np.arange(65536)
            values = {"id": ids, "value": ids / 7, "number": ids.astype("int32"), "time": ids.astype("M8[us]")}
            batch = pa.RecordBatch.from_pydict(values)
            return (batch.slice(0, min(rows - start, len(ids))) for start in range(0, rows, len(ids)))

    class Memory(DataSource):
        @classmethod
        def name(cls) -> str:
            return "memory"

        def schema(self) -> str:
            return "id BIGINT, value DOUBLE, number INT, time TIMESTAMP_NTZ"

        def reader(self, schema: Any) -> DataSourceReader:
            del schema
            return Reader()

    return Memory


if __name__ == "__main__":
    main()
