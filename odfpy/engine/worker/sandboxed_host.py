"""The process in the sandbox: Spark, connected only to the worker outside, which started it.

Two sockets lead outside: one for jobs, which are done one after the other; the other for questions in between.
"""

from __future__ import annotations

import socket
import threading
import traceback

from odfpy.engine.contract import TransformResponseInternalError
from odfpy.engine.worker.job_profile import JobProfile
from odfpy.engine.worker.messages import (
    Breakdown,
    Channel,
    HostMessage,
    HostQuery,
    HostQueryKind,
    HostReply,
    Job,
    Result,
    Started,
    StartPart,
)
from odfpy.engine.worker.spark_host import SparkHost
from odfpy.errors import MalformedData, OdfError
from odfpy.stages import profiling


def serve(host: SparkHost, jobs: socket.socket, questions: socket.socket) -> int:
    """Start Spark and do jobs until the connection ends; return an exit code.

    Args:
        host: Spark.
        jobs: the socket for jobs.
        questions: the socket for questions in between.
    """
    channel = Channel(jobs)
    try:
        host.start()
    except OdfError as error:
        channel.send(Breakdown.of(error))
        return 1
    threading.Thread(target=_answer, args=(host, Channel(questions)), daemon=True).start()
    parts = tuple(StartPart(name, int(seconds * 1000)) for name, seconds in host.timings.items())
    channel.send(Started(host.java_pid or 0, host.uses_cache, parts))
    try:
        while (job := channel.receive(Job)) is not None:
            with profiling("job") as measured:
                result = _serve_job(host, job)
            channel.send(JobProfile.within(measured))
            channel.send(result)
            host.clean_up()
    finally:
        host.end()
    return 0


def _serve_job(host: SparkHost, job: Job) -> Result:
    try:
        return host.serve(job)
    except Exception as error:  # noqa: BLE001  a bug in an operation must not end the engine
        return TransformResponseInternalError(f"{type(error).__name__}: {error}", traceback.format_exc())


def _answer(host: SparkHost, channel: Channel) -> None:
    try:
        while isinstance(query := channel.receive(HostMessage), HostQuery):
            try:
                reply = _reply(host, query)
            except Exception:  # noqa: BLE001  Spark may be dying
                reply = HostReply()
            channel.send(reply)
    except (OSError, MalformedData):
        pass  # the worker has ended, so this process will end, too


def _reply(host: SparkHost, asked: HostQuery) -> HostReply:
    match asked.what:
        case HostQueryKind.TASKS:
            return HostReply(host.tasks())
        case HostQueryKind.CANCEL:
            host.cancel()
        case HostQueryKind.SETTLES:
            return HostReply((int(host.settles(asked.millis / 1000)),))
        case HostQueryKind.DEATH:
            return HostReply(text=host.death(suspected=asked.millis > 0))
    return HostReply()
