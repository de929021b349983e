"""Real servers for tests, each in a separate process: it ends with its standard input."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_S3 = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""

_FTP = """
import logging, sys, threading
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer
logging.basicConfig(level=logging.ERROR)
class Handler(FTPHandler):
    authorizer = DummyAuthorizer()
    auth_failed_timeout = 0
Handler.authorizer.add_anonymous(sys.argv[1])
Handler.authorizer.add_user("alice", "s3cr3t", sys.argv[1])
server = FTPServer(("127.0.0.1", 0), Handler)
print(server.address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
"""


@contextmanager
def server(program: str, *arguments: str) -> Iterator[int]:
    """Run a program that prints its port; gives the port."""
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(30)


@contextmanager
def s3_server() -> Iterator[str]:
    """An S3 server without objects; gives its URL."""
    with server(_S3) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def ftp_server(folder: str) -> Iterator[str]:
    """An FTP server of a folder, for everybody and for alice (s3cr3t); gives host and port."""
    with server(_FTP, folder) as port:
        yield f"127.0.0.1:{port}"
