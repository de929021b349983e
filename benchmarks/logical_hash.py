"""Logical hash against bare SHA3-256 over the very same bytes, on the same number of threads.

    python benchmarks/logical_hash.py [--rows 1000000] [--repeat 7] [--threads 1 2]

A ratio of 1 would mean that turning columns into bytes costs nothing. `wall` compares elapsed times, `cpu` the time
of all processors, which other work on the machine disturbs less. Nothing is asserted on time.
"""

from __future__ import annotations

import argparse
import hashlib
import ssl
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from support import print_machine

from odfpy.data.slices.logical_hash import LogicalHasher, logical_hash_of_parquet
from odfpy.data.slices.value_bytes import value_bytes

LEDGER = "ledger: 7 numbers and times, 2 texts"


def texts(generator: np.random.Generator, rows: int, least: int, most: int) -> pa.Array:
    """Random text of `least` to `most` bytes."""
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(generator.integers(least, most + 1, rows), out=offsets[1:])
    data = generator.integers(97, 123, offsets[-1], dtype=np.uint8)
    return pa.Array.from_buffers(pa.large_string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def tables(rows: int) -> dict[str, pa.Table]:
    generator = np.random.default_rng(7)
    millis = pa.timestamp("ms", "UTC")
    numbers = pa.array(generator.integers(0, 1 << 40, rows))
    floats = pa.array(generator.random(rows))
    short, codes, long = texts(generator, rows, 2, 20), texts(generator, rows, 3, 3), texts(generator, rows, 40, 160)
    items = np.zeros(rows // 4 + 1, np.int32)
    np.cumsum(generator.integers(0, 6, rows // 4), out=items[1:])

    def nulls(array: pa.Array, share: float) -> pa.Array:
        return pc.if_else(pa.array(generator.random(rows) < share), None, array)

    system = {
        "offset": pa.array(np.arange(rows)),
        "op": pa.array(np.zeros(rows, np.int32)),
        "system_time": pa.array(np.full(rows, 1_700_000_000_000)).cast(millis),
        "event_time": pa.array(1_600_000_000_000 + np.arange(rows) * 1000).cast(millis),
    }
    amount = numbers.cast(pa.decimal128(24, 0))
    return {
        LEDGER: pa.table({**system, "id": numbers, "side": codes, "amount": amount, "name": short, "price": floats}),
        "numbers": pa.table({**system, "a": numbers, "b": floats}),
        "numbers, 5 % null": pa.table({"a": nulls(numbers, 0.05), "b": nulls(floats, 0.05)}),
        "numbers, 50 % null": pa.table({"a": nulls(numbers, 0.5), "b": nulls(floats, 0.5)}),
        "booleans, 5 % null": pa.table({"a": nulls(pc.greater(floats, 0.5), 0.05)}),
        "codes of 3 bytes": pa.table({"a": codes}),
        "texts of 2 to 20 bytes": pa.table({"a": short}),
        "texts of 2 to 20 bytes, 5 % null": pa.table({"a": nulls(short, 0.05)}),
        "texts of 40 to 160 bytes": pa.table({"a": long}),
        "lists of 0 to 5 numbers": pa.table({"a": pa.ListArray.from_arrays(pa.array(items), numbers[: items[-1]])}),
    }


def streams(table: pa.Table) -> list[bytes]:
    """What each column's hasher is fed, the longest first."""
    joined = [b"".join(bytes(value_bytes(chunk)) for chunk in column.chunks) for column in table.columns]
    return sorted(joined, key=len, reverse=True)


def bare(data: list[bytes], threads: int) -> None:
    if threads == 1:
        for stream in data:
            hashlib.sha3_256(stream).digest()
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda stream: hashlib.sha3_256(stream).digest(), data))


def logical(table: pa.Table, threads: int) -> None:
    hasher = LogicalHasher(table.schema, threads=threads)
    hasher.update(table)
    hasher.finish()


def least_times(runs: tuple[Callable[[], object], ...], repeat: int) -> list[tuple[float, float]]:
    """Least wall and processor time of each, taken in turns so that all see the same machine."""
    least = [(float("inf"), float("inf"))] * len(runs)
    for _ in range(repeat):
        for at, run in enumerate(runs):
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            spent = time.perf_counter() - wall, time.process_time() - cpu
            least[at] = min(least[at][0], spent[0]), min(least[at][1], spent[1])
    return least


def report(name: str, threads: int, size: int, times: list[tuple[float, float]]) -> None:
    (bare_wall, bare_cpu), (wall, cpu) = times
    print(
        f"{name:40}{threads:8}{size / 1e6:8.0f}{bare_wall:9.3f}{wall:9.3f}{size / wall / 1e9:8.2f}"
        f"{bare_wall / wall:7.2f}{bare_cpu / cpu:7.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    print_machine("pyarrow", "numpy")
    print(f"{ssl.OPENSSL_VERSION}; {options.rows} rows, best of {options.repeat}\n")
    heads = ("threads", "MB", "sha3 s", "logical s", "GB/s", "wall", "cpu")
    print(
        f"{'table':40}" + "".join(f"{head:>{width}}" for head, width in zip(heads, (8, 8, 9, 9, 8, 7, 7), strict=True))
    )
    data = tables(options.rows)
    for name, table in data.items():
        columns = streams(table)
        for threads in options.threads:
            runs = (lambda n=threads, c=columns: bare(c, n), lambda n=threads, t=table: logical(t, n))
            report(name, threads, sum(map(len, columns)), least_times(runs, options.repeat))
    columns = streams(data[LEDGER])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "slice")
        pq.write_table(data[LEDGER], path)
        for threads in options.threads:
            runs = (lambda n=threads: bare(columns, n), lambda n=threads: logical_hash_of_parquet(path, threads=n))
            report(
                "the ledger, decoded from Parquet", threads, sum(map(len, columns)), least_times(runs, options.repeat)
            )


if __name__ == "__main__":
    main()
