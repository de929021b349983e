"""The Spark engine in the test process: its operations without worker, socket and sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.queries.cases import QUICK, Tuned

from odfpy.dataset.transform import TransformSql
from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.contract import (
    AnalyzeRequest,
    AnalyzeResponse,
    SqlRequest,
    SqlResponse,
    SqlResponseSuccess,
    TransformRequest,
    TransformResponse,
)
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.engine.registry import Engine, EngineRegistry
from odfpy.engine.responses import as_error
from odfpy.engine.row_stream import RowStream, Spooled
from odfpy.engine.spark.execution.operations import analyze, sql, transform
from odfpy.engine.spark.process.session import version_of
from odfpy.engine.spark.provenance.operation import trace
from odfpy.engine.tracing import TraceRequest, TraceResponse


@dataclass
class SparkHere:
    """The engine.

    Attributes:
        spark: the session.
        asked: the requests for runs so far.
    """

    spark: Any
    asked: list[TransformRequest]
    name: str = "spark"

    @property
    def version(self) -> str:
        return version_of(self.spark)

    def with_cancellation(self, token: CancellationToken) -> SparkHere:
        del token  # jobs in this process end by themselves
        return self

    def analyze(self, request: AnalyzeRequest) -> AnalyzeResponse:
        return analyze(self.spark, request)

    def transform(self, request: TransformRequest) -> TransformResponse:
        self.asked.append(request)
        return transform(self.spark, request)

    def sql(self, request: SqlRequest) -> SqlResponse:
        return sql(self.spark, request)

    def stream(self, request: SqlRequest, control: CancellationToken) -> RowStream:
        def write() -> None:
            response = self.sql(request)
            if not isinstance(response, SqlResponseSuccess):
                raise as_error(response)

        return Spooled(Path(request.output_path), write, control)

    def trace(self, request: TraceRequest) -> TraceResponse:
        return trace(self.spark, request)

    def preprocess(
        self, transform: TransformSql, tables: Mapping[str, pa.Table], *, spool: Path | None = None
    ) -> pa.Table:
        raise NotImplementedError


def in_place(monkeypatch: pytest.MonkeyPatch, spark: Any) -> SparkHere:
    """Make workspaces use a session of this process."""
    here = SparkHere(Tuned(spark, **QUICK), [])

    def registry(*_: object, **__: object) -> EngineRegistry:
        def give() -> Engine:
            return here

        return EngineRegistry({"spark": give, "datafusion": DataFusionEngine})

    monkeypatch.setattr(EngineRegistry, "standard", registry)
    return here
