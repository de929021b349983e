"""Damaged files for every reader: each raises a typed error, or returns the rows found by an independent reader.

The independent reader is the standard library (csv, json) or pyshp, never our own code. Parquet files have page
checksums, and give their own rows or an error. The same seed always generates the same files.

    PYTHONPATH=tests python -m support.ingest.fuzzing 10000
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from support.ingest.fuzz_targets.csv import CSV
from support.ingest.fuzz_targets.geojson import GEOJSON, NDGEOJSON
from support.ingest.fuzz_targets.json import JSON, NDJSON
from support.ingest.fuzz_targets.parquet import PARQUET
from support.ingest.fuzz_targets.shapefiles import SHAPEFILES
from support.ingest.fuzz_targets.target import Target
from support.ingest.reading import set_piece_size

from odfpy.errors import OdfError
from odfpy.ingest.read import read

_PIECES = (16, 200, 1 << 20)
TARGETS = {
    "Csv": CSV,
    "Json": JSON,
    "NdJson": NDJSON,
    "GeoJson": GEOJSON,
    "NdGeoJson": NDGEOJSON,
    "EsriShapefile": SHAPEFILES,
    "Parquet": PARQUET,
}


def fuzz(target: Target, count: int, seed: int) -> Counter[str]:
    """Read damaged files; return how many gave rows, and how many raised which error.

    Raises:
        AssertionError: a file gave wrong rows, or another error; the message has the file.
    """
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        for _ in range(count):
            step, seeds = rng.choice(target.cases)
            content = target.damage(rng, rng.choice(seeds), target.tokens)
            path.write_bytes(content)
            try:
                with pytest.MonkeyPatch.context() as patch:
                    set_piece_size(patch, rng.choice(_PIECES))
                    table = read(step, path, name="input")
                target.check(step, content, table)
                outcomes["rows"] += 1
            except OdfError as error:
                outcomes[type(error).__name__] += 1
            except Exception as error:
                raise AssertionError(f"{step!r}\n{content!r}\n{type(error).__name__}: {error}") from error
    return outcomes


if __name__ == "__main__":
    for title, target in TARGETS.items():
        started = time.monotonic()
        found = fuzz(target, int(sys.argv[1]), seed=2)
        sys.stdout.write(f"{title}: {dict(found)} in {time.monotonic() - started:.1f} s\n")
        sys.stdout.flush()
