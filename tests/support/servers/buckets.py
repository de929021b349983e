"""Object stores on the loopback interface, each a real server in a separate process: it ends with its standard input.

S3 is moto's server, and Google Cloud Storage `gcp-storage-emulator`, each with what it lacks: one request after the
other where it would look at a condition and write in two steps; for the latter the conditions themselves.

Some buckets and some people are treated in a special way:
    careless    conditions of writes are overlooked, as some servers do that speak the protocol of S3
    lossy       the connection breaks before the answer to the first write of each object
    readonly    nothing can be written
    stranger    an access key of S3 that nobody knows
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from support.servers.server_process import server

BUCKETS = ("data", "careless", "lossy", "readonly")

_S3 = """
import socket, sys, threading
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import make_server

lock, lost = threading.Lock(), set()
moto = DomainDispatcherApplication(create_backend_app)

def refuse(start, code):
    body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    start("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]

def app(environ, start):
    bucket = environ["PATH_INFO"].split("/")[1]
    method = environ["REQUEST_METHOD"]
    writes = method in ("PUT", "POST", "DELETE")
    if "Credential=stranger/" in environ.get("HTTP_AUTHORIZATION", ""):
        return refuse(start, "InvalidAccessKeyId")
    if bucket == "readonly" and writes and not environ["PATH_INFO"].strip("/") == bucket:
        return refuse(start, "AccessDenied")
    if bucket == "careless":
        environ.pop("HTTP_IF_MATCH", None)
        environ.pop("HTTP_IF_NONE_MATCH", None)
    with lock:
        answer = moto(environ, start)
    if bucket == "lossy" and writes and environ["PATH_INFO"].count("/") > 1:
        # The first write that has a condition that could hold is the one that matters.
        key = (method, environ["PATH_INFO"])
        if "0000000000" not in environ.get("HTTP_IF_MATCH", "") and key not in lost:
            lost.add(key)
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return answer

server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for name in sys.argv[1:]:
    s3_backends["123456789012"]["aws"].create_bucket(name, "us-east-1")
print(server.port, flush=True)
sys.stdin.read()
"""

_GCS = """
import sys, threading
from functools import partial
from http import HTTPStatus
from http.server import HTTPServer
from gcp_storage_emulator import server as emulator
from gcp_storage_emulator.exceptions import NotFound
from gcp_storage_emulator.handlers import buckets, objects
from gcp_storage_emulator.storage import Storage

def generation(storage, bucket, name):
    try:
        return storage.get_file_obj(bucket, name)["generation"]
    except NotFound:
        return "0"

def conditional(handler):
    def handle(request, response, storage, *args, **kwargs):
        bucket, wanted = request.params["bucket_name"], request.query.get("ifGenerationMatch")
        name = request.params.get("object_id") or request.query.get("name", [None])[0]
        if bucket == "readonly":
            refuse(response, 403)
        elif wanted and generation(storage, bucket, name) != wanted[0]:
            refuse(response, 412)
        else:
            handler(request, response, storage, *args, **kwargs)
    return handle

def refuse(response, status):
    response.status = HTTPStatus(status)
    response.json({"error": {"code": status, "message": "no"}})

def cancel(request, response, storage, *args, **kwargs):
    response.status = HTTPStatus.NO_CONTENT  # what was sent for an object that is not going to be

for _, methods in emulator.HANDLERS:
    if objects.upload_partial in methods.values():
        methods["DELETE"] = cancel
emulator.HANDLERS = tuple(
    (path, {method: conditional(handler) if handler in (objects.insert, objects.delete) else handler
            for method, handler in methods.items()})
    for path, methods in emulator.HANDLERS
)
storage = Storage(use_memory_fs=True)
for name in sys.argv[1:]:
    buckets.create_bucket(name, storage)
server = HTTPServer(("127.0.0.1", 0), partial(emulator.RequestHandler, storage))
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
"""


@contextmanager
def s3_buckets() -> Iterator[str]:
    """An S3 server with the buckets; gives host and port."""
    with server(_S3, *BUCKETS) as port:
        yield f"127.0.0.1:{port}"


@contextmanager
def gcs_buckets() -> Iterator[str]:
    """A server of Google Cloud Storage with the buckets; gives its URL."""
    with server(_GCS, *BUCKETS) as port:
        yield f"http://127.0.0.1:{port}"
