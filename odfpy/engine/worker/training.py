"""The training run that makes a start-up cache: Spark starts, serves requests of every kind, and ends.

python -m odfpy.engine.worker.training CACHE [MEMORY]
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.transform import SqlQueryStep, TransformSql
from odfpy.engine.contract import (
    AnalyzeRequest,
    InputSchema,
    SqlRequest,
    SqlTable,
    TransformRequest,
    TransformRequestInput,
    Watermark,
)
from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process.java import JavaRuntime, find_java
from odfpy.engine.spark.process.jvm import spark_home
from odfpy.engine.spark.process.startup_cache import StartupCache
from odfpy.engine.worker.messages import Job
from odfpy.engine.worker.spark_host import SparkHost

_LIMIT_SECONDS: Final = 900
_ROWS: Final = 20

_QUERY: Final = """
SELECT event_time, upper(name) AS name, CAST(amount AS STRING) AS amount, amount * 2.5 AS more,
       CASE WHEN amount > 3 THEN 'large' ELSE 'small' END AS size, round(price, 2) AS price,
       date_trunc('DAY', event_time) AS day, coalesce(name, '-') || '!' AS shown
FROM first WHERE amount >= 0 AND name IS NOT NULL
UNION ALL
SELECT event_time, name, CAST(amount AS STRING), amount * 1.5, 'any', price, event_time, concat(name, '?')
FROM second
"""
_TRANSFORM: Final = TransformSql(
    engine="spark",
    queries=(
        SqlQueryStep(alias="both", query=_QUERY),
        SqlQueryStep(query="SELECT * FROM both LATERAL VIEW explode(split(shown, 'a')) words AS word"),
    ),
)
_SQL: Final = """
SELECT f.name, count(*) AS n, sum(s.amount) AS total, max(f.event_time) AS latest
FROM first f JOIN second s ON f.amount = s.amount GROUP BY f.name ORDER BY f.name
"""


def train(cache: StartupCache, java: JavaRuntime, settings: EngineSettings) -> bool:
    """Make the cache, unless another process is making it; return whether it could be made.

    Args:
        cache: the cache to make.
        java: the Java runtime.
        settings: settings of the engine.
    """
    with cache.attempt() as draft, TemporaryDirectory(prefix="odf-training-") as folder:
        if draft is None:
            return True
        host = SparkHost(settings, java, Path(folder), sys.stderr.fileno(), [f"-XX:AOTCacheOutput={draft}"])
        host.start()
        try:
            for _ in range(2):
                for job in training_jobs(Path(folder)):
                    print(host.serve(job), flush=True)  # noqa: T201
                    host.clean_up()
        finally:
            host.end(_LIMIT_SECONDS)  # Java writes the cache when it ends
        return cache.accept(draft, java, spark_home(), settings.memory)


def training_jobs(folder: Path) -> list[Job]:
    """Return requests of every kind over small files, which are written into the folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = range(_ROWS)
    table = pa.table(
        {
            "offset": pa.array(numbers, pa.int64()),
            "op": pa.array([0] * _ROWS, pa.int32()),
            "system_time": pa.array([0] * _ROWS, pa.timestamp("ms", tz="UTC")),
            "event_time": pa.array([n * 3_600_000 for n in numbers], pa.timestamp("ms", tz="UTC")),
            "name": [f"na{n}ma" for n in numbers],
            "amount": pa.array(numbers, pa.int64()),
            "price": [n / 7 for n in numbers],
        }
    )
    data, schema = str(folder / "data.parquet"), str(folder / "schema.parquet")
    pq.write_table(table, data)
    pq.write_table(table.schema.empty_table(), schema)
    zero, vocab, aliases = Timestamp(0), DEFAULT_VOCABULARY, ("first", "second")
    inputs = tuple(
        TransformRequestInput(
            dataset_id=DatasetId(bytes([number]) * 32),
            dataset_alias=alias,
            query_alias=alias,
            vocab=vocab,
            offset_interval=OffsetInterval(0, _ROWS - 1),
            data_paths=(data,),
            schema_file=schema,
            explicit_watermarks=(Watermark(zero, zero),),
        )
        for number, alias in enumerate(aliases)
    )
    return [
        AnalyzeRequest(_TRANSFORM, vocab, tuple(InputSchema(alias, vocab, schema) for alias in aliases)),
        TransformRequest(
            dataset_id=DatasetId(bytes(32)),
            dataset_alias="training",
            system_time=zero,
            vocab=vocab,
            transform=_TRANSFORM,
            query_inputs=inputs,
            next_offset=0,
            new_checkpoint_path=str(folder / "checkpoint"),
            new_data_path=str(folder / "slice"),
        ),
        SqlRequest(
            _SQL,
            tuple(SqlTable(alias, schema, (data,), DEFAULT_VOCABULARY) for alias in aliases),
            str(folder / "result"),
        ),
    ]


def main(arguments: list[str]) -> int:
    """Run the program."""
    path, *memory = arguments
    signal.alarm(_LIMIT_SECONDS)  # ends this process, and Java with it
    settings = EngineSettings(startup_cache=False, memory=memory[0] if memory else None)
    return 0 if train(StartupCache(Path(path)), find_java(), settings) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
