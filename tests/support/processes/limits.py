"""Running code in a separate process that may use only so much memory and time."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEGABYTE = 1 << 20


def run_limited(function: Callable[..., Any], *args: Any, megabytes: int, seconds: int) -> Any:
    """What a module-level function returns, or its exception; the process dies when it needs more than the limits."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sender, function, args, megabytes, seconds))
    process.start()
    sender.close()
    try:
        result = receiver.recv()
    except EOFError:
        process.join()
        raise AssertionError(f"more than {megabytes} MB or {seconds} s: exit code {process.exitcode}") from None
    process.join()
    if isinstance(result, BaseException):
        raise result
    return result


def _run(sender: Any, function: Callable[..., Any], args: tuple[Any, ...], megabytes: int, seconds: int) -> None:
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + megabytes * MEGABYTE,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    try:
        result = function(*args)
    except BaseException as error:  # noqa: BLE001
        result = error
    sender.send(result)
