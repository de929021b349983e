"""A process that has imported DataFusion and only forks: one child for each request.

Its arguments are the maximum memory of a child in bytes and its own idle timeout in seconds; its standard input is a
socket. Each request arrives there as two descriptors: a socket for the request and the response, and a pipe for the
rows of a query. A child exits with its request, with its client, or when it exceeds its memory; native code cannot be
stopped in any other way. This process reports abnormal exits to the client. See `odfpy.engine.datafusion.isolated`.
"""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from odfpy.extras import do_without_pandas

do_without_pandas()

from odfpy.engine.contract import TransformResponseInternalError  # noqa: E402
from odfpy.engine.datafusion.isolated import PLANNING, PLANNING_MEMORY  # noqa: E402
from odfpy.engine.datafusion.request_handler import answer  # noqa: E402
from odfpy.engine.scans import ScanRequest  # noqa: E402
from odfpy.engine.sql.files import FilesRequest  # noqa: E402
from odfpy.engine.worker.files import files_of  # noqa: E402
from odfpy.engine.worker.job_profile import JobProfile  # noqa: E402
from odfpy.engine.worker.messages import Breakdown, Channel, Job, Result  # noqa: E402
from odfpy.sandbox.landlock import restrict_files  # noqa: E402
from odfpy.sandbox.seccomp import forbid_odd_calls  # noqa: E402
from odfpy.sandbox.view import view_of_python  # noqa: E402
from odfpy.stages import profiling  # noqa: E402

_CHILD_ENDS: Final = frozenset((signal.SIGCHLD,))
_ENDED_FIRST: Final = 500
_IDLE_SECONDS: Final = 0.3
_READS: Final = (*view_of_python(folder=Path("/nowhere")).reads, "/proc/self", "/dev/urandom")
_children: dict[int, socket.socket] = {}


def main() -> None:
    """Fork until the owner is gone."""
    import datafusion  # noqa: F401  imported once, for all children; nothing of it may run here: threads are not forked

    signal.signal(signal.SIGCHLD, _report_exits)
    # The collector of a child would write to every object, and with that copy the memory that all of them share.
    gc.freeze()
    with socket.socket(fileno=sys.stdin.fileno()) as control:
        while (given := _next(control))[0]:
            kind, (asked, rows) = given[0], given[1]
            signal.pthread_sigmask(signal.SIG_BLOCK, _CHILD_ENDS)  # until it is noted
            if (child := os.fork()) == 0:
                control.close()
                _child(asked, rows, is_planning=kind == PLANNING)
            _children[child] = socket.socket(fileno=asked)
            os.close(rows)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _CHILD_ENDS)
            _import_more(control)
    os._exit(0)


def _next(control: socket.socket) -> tuple[bytes, list[int], int, Any]:
    """Return the next request, and its descriptors; nothing when no more will come.

    After an idle period, this process accepts no more requests, and exits after the last one in transit.
    """
    while not select.select([control], [], [], float(sys.argv[2]))[0]:
        if not _children:
            control.shutdown(socket.SHUT_RD)
    return socket.recv_fds(control, 1, 2)


def _import_more(control: socket.socket) -> None:
    """Import modules needed by some requests only, after the first request was forked, and while no other waits."""
    import zoneinfo  # noqa: F401

    import numpy.ma  # noqa: F401

    if not select.select([control], [], [], _IDLE_SECONDS)[0]:
        import sqlglot  # noqa: F401


def _report_exits(_number: int, _frame: object) -> None:
    """Report to the clients of children that exited abnormally."""
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not child:
            return
        code = os.waitstatus_to_exitcode(status)
        with _children.pop(child) as asked, suppress(OSError):  # the client may be gone
            if code:
                asked.setblocking(False)
                Channel(asked).send(Breakdown(signal.Signals(-code).name if code < 0 else str(code)))


def _child(asked: int, rows: int, *, is_planning: bool) -> None:
    """Process one request, and exit."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _CHILD_ENDS)
        # Clients of other children notice their exit only if no other process holds the socket.
        for other in _children.values():
            other.close()
        _limit(int(sys.argv[1]), is_planning=is_planning)
        channel = Channel(socket.socket(fileno=asked))
        request: Job | ScanRequest | FilesRequest | None = channel.receive(Job | ScanRequest | FilesRequest)
        if request is not None:
            _confine(request)
            _end_with_client(channel.socket, wanted=True)
            with profiling("job") as measured:
                response = _response(request, rows)
            # Clients hang up after the response. This process must not exit then as if it had failed.
            _end_with_client(channel.socket, wanted=False)
            os.close(rows)
            channel.send(JobProfile.of(measured))
            channel.send(response)
        code = 0
    finally:
        os._exit(code)


def _confine(request: Job | ScanRequest | FilesRequest) -> None:
    """Drop access to all files but those of the request and of Python, and to all sockets, if the kernel can."""
    files = files_of(request)
    with suppress(OSError):  # a kernel without Landlock
        restrict_files([*_READS, *files.reads], [*files.folders, "/dev/null"])
    forbid_odd_calls(families=())


def _limit(most: int, *, is_planning: bool) -> None:
    most = min(most, PLANNING_MEMORY) if is_planning else most
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # if the machine runs out of memory nevertheless
        Path("/proc/self/oom_score_adj").write_text(str(_ENDED_FIRST))


def _end_with_client(connected: socket.socket, *, wanted: bool) -> None:
    """Have the kernel terminate this process when the client hangs up: by SIGIO, which nothing here handles."""
    flags = fcntl.fcntl(connected, fcntl.F_GETFL)
    fcntl.fcntl(connected, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connected, fcntl.F_SETFL, flags | os.O_ASYNC if wanted else flags & ~os.O_ASYNC)
    if wanted and select.select([connected], [], [], 0)[0]:  # it already had
        os._exit(0)


def _response(request: Job | ScanRequest | FilesRequest, rows: int) -> Result:
    try:
        return answer(request, rows)
    except Exception as error:  # noqa: BLE001 - reported to the client
        return TransformResponseInternalError(f"{type(error).__name__}: {error}", traceback.format_exc())


if __name__ == "__main__":
    main()
