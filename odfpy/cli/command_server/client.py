"""The client: `odf` has its command run by a command server, and exits with the same status."""

# Import nothing slow here: every command begins with it. The rest is imported only if there is a server.

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from odfpy.cli.command_server import process_identity

if TYPE_CHECKING:
    import socket
    from collections.abc import Collection

SETTING: Final = "ODF_COMMANDS_SERVER"
"""The variable that disables the command server for a single command, without reading any files."""

# These commands run for long. Also, a service manager signals all processes of a service, so each signal would be
# delivered twice.
_SERVICES: Final = frozenset(("serve", "run", "ui", "mcp", "queue", "demo"))
_PATIENCE_SECONDS: Final = 2.0
_STOPS: Final = frozenset((signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU))
_BY_A_PROCESS: Final = 0
_MAX_ENDING_LENGTH: Final = 16


def run_on_server() -> None:
    """Run this command on a server, and exit with its status. Return if there is no server; nothing has begun then."""
    if not process_identity.is_private(
        process_identity.folder()
    ):  # false for users who have not enabled command servers
        return
    if (
        not process_identity.is_common()
        or os.environ.get(SETTING, "").lower() == "false"
        or _SERVICES.intersection(sys.argv)
    ):
        return
    ignored = {number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        client = _Client(ignored, blocked)
    except (OSError, ValueError):
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    else:
        client.follow()


class _Client:
    """The client of a running command.

    Args:
        ignored: signals that the command ignores.
        blocked: signals that it blocks.

    Raises:
        OSError, ValueError: the server could not start the command.
    """

    def __init__(self, ignored: Collection[int], blocked: Collection[int]) -> None:
        import socket

        from odfpy.cli.command_server import request

        self._descriptors = request.descriptors()  # before this process opens its own
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.settimeout(_PATIENCE_SECONDS)
        self._connection.connect(process_identity.address())
        # Send no descriptors to a server that hangs: readers of the output would wait until it exits.
        if self._connection.recv(1) != request.READY:
            raise ConnectionRefusedError
        request.send(self._connection, request.describe(self._descriptors, ignored, blocked))
        _, (self._process,), _, _ = socket.recv_fds(self._connection, 1, 1)
        deaf = {signal.SIGKILL, signal.SIGSTOP, signal.SIGIO, *ignored, *blocked}
        self._heard = {number for number in signal.valid_signals() if number not in deaf}
        _notify_by_signal(self._connection)
        self._come = _take_waiting(self._heard)
        self._connection.send(bytes([len(self._come), *self._come]))

    def follow(self) -> NoReturn:
        """Forward the signals that the command does not receive itself, until it ends; then exit with its status.

        The command is in the process group of the client, so it receives the signals of the terminal itself.
        """
        for number in self._descriptors:  # otherwise, readers of the output would wait for this process, too
            with suppress(OSError):
                os.close(number)
        for number in _STOPS.intersection(self._come):
            _raise_signal(number)
        while True:
            come = signal.sigwaitinfo({*self._heard, signal.SIGIO})
            if come.si_signo == signal.SIGIO:
                _exit_if_reported(self._connection)
            elif come.si_code <= _BY_A_PROCESS:
                with suppress(ProcessLookupError):  # it has exited; its report is about to arrive
                    signal.pidfd_send_signal(self._process, come.si_signo)
            if come.si_signo in _STOPS:
                _raise_signal(come.si_signo)


def _notify_by_signal(connection: socket.socket) -> None:
    """Make the kernel send SIGIO when data arrives, so that one call waits for both data and signals."""
    import fcntl

    connection.setblocking(False)
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | os.O_ASYNC)


def _take_waiting(heard: set[signal.Signals]) -> list[int]:
    """Return the signals received so far."""
    found = []
    while (one := signal.sigtimedwait(heard, 0)) is not None:
        found.append(one.si_signo)
    return found


def _exit_if_reported(connection: socket.socket) -> None:
    try:
        report = connection.recv(_MAX_ENDING_LENGTH)
    except BlockingIOError:
        return
    code = int(report) if report else -signal.SIGKILL  # empty if the watching process was killed
    if code >= 0:
        os._exit(code)
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    _raise_signal(-code)
    os._exit(128 - code)


def _raise_signal(number: int) -> None:
    """Terminate or stop this process by the signal that terminated or stopped the command."""
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})
