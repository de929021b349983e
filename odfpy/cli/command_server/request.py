"""Requests: a client sends its descriptors and its other process attributes to the server."""

from __future__ import annotations

import marshal
import os
import socket
import sys
from collections.abc import Collection
from typing import Final, TypedDict

from odfpy.cli.command_server import process_identity

READY: Final = b"r"
"""Sent by the process of a command when it waits for a message of the client."""

_MAX_DESCRIPTORS: Final = 253
_SIZE_BYTES: Final = 8


class Request(TypedDict):
    """The description of a command."""

    python: str
    """The Python part of its identity."""
    argv: list[str]
    orig_argv: list[str]
    environment: dict[str, str]
    umask: int
    numbers: list[int]
    """The numbers of its descriptors; the descriptors that are sent have other numbers."""
    ignored: list[int]
    """Signals that the client ignores."""
    blocked: list[int]
    """Signals that the client blocks."""


def descriptors() -> list[int]:
    """Return the open descriptors of this process."""
    found = map(int, os.listdir("/proc/self/fd"))  # noqa: PTH208 - pathlib takes longer than all that a client does
    return [number for number in found if _is_open(number)]


def _is_open(number: int) -> bool:
    """Return whether a descriptor is open. The descriptor that listed the folder is already closed."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def describe(numbers: list[int], ignored: Collection[int], blocked: Collection[int]) -> Request:
    """Describe the command of this process.

    Args:
        numbers: numbers of its descriptors.
        ignored: signals that it ignores.
        blocked: signals that it blocks.
    """
    umask = os.umask(0o077)
    os.umask(umask)
    return Request(
        python=process_identity.of_python(),
        argv=sys.argv,
        orig_argv=sys.orig_argv,
        environment=dict(os.environ),
        umask=umask,
        numbers=numbers,
        ignored=[*map(int, ignored)],
        blocked=[*map(int, blocked)],
    )


def send(connection: socket.socket, request: Request) -> None:
    """Send a request, with its descriptors and a descriptor of the current folder.

    Raises:
        OSError: the peer is gone, or the system forbids it.
    """
    content = marshal.dumps({**request})  # both processes run the same Python
    folder = os.open(".", os.O_PATH | os.O_DIRECTORY)
    try:
        size = len(content).to_bytes(_SIZE_BYTES, "big")
        socket.send_fds(connection, [size], [folder, *request["numbers"]])
    finally:
        os.close(folder)
    connection.sendall(content)


def receive(connection: socket.socket) -> tuple[Request, int, list[int]]:
    """Receive a request. Return it with a descriptor of its folder, and its other descriptors.

    Raises:
        OSError: the client has hung up.
    """
    size, (folder, *given), _, _ = socket.recv_fds(connection, _SIZE_BYTES, _MAX_DESCRIPTORS, socket.MSG_WAITALL)
    content = bytearray()
    while missing := int.from_bytes(size, "big") - len(content):
        part = connection.recv(missing)
        if not part:
            raise ConnectionResetError
        content += part
    return marshal.loads(content), folder, given  # noqa: S302 - from a process of the same user
