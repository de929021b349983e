"""CSV files; the standard library reads them, too."""

from __future__ import annotations

import csv
import io
import sys

import pyarrow as pa
from support.ingest.fuzz_targets.rows import SCHEMA, check_rows, encoded
from support.ingest.fuzz_targets.target import Target, damaged

from odfpy.chain.read_steps import ReadCsv, ReadStep

_CSV_HEADER = "id,x,name,day,ok\n"
_CSV = (
    _CSV_HEADER + '1,1.5,"a, ""b""",2024-02-29,true\n2,,c,,\n3,-1e3,"d\ne",2023-12-31,false\n',
    "\ufeff" + _CSV_HEADER.replace("\n", "\r\n") + "1,0,ž,2024-01-01,TRUE\r\n\r\n2,2.25,x y,,false\r\n",
    _CSV_HEADER + "".join(f"{i},{i}.5,n{i},2024-01-{i:02},true\n" for i in range(1, 12)),
)
_CSV_TOKENS = (b",", b'"', b'""', b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b" ", b"9" * 20, b"1.5", b"2023-02-30", b"\xc5\xbe", b"\\", b"-", b"nan", b"true")  # fmt: skip


def _csv_rows(step: ReadCsv, content: bytes) -> list[list[str | None]]:
    text = content.decode().removeprefix("\ufeff")
    if step.escape == "":
        assert step.quote is None
    reader = csv.reader(io.StringIO(text, newline=""))
    rows: list[list[str | None]] = [[cell or None for cell in row] for row in reader if row]
    return rows[1:] if step.header else rows


def _check_csv(step: ReadStep, content: bytes, table: pa.Table) -> None:
    assert isinstance(step, ReadCsv)
    if b"\0" in content and sys.version_info < (3, 11):
        return
    wanted = _csv_rows(step, content)
    header = next(csv.reader(io.StringIO(content.decode().removeprefix("\ufeff"), newline="")), [])
    if step.schema is not None and sorted(header) == sorted(step.schema.names):
        order = [header.index(name) for name in step.schema.names]
        wanted = [[row[i] for i in order] for row in wanted]
    check_rows(table, wanted)


CSV = Target(
    [
        (ReadCsv(escape='"'), encoded(_CSV)),
        (ReadCsv(header=True, escape='"'), encoded(_CSV)),
        (ReadCsv(header=True, escape='"', infer_schema=True), encoded(_CSV)),
        (ReadCsv(header=True, escape='"', schema=SCHEMA), encoded(_CSV)),
    ],
    _CSV_TOKENS,
    _check_csv,
    damaged,
)
