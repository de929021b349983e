"""As many threads as the process may use processors, not as the machine has."""

from __future__ import annotations

import os

import pytest

from odfpy.data.processors import processors


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system binds no processes to processors")
def test_processors_that_the_process_may_not_use_do_not_count():
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert processors() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert processors() == len(before)
