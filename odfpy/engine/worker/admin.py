"""Administration of a workspace's worker: connecting to it, asking for its status, ending it."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from odfpy.engine.worker.launch import reap
from odfpy.engine.worker.messages import (
    Channel,
    FromWorker,
    Hello,
    Refusal,
    Status,
    StatusRequest,
    StopRequest,
    Welcome,
)
from odfpy.engine.worker.run_folder import RunFolder
from odfpy.errors import EngineUnavailable, MalformedData

SILENCE_SECONDS: Final = 60.0
"""A worker that says nothing for so long, not even that it is at work, has failed."""

POLL_SECONDS: Final = 0.01
_ADMIN_SECONDS: Final = 10.0


def greet(run: RunFolder) -> tuple[Channel, Welcome | Refusal] | None:
    """Return a connection after the handshake, or None when no worker answers."""
    try:
        connected = run.connect()
    except OSError:
        return None
    channel = Channel(connected)
    try:
        connected.settimeout(SILENCE_SECONDS)
        channel.send(Hello(run.read_secret()))
        match channel.receive(FromWorker):
            case Welcome() | Refusal() as answer:
                return channel, answer
    except (OSError, MalformedData):
        pass
    except BaseException:
        channel.close()
        raise
    channel.close()
    return None


def engine_status(run_dir: Path) -> Status | None:
    """Return the status of a workspace's engine, or None when none is running.

    Raises:
        EngineUnavailable: it does not answer.
    """
    return _admin(RunFolder(run_dir), StatusRequest())


def stop_engine(run_dir: Path, *, force: bool = False, wait_seconds: float = 60.0) -> Status | None:
    """Stop a workspace's engine, and wait for its end; return its last status, or None if none was running.

    Args:
        run_dir: the workspace's run folder.
        force: whether to end it at once, instead of after its current job.
        wait_seconds: how long to wait; an engine that is forced is killed after that.

    Raises:
        EngineUnavailable: it does not answer, or is still busy with a job.
    """
    run = RunFolder(run_dir)
    try:
        status = _admin(run, StopRequest(force))
    except EngineUnavailable:
        if not force:
            raise
        _kill(run)
        return None
    deadline = time.monotonic() + wait_seconds
    while run.holder() is not None:
        if time.monotonic() > deadline:
            if force:
                _kill(run)
                break
            raise EngineUnavailable(
                f"The engine is still busy after {wait_seconds:.0f} s; it stops after the job",
                hint="`odf engine stop --force` stops it immediately.",
            )
        time.sleep(POLL_SECONDS)
    reap()
    return status


def _admin(run: RunFolder, request: StatusRequest | StopRequest) -> Status | None:
    deadline = time.monotonic() + _ADMIN_SECONDS
    while (pid := run.holder()) is not None:
        match greet(run):
            case (channel, Welcome()):
                with closing(channel):
                    try:
                        channel.send(request)
                        answer = channel.receive(FromWorker)
                    except (OSError, MalformedData):
                        answer = None
                if isinstance(answer, Status):
                    return answer
            case (channel, Refusal(message)):
                channel.close()
                raise EngineUnavailable(f"The engine rejected the connection: {message}", hint=f"The log is {run.log}")
        if time.monotonic() > deadline:
            raise EngineUnavailable(f"The engine (process {pid}) does not answer", hint=f"The log is {run.log}")
        time.sleep(POLL_SECONDS)
    return None


def _kill(run: RunFolder) -> None:
    pid = run.holder()
    if not pid or b"odfpy.engine.worker" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        return
    os.kill(pid, signal.SIGKILL)
    while run.holder() == pid:
        time.sleep(POLL_SECONDS)
    reap()
    run.sweep_if_abandoned()
