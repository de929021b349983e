"""The comparison as a job in a separate process, in which the incremental engine has not been loaded."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from odfpy.codec.tree import from_tree, to_tree
from odfpy.engine.spark.batch.answer import batch_answer
from odfpy.engine.spark.batch.closed import NotComparable
from odfpy.engine.spark.batch.compare import differences
from odfpy.engine.spark.batch.request import BatchAnswer, BatchRequest
from odfpy.errors import InternalError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_OURS: Final = ("odfpy.engine.spark.incremental", "odfpy.engine.spark.row_by_row")
"""Modules that an independent verification must not use."""


def compare(spark: SparkSession, arguments: str) -> str:
    """Answer a `BatchRequest` with a `BatchAnswer`, both as JSON.

    Raises:
        InternalError: the process has loaded the code that it is to verify.
        InvalidQuery, UnsupportedQuery, EngineError: as for `batch_answer`.
    """
    loaded = sorted(name for name in sys.modules if name.startswith(NOT_OURS))
    if loaded:
        raise InternalError(f"The batch has loaded what it is to check: {loaded[0]}")
    request: BatchRequest = from_tree(BatchRequest, json.loads(arguments))
    return json.dumps(to_tree(compare_output(spark, request)))


def compare_output(spark: SparkSession, request: BatchRequest) -> BatchAnswer:
    """Compare an output with the expected one, in any process; raises the errors of `batch_answer`."""
    run = request.run
    with TemporaryDirectory(prefix="batch-", dir=Path(run.new_data_path).parent) as folder:
        scratch = Path(folder)
        try:
            answer = batch_answer(spark, run, scratch)
        except NotComparable as error:
            return BatchAnswer(obstacle=str(error))
        return differences(spark, run, request.output, answer, scratch, request.most)
