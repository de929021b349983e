"""The end of the process of a command: what Python would have done is done, but for taking itself apart."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from odfpy.cli import lifetime


def left(program: str) -> tuple[int, str, str]:
    program = f"import atexit, sys, threading, time\nfrom odfpy.cli.lifetime import exit_without_teardown\n{program}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("code", [0, 1, 130])
def test_what_was_printed_arrives_and_what_is_registered_runs(code: int) -> None:
    program = f"atexit.register(print, 'last', end='')\nprint('first', end=' ')\nsys.stderr.write('told')\nexit_without_teardown({code})"
    assert left(program) == (code, "first last", "told")


def test_threads_that_work_are_waited_for() -> None:
    program = "threading.Thread(target=lambda: (time.sleep(0.2), print('done'))).start()\nexit_without_teardown(3)"
    assert left(program) == (3, "done\n", "")


def test_threads_in_the_background_are_not() -> None:
    program = "threading.Thread(target=threading.Event().wait, daemon=True).start()\nexit_without_teardown(0)"
    assert left(program) == (0, "", "")


def test_threads_that_wait_for_work_are_told_that_none_comes() -> None:
    program = (
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
        "pool.submit(print, 'first').result()\npool.submit(lambda: (time.sleep(0.2), print('done')))\nexit_without_teardown(0)"
    )
    assert left(program) == (0, "first\ndone\n", "")


@pytest.mark.parametrize("before", ["", "threading.Thread(target=time.sleep, args=(0.2,)).start()\n"])
def test_nothing_is_taken_apart(before: str) -> None:
    program = "class Kept:\n    def __del__(self): print('taken apart')\nkept = Kept()\nkept.itself = kept\n"
    assert left(f"{program}{before}exit_without_teardown(0)") == (0, "", "")


def test_garbage_is_looked_for_as_usual_once_there_is_much_but_not_among_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = gc.get_threshold()
    monkeypatch.setattr(lifetime, "_MANY", 5_000)
    gc.collect()
    lifetime.delay_garbage_collection()
    try:
        assert gc.get_threshold()[0] == 5_000
        kept = [[] for _ in range(20_000)]
        assert (gc.get_threshold(), len(kept)) == (usual, 20_000)
        assert gc.get_freeze_count() > 5_000
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
