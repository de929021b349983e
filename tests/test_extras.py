"""Libraries that not everybody needs."""

from __future__ import annotations

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
