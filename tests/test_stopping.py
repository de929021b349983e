"""Signals that stop a command which runs until it is told to."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from odfpy.stopping import stopped_by_signals


@pytest.fixture(autouse=True)
def _dispositions_stay() -> Iterator[None]:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_what_is_called_may_wait_for_a_lock_that_the_main_thread_holds() -> None:
    lock, heard, last = threading.Lock(), list[int](), threading.Event()

    def stop(number: int) -> None:
        assert lock.acquire(timeout=60)
        lock.release()
        heard.append(number)
        if len(heard) == 3:
            last.set()

    with stopped_by_signals(stop):
        with lock:
            for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
                signal.raise_signal(number)
            assert heard == []
        assert last.wait(60)
    assert heard == [signal.SIGTERM, signal.SIGTERM, signal.SIGINT]


def test_no_thread_stays() -> None:
    before = threading.active_count()
    with stopped_by_signals(lambda _: None):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


_PROGRAM = """
from odfpy.stopping import wait_for_stop_signal
print("waits", flush=True)
wait_for_stop_signal(lambda: None)
"""


def test_a_process_that_waits_ends_by_two_signals_however_close_they_are() -> None:
    for attempt in range(30):
        with subprocess.Popen([sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"waits\n"
                time.sleep(0.01)  # it is about to wait
                process.send_signal(signal.SIGTERM)
                until = time.perf_counter() + (20 + 3 * attempt) / 1_000_000
                while time.perf_counter() < until:
                    pass
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) in {0, -signal.SIGTERM}  # by the second, if that comes after the block
            finally:
                process.kill()
