"""Jobs: functions that run in the engine's worker and use Spark, but are not operations of the engine.

They belong to packages that the engine does not know, or must not share a process with its operations. Only functions
of the modules in `PLACES` are run, and their errors are passed back.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from odfpy.codec.errors import as_value, error_of
from odfpy.engine.contract import JobRequest, JobResponseDone
from odfpy.errors import InternalError, OdfError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACES: Final = ("odfpy.ingest.lanes.", "odfpy.engine.spark.batch.")
"""Where the functions of jobs may be. A job is called with a session of its own and the arguments of the request."""


def run_job(spark: SparkSession, request: JobRequest) -> JobResponseDone:
    """Run a job in the worker."""
    module, _, name = request.function.partition(":")
    if not module.startswith(PLACES):
        raise InternalError(f"{request.function} is not a job")
    from odfpy.engine.spark.process.session import request_session

    try:
        return JobResponseDone(result=getattr(import_module(module), name)(request_session(spark), request.arguments))
    except OdfError as error:
        return JobResponseDone(error=as_value(error))


def result_of(response: JobResponseDone) -> str:
    """Return the result of a job.

    Raises:
        OdfError: the error that the job raised.
    """
    if response.error is not None:
        raise error_of(response.error)
    return response.result or ""
