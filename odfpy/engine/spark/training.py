"""The training run that makes a start-up cache: Spark starts, serves requests of every kind, ends.

python -m odfpy.engine.spark.training CACHE [MEMORY]
"""

from __future__ import annotations

import signal
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.transform import SqlQueryStep, TransformSql
from odfpy.engine.contract import (
    AnalyzeRequest,
    InputSchema,
    OffsetInterval,
    SqlRequest,
    SqlTable,
    TransformRequest,
    TransformRequestInput,
    Watermark,
)
from odfpy.engine.java import JavaRuntime, find_java
from odfpy.engine.messages import Job
from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.host import SparkHost
from odfpy.engine.spark.jvm import spark_home
from odfpy.engine.spark.startup_cache import StartupCache

_LIMIT_SECONDS: Final = 900
_ROWS: Final = 20
_HOUR: Final = 3_600_000

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
_STATEFUL: Final = TransformSql(
    engine="spark",
    queries=(
        SqlQueryStep(
            alias="windows",
            query="SELECT window.start AS event_time, name, count(*) AS n, sum(amount) AS total, avg(price) AS mean,"
            " max(amount) AS most FROM first GROUP BY window(event_time, '2 hours'), name",
        ),
        SqlQueryStep(
            query="SELECT w.event_time, w.name, w.n, w.total, w.mean, s.price FROM windows w LEFT JOIN second s"
            " ON w.name = s.name AND s.event_time BETWEEN w.event_time AND w.event_time + INTERVAL 1 DAY"
        ),
    ),
)
_SQL: Final = """
SELECT f.name, count(*) AS n, sum(s.amount) AS total, max(f.event_time) AS latest
FROM first f JOIN second s ON f.amount = s.amount GROUP BY f.name ORDER BY f.name
"""


def train(cache: StartupCache, java: JavaRuntime, settings: EngineSettings) -> bool:
    """Make the cache, unless another process is at it; whether it could be made."""
    with cache.attempt() as draft, TemporaryDirectory(prefix="odf-training-") as folder:
        if draft is None:
            return True
        host = SparkHost(settings, java, Path(folder), sys.stderr.fileno(), [f"-XX:AOTCacheOutput={draft}"])
        host.start()
        try:
            for _ in range(2):
                for job in training_jobs(Path(folder)):
                    print(host.serve(job), flush=True)  # noqa: T201
        finally:
            host.end(_LIMIT_SECONDS)  # Java writes the cache when it ends
        return cache.accept(draft, java, spark_home())


def training_jobs(folder: Path) -> list[Job]:
    """Requests of every kind over small files, which are written into the folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = range(_ROWS)
    table = pa.table(
        {
            "offset": pa.array(whole, pa.int64()),
            "op": pa.array([0] * _ROWS, pa.int32()),
            "system_time": pa.array([0] * _ROWS, pa.timestamp("ms", tz="UTC")),
            "event_time": pa.array([n * _HOUR for n in whole], pa.timestamp("ms", tz="UTC")),
            "name": [f"na{n}ma" for n in whole],
            "amount": pa.array(whole, pa.int64()),
            "price": [n / 7 for n in whole],
        }
    )
    data, schema = str(folder / "data.parquet"), str(folder / "schema.parquet")
    pq.write_table(table, data)
    pq.write_table(table.schema.empty_table(), schema)
    zero, vocab, aliases = Timestamp(0), DEFAULT_VOCABULARY, ("first", "second")
    half, whole_day = _ROWS // 2, Timestamp.from_millis(24 * _HOUR)

    def inputs(
        first: int, last: int, watermark: Timestamp, before: Timestamp | None
    ) -> tuple[TransformRequestInput, ...]:
        return tuple(
            TransformRequestInput(
                dataset_id=DatasetId(bytes([number]) * 32),
                dataset_alias=alias,
                query_alias=alias,
                vocab=vocab,
                offset_interval=OffsetInterval(first, last),
                data_paths=(data,),
                schema_file=schema,
                explicit_watermarks=(Watermark(zero, watermark),),
                prev_offset=first - 1 if first else None,
                prev_watermark=before,
            )
            for number, alias in enumerate(aliases)
        )

    def transform(sql: TransformSql, name: str, query_inputs: tuple[TransformRequestInput, ...]) -> TransformRequest:
        return TransformRequest(
            dataset_id=DatasetId(bytes(32)),
            dataset_alias="training",
            system_time=zero,
            vocab=vocab,
            transform=sql,
            query_inputs=query_inputs,
            next_offset=0,
            new_checkpoint_path=str(folder / f"{name}-checkpoint"),
            new_data_path=str(folder / name),
        )

    until = Timestamp.from_millis((half - 1) * _HOUR)
    follows = replace(
        transform(_STATEFUL, "follows", inputs(half, _ROWS - 1, whole_day, until)),
        prev_checkpoint_path=str(folder / "begins-checkpoint"),
    )
    return [
        AnalyzeRequest(_TRANSFORM, vocab, tuple(InputSchema(alias, vocab, schema) for alias in aliases)),
        transform(_TRANSFORM, "slice", inputs(0, _ROWS - 1, zero, None)),
        transform(_STATEFUL, "begins", inputs(0, half - 1, until, None)),
        follows,
        SqlRequest(
            _SQL,
            tuple(SqlTable(alias, schema, (data,), DEFAULT_VOCABULARY) for alias in aliases),
            str(folder / "result"),
        ),
    ]


def main(arguments: list[str]) -> int:
    """The program."""
    path, *memory = arguments
    signal.alarm(_LIMIT_SECONDS)  # ends this process, and Java with it
    settings = EngineSettings(startup_cache=False, memory=memory[0] if memory else None)
    return 0 if train(StartupCache(Path(path)), find_java(), settings) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
