"""A stand-in for Trino: its HTTP protocol, page by page, over DuckDB."""

from __future__ import annotations

import base64
import itertools
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

_ROWS = 4096


@dataclass
class _Query:
    """A running query: its columns, and its remaining pages."""

    columns: list[dict[str, Any]]
    pages: Iterator[pa.RecordBatch]
    is_cancelled: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class TrinoStandIn(ThreadingHTTPServer):
    """The server.

    Attributes:
        cancelled: how many queries were cancelled.
    """

    daemon_threads = True

    def __init__(self, database: Path, password: str | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.database = duckdb.connect(database, read_only=True)
        self.password = password
        self.queries: dict[str, _Query] = {}
        self.numbers = itertools.count()
        self.cancelled = 0
        self.scheme = "http"

    def begin(self, text: str) -> str:
        (translated,) = sqlglot.transpile(text, read="trino", write="duckdb", identify=True)
        reader = self.database.cursor().sql(translated).to_arrow_reader(_ROWS)
        name = f"q{next(self.numbers)}"
        self.queries[name] = _Query([_column(one) for one in reader.schema], iter(reader))
        return name


class _Handler(BaseHTTPRequestHandler):
    server: TrinoStandIn
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if not self._is_known():
            return
        try:
            name = self.server.begin(text)
        except Exception as error:  # noqa: BLE001  what it says is what Trino would say
            failure = {"message": str(error), "errorCode": 1, "errorName": "SYNTAX_ERROR", "errorType": "USER_ERROR"}
            self._send({"id": "x", "infoUri": "x", "stats": {"state": "FAILED"}, "error": failure})
            return
        self._send({"id": name, "infoUri": "x", "stats": {"state": "QUEUED"}, "nextUri": self._next(name, 0)})

    def do_GET(self) -> None:
        _, _, _, _, name, number = self.path.split("/")
        query = self.server.queries[name]
        answer: dict[str, Any] = {"id": name, "infoUri": "x", "columns": query.columns, "stats": {"state": "RUNNING"}}
        with query.lock:
            if query.is_cancelled:
                failure = {
                    "message": "cancelled",
                    "errorCode": 2,
                    "errorName": "USER_CANCELED",
                    "errorType": "USER_ERROR",
                }
                self._send({**answer, "error": failure})
                return
            try:
                page = next(query.pages, None)
            except Exception as error:  # noqa: BLE001
                failure = {"message": str(error), "errorCode": 3, "errorName": "CAST", "errorType": "USER_ERROR"}
                self._send({**answer, "error": failure})
                return
        if page is None:
            self._send({**answer, "stats": {"state": "FINISHED"}})
        else:
            self._send({**answer, "data": _rows(page), "nextUri": self._next(name, int(number) + 1)})

    def do_DELETE(self) -> None:
        name = self.path.split("/")[4]
        self.server.queries[name].is_cancelled = True
        self.server.cancelled += 1
        self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None: ...

    def _is_known(self) -> bool:
        wanted = self.server.password
        given = self.headers.get("Authorization", "")
        if wanted is None or given == "Basic " + base64.b64encode(f"ann:{wanted}".encode()).decode():
            return True
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def _next(self, name: str, number: int) -> str:
        return f"{self.server.scheme}://127.0.0.1:{self.server.server_port}/v1/statement/executing/{name}/{number}"

    def _send(self, tree: Any) -> None:
        data = json.dumps(tree).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _column(column: pa.Field) -> dict[str, Any]:
    types, kind = pa.types, column.type
    arguments: list[int] = []
    if types.is_decimal(kind):
        raw, arguments = "decimal", [kind.precision, kind.scale]
    elif types.is_timestamp(kind):
        raw, arguments = "timestamp", [6]
    elif types.is_string(kind):
        raw, arguments = "varchar", [2**31 - 1]
    else:
        names = {"int32": "integer", "int64": "bigint", "double": "double", "bool": "boolean"}
        raw = {**names, "date32[day]": "date"}[str(kind)]
    text = f"{raw}({','.join(map(str, arguments))})" if arguments and raw != "varchar" else raw
    signature = {"rawType": raw, "arguments": [{"kind": "LONG", "value": one} for one in arguments]}
    return {"name": column.name, "type": text, "typeSignature": signature}


def _rows(page: pa.RecordBatch) -> list[list[Any]]:
    def plain(value: Any) -> Any:
        return value if value is None or isinstance(value, bool | int | float | str) else str(value)

    return [[plain(value) for value in row.values()] for row in page.to_pylist()]


@contextmanager
def trino_stand_in(
    database: Path, *, password: str | None = None, tls: tuple[Path, Path] | None = None
) -> Iterator[TrinoStandIn]:
    """A server over a database of DuckDB.

    Args:
        database: file of the database.
        password: password of the user ann; None permits anonymous access.
        tls: files of its certificate and key.
    """
    server = TrinoStandIn(database, password)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.scheme = "https"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        server.queries.clear()
        server.database.close()
