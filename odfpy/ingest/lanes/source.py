"""The input of the lane, so that tasks can read parts of it by themselves.

Properties of the whole file are determined once at the start: text in another encoding is rewritten as UTF-8 beside
the future slices, and inferred types become a schema.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from odfpy.chain.read_steps import ReadCsv, ReadJson, ReadNdJson, ReadStep
from odfpy.data.memory import bytes_of
from odfpy.ingest.lanes.request import LaneRequest
from odfpy.ingest.normalize import coerce_inferred_event_time
from odfpy.ingest.read import FilePart, inferred_schema, parts_of, read_part, schema_of
from odfpy.ingest.read.files import is_utf8, opening, rewrite_as_utf8
from odfpy.ingest.read.part import parts_between


@dataclass(frozen=True, slots=True)
class SplittableInput:
    """An input that can be read in parts.

    Attributes:
        step: the read step; None for an Arrow file of rows, whose parts are ranges of rows.
        path: the file.
        parts: its parts, in order.
    """

    step: ReadStep | None
    path: Path
    parts: tuple[FilePart, ...]

    @classmethod
    def of(cls, request: LaneRequest, folder: Path) -> SplittableInput:
        """Return the input of an ingest.

        Args:
            request: the ingest.
            folder: folder for rewritten files, accessible to the tasks.

        Raises: as `odfpy.ingest.read.read`.
        """
        step, path, size = request.read, Path(request.path), request.part_bytes
        if step is None:
            rows = open_table(request.path)
            some = max(1, rows.num_rows * size // max(1, bytes_of(rows)))
            return cls(None, path, tuple(parts_between(range(some, rows.num_rows, some))))
        with opening(request.name):
            is_small = path.stat().st_size <= size
        if not is_small:
            if isinstance(step, ReadCsv | ReadJson | ReadNdJson) and not is_utf8(step.encoding):
                rewrite_as_utf8(path, request.name, step.encoding, folder / "utf-8")
                step, path = replace(step, encoding=None), folder / "utf-8"
            schema = inferred_schema(step, path, name=request.name)
            step = step if schema is None else replace(step, schema=schema)
        return cls(step, path, tuple(parts_of(step, path, name=request.name, size=size)))

    def rows(self, request: LaneRequest, part: FilePart, first_row: int) -> pa.Table:
        """Return the rows of a part.

        Args:
            request: the ingest.
            part: the part to read.
            first_row: rows of the input before the part, for messages.

        Raises:
            OdfError: as `odfpy.ingest.read.read`.
            Incomplete: the part ends within a record.
        """
        if self.step is None or request.read is None:
            rows = open_table(str(self.path))
            return rows.slice(part.start, None if part.stop is None else part.stop - part.start)
        rows = read_part(self.step, self.path, part, name=request.name)
        is_declared = schema_of(request.read) is not None
        return rows if is_declared else coerce_inferred_event_time(rows, request.vocab, first_row)


def open_table(path: str) -> pa.Table:
    """Memory-map the rows of an Arrow file: only accessed parts are loaded."""
    with pa.memory_map(path) as source, pa.ipc.open_file(source) as reader:
        return reader.read_all()
