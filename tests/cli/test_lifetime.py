"""Of what a command has made until it first looks for garbage, nothing is looked at."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from odfpy.cli.lifetime import put_off_collection

usual = gc.get_threshold()
put_off_collection()
made = [[] for _ in range(90_000)]
assert gc.get_freeze_count() == 0 and gc.get_threshold() != usual
before = gc.get_stats()[0]["collections"]
made += [[] for _ in range(20_000)]
assert gc.get_stats()[0]["collections"] > before
assert gc.get_freeze_count() > 90_000
assert gc.get_threshold() == usual
"""


def test_what_there_is_at_the_first_look_for_garbage_is_not_looked_at():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
