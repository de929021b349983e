"""A process that has imported DataFusion and otherwise does nothing but fork itself: one child for each query.

    python -m odfpy.engine.datafusion.fork_server BYTES

Its standard input is a socket, over which each query comes as two descriptors: a socket, for the request and the
response, and a pipe, for the rows. The child ends with its query, with whoever asked, or when it wants more than so
many bytes of memory; native code cannot be ended in any other way. See `odfpy.engine.datafusion.apart`.
"""

from __future__ import annotations

import fcntl
import gc
import io
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from odfpy.engine.contract import SqlRequest, SqlResponse, SqlResponseSuccess, TransformResponseInternalError
from odfpy.engine.datafusion import failures, session  # noqa: F401  imported once, for all children
from odfpy.engine.datafusion.ad_hoc import DataFusionRows
from odfpy.engine.messages import Channel, Job
from odfpy.engine.responses import answered, with_files
from odfpy.engine.scans import ScanRequest, scanned
from odfpy.errors import ResultTooLarge

_PIECE_BYTES: Final = 8 << 20
_ROW_BYTES: Final = 64 << 20


def main() -> None:
    """Fork until whoever has started this is gone."""
    import datafusion  # noqa: F401  as above; nothing of it may run here, since threads are not forked
    import sqlglot  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for children
    gc.freeze()
    with socket.socket(fileno=sys.stdin.fileno()) as control:
        while (given := socket.recv_fds(control, 1, 2))[0]:
            descriptors = given[1]
            if os.fork() == 0:
                control.close()
                _child(*descriptors)
            for descriptor in descriptors:
                os.close(descriptor)


def _child(asked: int, rows: int) -> None:
    """Answer one query, and end."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        most = int(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        channel = Channel(socket.socket(fileno=asked))
        request = channel.receive(Job | ScanRequest)
        if isinstance(request, SqlRequest | ScanRequest):
            _end_with_client(channel.socket, wanted=True)
            response = _response(request, rows)
            _end_with_client(channel.socket, wanted=False)
            channel.send(response)
    finally:
        os._exit(0)


def _end_with_client(connected: socket.socket, *, wanted: bool) -> None:
    """Have the system end this process when the client hangs up: by SIGIO, which nobody here handles."""
    flags = fcntl.fcntl(connected, fcntl.F_GETFL)
    fcntl.fcntl(connected, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connected, fcntl.F_SETFL, flags | os.O_ASYNC if wanted else flags & ~os.O_ASYNC)
    if wanted and select.select([connected], [], [], 0)[0]:  # it was before
        os._exit(0)


def _response(request: SqlRequest | ScanRequest, rows: int) -> SqlResponse:
    try:
        return answered(lambda: with_files(lambda: _write(request, rows)))
    except Exception as error:  # noqa: BLE001 - the client is told
        return TransformResponseInternalError(f"{type(error).__name__}: {error}", traceback.format_exc())


def _write(request: SqlRequest | ScanRequest, rows: int) -> SqlResponseSuccess:
    """Write the rows as an Arrow IPC stream, its schema before the first of them is there."""
    count = 0
    with io.FileIO(rows, "w") as pipe:
        schema, found = _answer(request)
        with pa.ipc.new_stream(pa.PythonFile(pipe, "w"), schema) as writer:
            writer.write_batch(pa.RecordBatch.from_pylist([], schema=schema))
            for batch in found:
                for piece in _pieces(batch):
                    writer.write_batch(piece)
                count += batch.num_rows
    return SqlResponseSuccess(count)


def _answer(request: SqlRequest | ScanRequest) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    if isinstance(request, ScanRequest):
        return request.arrow_schema(), scanned(request)
    rows = DataFusionRows(request)
    return rows.schema, rows


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in batches that their reader, which is a server, has room for.

    Raises:
        ResultTooLarge: a row has more bytes than that.
    """
    if batch.nbytes <= _PIECE_BYTES:
        yield batch
    elif batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))
    elif batch.nbytes <= _ROW_BYTES:
        yield batch
    else:
        raise ResultTooLarge(
            f"A row has {batch.nbytes} bytes, and may have {_ROW_BYTES}",
            hint="Ask for other columns, or for a part of what is in them.",
        )


if __name__ == "__main__":
    main()
