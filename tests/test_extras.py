"""Libraries that not everybody needs, and what `odf` does without."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def pandas_after(program: str) -> bool:
    """Tell whether a fresh interpreter has loaded pandas once it has run a program."""
    report = "import sys; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", f"{program}\n{report}"], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


@pytest.mark.parametrize("asking", ["import pyarrow; pyarrow.array([1])", "import datafusion"])
def test_pyarrow_would_import_pandas_for_a_list_if_it_were_there(asking: str) -> None:
    """Where this fails, `do_without_pandas` may go (docs/adr/0033-start.md)."""
    assert pandas_after(asking)
    assert not pandas_after(f"from odfpy.extras import do_without_pandas; do_without_pandas()\n{asking}")


@pytest.mark.parametrize(("said", "kept"), [(None, "None"), ("3", "3")])
def test_numpy_starts_no_threads_and_other_processes_are_not_told(said: str | None, kept: str) -> None:
    program = (
        "from odfpy.extras import do_without_blas_threads; do_without_blas_threads()\n"
        "import numpy, os; print(len(os.listdir('/proc/self/task')), os.environ.get('OPENBLAS_NUM_THREADS'))"
    )
    others = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment = others if said is None else {**others, "OPENBLAS_NUM_THREADS": said}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    threads, told = done.stdout.split()
    assert told == kept
    assert threads == "1" or said is not None


def test_blocks_are_written_without_numpy_and_others_have_it() -> None:
    program = (
        "import sys; from odfpy.extras import do_without_numpy_for_blocks; {}\n"
        "from odfpy.codec import flatbuffers_writer\n"
        "print('numpy' in sys.modules)\n"
        "import pyarrow; print(pyarrow.array([1, 2]).to_numpy().sum())"
    )
    for how, loaded in (("", "True"), ("do_without_numpy_for_blocks()", "False")):
        done = subprocess.run([sys.executable, "-c", program.format(how)], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [loaded, "3"], how
