"""The rows of the reference web: TPC-H at scale 0.01, from `tpchgen-cli`, and five rows that only na_us has."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Final

from odfpy.errors import OdfError
from odfpy.extras import needs_extra

ROWS: Final = {"lineitem": 60_175, "customer": 1_500, "orders": 15_000}
"""How many rows the tables of scale 0.01 have."""

MORE_LINES: Final = """\
partkey,suppkey,linenumber,quantity,extendedprice,discount_percent,tax_percent,returnflag,linestatus,shipdate,\
commitdate,receiptdate,shipinstruct,shipmode,comment
155,4,1,28.00,43718.60,4.0,4.0,N,O,1996-03-13,1996-02-12,1996-03-22,DELIVER IN PERSON,TRUCK,sold over the counter
67,9,2,36.00,58527.40,5.0,1.0,N,O,1996-04-12,1996-02-28,1996-04-20,TAKE BACK RETURN,MAIL,sold over the counter
63,1,3,32.00,45497.20,7.0,6.0,N,O,1996-01-29,1996-03-05,1996-01-31,TAKE BACK RETURN,REG AIR,sold over the counter
2,6,4,30.00,44512.30,2.0,7.0,N,O,2000-01-31,2000-01-15,2000-02-04,NONE,AIR,sold after all others
24,5,5,23.00,34891.00,10.0,4.0,R,F,1994-10-16,1994-09-26,1994-11-04,NONE,FOB,came back
"""
"""Additional lines without orders, with the column names of na_us."""

_PROGRAM: Final = "tpchgen-cli"
_SCALE: Final = "0.01"


def make_tables(folder: Path) -> None:
    """Generate the tables of TPC-H as Parquet files.

    Args:
        folder: folder of the files; it is created.

    Raises:
        OdfError: the generator is not installed, or its output is not as expected.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = ",".join(ROWS)
    command = [_program(), "parquet", "-q", "-s", _SCALE, "--tables", tables, "--output-dir", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise OdfError(f"{_PROGRAM} failed: {done.stderr.strip()[-500:]}")
        row_counts = {name: pq.ParquetFile(folder / f"{name}.parquet").metadata.num_rows for name in ROWS}
    except (OSError, pa.ArrowException) as error:
        raise OdfError(f"{_PROGRAM} has made no tables: {error}") from error
    if row_counts != ROWS:
        raise OdfError(
            f"{_PROGRAM} has made other rows than TPC-H has: {row_counts}", hint=f"pip install -U {_PROGRAM}"
        )


def _program() -> str:
    """Return the path of the generator, which is installed next to Python's other scripts."""
    beside = Path(sysconfig.get_path("scripts")) / _PROGRAM
    program = str(beside) if beside.exists() else shutil.which(_PROGRAM)
    with needs_extra("demo", "The tables of the demo", OdfError):
        if program is None:
            raise ModuleNotFoundError(name=_PROGRAM)
    return str(program)
