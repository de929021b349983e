"""The process of a command: forked from the server, it takes over all process attributes of the client.

A second process, forked before it, waits for its exit. So running commands depend neither on the server nor on each
other, and the server waits for none of them.
"""

from __future__ import annotations

import fcntl
import io
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn

from odfpy.cli import interruptions, lifetime
from odfpy.cli.command_server import process_identity
from odfpy.cli.command_server.request import READY, Request, descriptors, receive

_MAX_SIGNALS: Final = 256
_CREDENTIALS: Final = 12
_STANDARD_ERROR: Final = 2


def serve_client(connection: socket.socket, own_identity: tuple[str, str]) -> list[int]:
    """Serve one client. Returns only in the process of the command, with the signals blocked in it.

    Args:
        connection: connection to the client; all signals are blocked.
        own_identity: identity of the server: its process part and its Python part.
    """
    try:
        # The watching process is in the client's group, too, and a child of no process in this session. Otherwise the
        # system would take its parent for one that can continue the group, and Ctrl-Z would stop the group where nobody
        # continues it.
        if os.fork():
            os._exit(0)
        client = _peer(connection)
        if own_identity[0] != process_identity.of_process(client):
            os._exit(1)
        os.setpgid(0, os.getpgid(client))
        connection.sendall(READY)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if child := os.fork():  # while the client writes its request
            _watch(connection, child)
        request, folder, given = receive(connection)
        if own_identity[1] != request["python"]:
            os._exit(1)
        os.fchdir(folder)
        connection = _take(given, request["numbers"], connection)
        _take_over_process_state(request)
        _wait_for_start(connection)
    except BaseException:  # noqa: BLE001 - nothing has begun, and the client does without us
        os._exit(1)
    return request["blocked"]


def _peer(connection: socket.socket) -> int:
    """Return the process at the other end of the connection."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS)
    return int.from_bytes(credentials[:4], sys.byteorder)


def _watch(connection: socket.socket, child: int) -> NoReturn:
    """Report the command's exit to the client; kill the command when the client exits."""
    ended = os.pidfd_open(child)
    poll = select.poll()
    poll.register(connection, 0)  # reports only hang-ups of the client
    poll.register(ended, select.POLLIN)
    if ended not in dict(poll.poll()):
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with suppress(OSError):
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


# --- Taking over the client's state----------------------------------------------------------------------------------


def _take(given: list[int], numbers: list[int], connection: socket.socket) -> socket.socket:
    """Replace all descriptors by those of the client, with the same numbers. Return the renumbered connection.

    Args:
        given: the received descriptors.
        numbers: their numbers in the client.
        connection: connection to the client.
    """
    free = max((_STANDARD_ERROR, *numbers)) + 1
    away = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, free) for one in (connection.fileno(), *given)]
    connection.detach()
    for number in descriptors():
        if number not in away:
            os.close(number)
    for one, number in zip(away[1:], numbers, strict=True):
        os.dup2(one, number)
        os.close(one)
    return socket.socket(fileno=away[0])


def _take_over_process_state(request: Request) -> None:
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    sys.argv[:] = request["argv"]
    sys.orig_argv[:] = request["orig_argv"]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _stream(number, name) if number in request["numbers"] else None
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    for number in signal.valid_signals():
        _dispose(number, is_ignored=number in request["ignored"])


def _stream(number: int, name: str) -> io.TextIOWrapper:
    """Create a standard stream like Python does at its start.

    Args:
        number: its descriptor.
        name: its name in `sys`; the server's stream of that name has the same encoding.
    """
    like = getattr(sys, name)
    mode = "w" if number else "r"
    is_buffered = not number or not like.write_through
    file: Any = open(number, f"{mode}b", buffering=-1 if is_buffered else 0, closefd=False)  # noqa: SIM115
    (file.raw if is_buffered else file).name = f"<{name}>"
    stream: Any = io.TextIOWrapper(
        file,
        encoding=like.encoding,
        errors=like.errors,
        newline="\n",
        line_buffering=is_buffered and (number == _STANDARD_ERROR or file.isatty()),
        write_through=not is_buffered,
    )
    stream.mode = mode
    return stream  # type: ignore[no-any-return]


def _dispose(number: int, *, is_ignored: bool) -> None:
    """Set the disposition of a signal to that of the client, which has only Python's own handlers."""
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    wanted = signal.SIG_IGN if is_ignored else usual
    if signal.getsignal(number) not in (wanted, None):
        signal.signal(number, wanted)


def _wait_for_start(connection: socket.socket) -> None:
    """Report that everything is ready, and wait for the command to begin.

    Signals that the client has received so far are delivered here, too: once, even if both processes received them.
    """
    mine = os.pidfd_open(os.getpid())
    socket.send_fds(connection, [READY], [mine])
    os.close(mine)
    word = connection.recv(_MAX_SIGNALS)
    if not word:  # the client continues without this process
        os._exit(1)
    for number in word[1:]:
        os.kill(os.getpid(), number)  # delivered when the command unblocks it
    connection.close()


# --- The command -----------------------------------------------------------------------------------------------------


def begin(command: Callable[[], NoReturn], blocked: list[int]) -> NoReturn:
    """Run the command, and exit the process without cleaning up the server's imports.

    Args:
        command: the command.
        blocked: signals that are blocked in it.
    """
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        command()
    except KeyboardInterrupt:  # before it had begun
        lifetime.exit_without_teardown(interruptions.report_interruption())
