"""Running a function in a sandbox, in processes with restricted files, network and resources.

    owner              starts the supervisor; it is outside of the sandbox
    supervisor         holds the namespaces, shows files for a request and removes them again
    init               the first process inside; starts the sandboxed process and reaps orphans
    sandboxed process  runs the function, and may start further processes

All of them end with the supervisor, and the supervisor ends with the owner.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from typing import Any, Final, NoReturn

from odfpy.sandbox import syscalls
from odfpy.sandbox.landlock import landlock_version, restrict_files
from odfpy.sandbox.limits import ProcessLimits, limit_this_process
from odfpy.sandbox.seccomp import forbid_odd_calls
from odfpy.sandbox.tree import Tree
from odfpy.sandbox.view import View

_NAMESPACES: Final = (
    syscalls.CLONE_NEWUSER
    | syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
)
_GET_FLAGS, _SET_FLAGS, _IS_UP = 0x8913, 0x8914, 1
_SETUP_SECONDS: Final = 30.0
_MAX_SIZE: Final = 64 << 20
# Landlock as a second layer: these cannot be modified, even if mounts are changed.
_NEVER_CHANGED: Final = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "proc", "sys", "nix", "gnu")


class SandboxError(OSError):
    """The kernel does not permit building the sandbox, or showing a file in it."""


class Sandbox:
    """Sandboxed processes, as seen from outside.

    Attributes:
        pid: id of the process to kill in order to end all of them.
    """

    def __init__(self, child: int, pid: int, supervisor: socket.socket | None) -> None:
        self.pid = pid
        self._child = child
        self._ended = os.pidfd_open(child)
        self._supervisor = supervisor
        self._code: int | None = None
        self._waiting = threading.Lock()

    def grant(self, reads: Iterable[str], folders: Iterable[str]) -> None:
        """Show readable files and writable folders until `revoke`.

        Landlock cannot be extended: a writable folder must be below a top-level folder that was writable when the
        sandbox was started.

        Raises:
            SandboxError: a file cannot be shown.
        """
        self._request({"reads": list(reads), "folders": list(folders)})

    def revoke(self) -> None:
        """Remove the granted files."""
        with suppress(SandboxError):
            self._request({})

    def _request(self, what: dict[str, list[str]]) -> None:
        if self._supervisor is None:
            return
        try:
            _send(self._supervisor, what)
            answer = _receive(self._supervisor)
        except TimeoutError as error:  # a late answer would be taken for the answer to the next message
            self.kill()
            raise SandboxError("the sandbox did not answer, and was stopped") from error
        except (OSError, ValueError) as error:
            raise SandboxError("the sandbox has ended") from error
        if answer:
            raise SandboxError(answer)

    def exit_code(self, seconds: float | None = 0) -> int | None:
        """Return the exit code, negative for a signal, None while the process runs; optionally wait for the end."""
        if self._code is None and select.select([self._ended], [], [], seconds)[0]:
            with self._waiting:
                if self._code is None:
                    self._code = os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
        return self._code

    def kill(self) -> None:
        """Kill all processes, and wait until they have exited."""
        if self.exit_code() is None:
            with suppress(ProcessLookupError):
                # In namespaces, this is the first process: when it dies, the kernel kills all other ones.
                os.kill(self.pid, signal.SIGKILL)
            self.exit_code(None)


def run_confined(work: Callable[[], int], view: View, limits: ProcessLimits, keep: Iterable[int] = ()) -> Sandbox:
    """Run a function in a new sandbox; requires that this process has a single thread.

    Args:
        work: function that returns an exit code.
        view: the visible files.
        limits: the resource limits.
        keep: descriptors that stay open, besides the standard ones.

    Raises:
        SandboxError: the kernel does not permit it; the function was not run.
    """
    ours, theirs = socket.socketpair()
    child = _fork(lambda: _supervise(theirs, work, view, limits), (*keep, theirs.fileno()))
    theirs.close()
    ours.settimeout(_SETUP_SECONDS)
    try:
        pid = _receive(ours)
    except (OSError, ValueError):
        pid = "it ended before it was ready"
    if not isinstance(pid, int):
        ours.close()
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise SandboxError(pid)
    return Sandbox(child, pid, ours)


def run_restricted(
    work: Callable[[], int],
    reads: Iterable[str],
    folders: Iterable[str],
    limits: ProcessLimits,
    keep: Iterable[int] = (),
) -> Sandbox:
    """Run a function in a process restricted by Landlock alone, where namespaces are not permitted.

    The process can see other processes, and has the network of the machine.

    Args:
        work: function that returns an exit code.
        reads: readable files and folders.
        folders: writable folders.
        limits: the resource limits.
        keep: descriptors that stay open, besides the standard ones.

    Raises:
        SandboxError: this kernel has no Landlock.
    """
    if not landlock_version():
        raise SandboxError("this kernel has no Landlock")

    def run() -> int:
        # The order matters: Landlock closes `/proc`, where limits are written, and the filter disables `keyctl`.
        with suppress(OSError):
            syscalls.forget_keyring()
        limit_this_process(limits, alone=False)
        restrict_files(reads, folders)
        forbid_odd_calls()
        return work()

    return run_unconfined(run, keep)


def run_unconfined(work: Callable[[], int], keep: Iterable[int] = ()) -> Sandbox:
    """Run a function in a separate process with the rights of this process."""

    def run() -> int:
        syscalls.die_with_parent(signal.SIGKILL)
        return work()

    child = _fork(run, keep)
    return Sandbox(child, child, None)


# --- The supervisor --------------------------------------------------------------------------------------------------


def _supervise(owner: socket.socket, work: Callable[[], int], view: View, limits: ProcessLimits) -> int:
    user, group = os.getuid(), os.getgid()
    try:
        _leave_namespaces()
        # After `unshare`, since new credentials clear the parent-death signal.
        syscalls.die_with_parent(signal.SIGKILL)
        _be_the_same(user, group)
        _connect_to_oneself()
        with suppress(OSError):
            syscalls.forget_keyring()
        tree = Tree(view)
        ready, report = os.pipe()
        # Init must not have `owner`: the sandboxed process could use it to answer instead of the supervisor.
        init = _fork(lambda: _init(report, work, tree, limits), closing=(owner.fileno(), ready))
        # The pipe is at its end when all writing ends are closed, so close this one before reading.
        os.close(report)
        with os.fdopen(ready, encoding="utf-8") as words:
            trouble = words.read()
    except OSError as error:
        trouble = _words(error)
    _send(owner, trouble or init)
    return 1 if trouble else _serve(owner, tree, init)


def _leave_namespaces() -> None:
    try:
        syscalls.unshare(_NAMESPACES)
    except OSError as error:
        raise SandboxError(f"user namespaces are not allowed here ({error.strerror})") from error


def _be_the_same(user: int, group: int) -> None:
    """Map the user to the same id inside as outside, so that files keep their owner."""
    # Without this, the kernel does not let unprivileged processes map groups: by dropping a group, a process could gain
    # access to files that are denied to the group.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _connect_to_oneself() -> None:
    """Enable the loopback interface, the only network inside."""
    socket.sethostname("localhost")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH22x", b"lo", 0)
        (flags,) = struct.unpack_from("H", ioctl(any_socket, _GET_FLAGS, request), 16)
        ioctl(any_socket, _SET_FLAGS, struct.pack("16sH22x", b"lo", flags | _IS_UP))


def _serve(owner: socket.socket, tree: Tree, init: int) -> int:
    """Show files as the owner requests until init exits; return the exit status of init."""
    end = os.pidfd_open(init)
    while True:
        if end in select.select([owner.fileno(), end], [], [])[0]:
            code = os.waitstatus_to_exitcode(os.waitpid(init, 0)[1])
            if code < 0:
                # Exit by the same signal, so that the owner learns how the sandboxed process ended, for example by the
                # OOM killer or a crash.
                signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
                os.kill(os.getpid(), -code)
            return code
        try:
            asked = _receive(owner)
        except (OSError, ValueError):
            os.kill(init, signal.SIGKILL)
            continue
        trouble = ""
        # Always remove earlier grants: files of one request must not be visible to the next one.
        tree.revoke()
        if asked:
            try:
                tree.grant(asked["reads"], asked["folders"])
            except OSError as error:
                tree.revoke()
                trouble = _words(error)
        _send(owner, trouble)


# --- Inside ----------------------------------------------------------------------------------------------------------


def _init(told: int, work: Callable[[], int], tree: Tree, limits: ProcessLimits) -> int:
    try:
        syscalls.die_with_parent(signal.SIGKILL)
        syscalls.unshare(syscalls.CLONE_NEWNS)
        tree.enter()
        with suppress(OSError):
            # A process has all capabilities in its own namespace, and with them access to many kernel bugs.
            Path("/proc/sys/user/max_user_namespaces").write_text("0")  # no nested namespaces
        limit_this_process(limits)
        # Before capabilities are dropped, since mounting needs them; after the limits, since some are set in `/proc`.
        tree.seal()
        syscalls.drop_capabilities()
        syscalls.gain_nothing()
        # After `enter`, since a process under Landlock cannot mount or change its root.
        if landlock_version():
            top = [f"/{name}" for name in os.listdir("/") if name not in _NEVER_CHANGED]  # noqa: PTH208
            restrict_files(["/"], top)
        forbid_odd_calls()
    except OSError as error:
        os.write(told, _words(error).encode())
        return 1
    os.close(told)
    child = _fork(work)
    while True:
        # The first process of a namespace inherits all orphans. Without reaping, they would fill the process table.
        ended, status = os.waitpid(-1, 0)
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _fork(work: Callable[[], int], keep: Iterable[int] | None = None, *, closing: Iterable[int] = ()) -> int:
    """Fork a child that runs a function and exits with its result.

    Args:
        work: the function.
        keep: descriptors that stay open, besides the standard ones; None for all.
        closing: descriptors to close in the child.
    """
    # Flush first: the child has a copy of the buffers, and would write them again on exit.
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        _run(work, keep, closing)
    return child


def _run(work: Callable[[], int], keep: Iterable[int] | None, closing: Iterable[int]) -> NoReturn:
    code = 70
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for descriptor in closing:
            os.close(descriptor)
        if keep is not None:
            bounds = sorted({2, *keep})
            for low, high in zip(bounds, [*bounds[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
                os.closerange(low + 1, high)
        code = work()
    except BaseException:  # noqa: BLE001  no code of the parent may run
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


# --- Messages --------------------------------------------------------------------------------------------------------


def _send(other: socket.socket, what: object) -> None:
    data = json.dumps(what).encode()
    other.sendall(struct.pack("!I", len(data)) + data)


def _receive(other: socket.socket) -> Any:
    (size,) = struct.unpack("!I", _exactly(other, 4))
    if size > _MAX_SIZE:
        raise ValueError("too long")
    return json.loads(_exactly(other, size))


def _exactly(other: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = other.recv(size - len(data))
        if not part:
            raise ConnectionError("the other process has exited")
        data += part
    return data


def _words(error: OSError) -> str:
    return f"{error.strerror}: {error.filename}" if error.filename else str(error)
