"""A process that was forked from one with DataFusion in it."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import os
from odfpy.engine.datafusion.session import new_session
from odfpy.errors import EngineUnavailable

def forked():
    child = os.fork()
    if child:
        return os.waitpid(child, 0)
    try:
        print(new_session(deterministic=True).sql("SELECT 1 AS one").to_pydict(), flush=True)
    except EngineUnavailable as error:
        print(error.hint, flush=True)
    os._exit(0)

forked()
print(new_session(deterministic=True).sql("SELECT 2 AS two").to_pydict(), flush=True)
forked()
"""


def test_its_queries_are_refused_instead_of_waiting_for_ever() -> None:
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines() == [
        "{'one': [1]}",
        "{'two': [2]}",
        "Use the start method spawn: multiprocessing.get_context('spawn').",
    ], done.stderr
