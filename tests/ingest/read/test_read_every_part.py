"""Every format in parts: read by themselves they give the rows of the file, wherever it is cut."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from support.ingest.lane_inputs import FORMATS, STRATEGIES, Shape

from odfpy.ingest.read import FilePart, parts_of, read, read_part
from odfpy.ingest.read.files import Incomplete


@pytest.mark.parametrize("name", FORMATS)
def test_parts_are_the_file(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    kind = FORMATS[name]
    counts = set()
    for strategy in STRATEGIES:
        shape = Shape.of(strategy, kind.columns, chance)
        path = tmp_path / strategy.KIND
        kind.write(path, shape.schema, shape.rows(60, chance))
        step = kind.step(shape.schema)
        expected = read(step, path)
        for size in (chance.randint(200, 600), chance.randint(600, 3_000), chance.randint(3_000, 10_000)):
            parts = parts_of(step, path, size=size)
            tables = []
            for part in parts:
                try:
                    tables.append(read_part(step, path, part))
                except Incomplete:
                    tables.append(read_part(step, path, FilePart(part.start)))
                    break
            found = pa.concat_tables(tables)
            assert found.schema == expected.schema
            assert list(map(repr, found.to_pylist())) == list(map(repr, expected.to_pylist()))
            counts.add(len(parts))
    assert len(counts) > 2
