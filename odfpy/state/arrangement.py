"""Arrangements: rows indexed by key, so that rows of given keys are found without reading the others.

The term is from differential dataflow. Rows are found by the fingerprint of their key, which the caller computes.
Like the key index, an arrangement consists of a few sorted runs (see `run_file`), each larger than all newer ones
together; unlike it, it has all rows of a key, duplicates included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from odfpy.data.memory import from_numpy
from odfpy.state.fingerprints import Entries, Fingerprints
from odfpy.state.merging import IndexSizes, num_staying, ranges
from odfpy.state.run_file import RunInfo, RunWriter, SortedRun

SIZES: Final = IndexSizes(block_rows=512, least_rows=16_384)
"""Sizes of arrangements. Blocks are small, since each lookup of a key reads at least one."""


def sorted_by(fingerprints: Fingerprints, rows: pa.Table) -> Entries:
    """Return rows as entries sorted by fingerprint; entries with equal fingerprints keep their order."""
    order = np.argsort(fingerprints, kind="stable")
    return Entries(fingerprints[order], rows.combine_chunks().take(from_numpy(order)))


def write_run(path: Path, parts: Iterable[Entries], schema: pa.Schema, sizes: IndexSizes = SIZES) -> RunInfo:
    """Write sorted entries to a new run file.

    Args:
        path: the file.
        parts: the entries.
        schema: schema of the rows.
        sizes: sizes of blocks.

    Raises:
        OSError: the file cannot be written.
    """
    with RunWriter(path, schema, sizes.block_rows) as writer:
        for part in parts:
            writer.write(part)
        return writer.finish()


def add_entries(
    folder: Path, runs: Sequence[RunInfo], path: Path, new: Entries, sizes: IndexSizes = SIZES
) -> tuple[RunInfo, ...]:
    """Return the runs of an arrangement after adding entries: some runs are merged into a new one.

    Args:
        folder: the folder of the runs, which are left unchanged.
        runs: the runs, the oldest first.
        path: the file for the new run.
        new: the entries.
        sizes: the sizes that determine merging.

    Raises:
        StateDamaged: a run is missing or damaged.
        OSError: the new run cannot be written.
    """
    staying = num_staying(runs, len(new.fingerprints), sizes)
    parts: list[SortedRun | Entries] = [*(SortedRun(folder, info) for info in runs[staying:]), new]
    merged = (_merged([part.between(*limits) for part in parts]) for limits in ranges(runs[staying:], new, sizes))
    return (*runs[:staying], write_run(path, merged, new.rows.schema, sizes))


def rows_of(folder: Path, runs: Iterable[RunInfo], wanted: Fingerprints) -> list[pa.Table]:
    """Return rows with the given fingerprints, which are ascending and distinct, as one table per run.

    Args:
        folder: folder of the runs.
        runs: the runs.
        wanted: the fingerprints.

    Raises:
        StateDamaged: a run is missing or damaged.
    """
    return [SortedRun(folder, info).matching(wanted).rows for info in runs]


def all_rows(folder: Path, runs: Iterable[RunInfo]) -> Iterator[pa.RecordBatch]:
    """Yield all rows, one block at a time.

    Args:
        folder: folder of the runs.
        runs: the runs.

    Raises:
        StateDamaged: a run is missing or damaged.
    """
    for info in runs:
        yield from SortedRun(folder, info).batches()


def _merged(parts: Sequence[Entries]) -> Entries:
    fingerprints = np.concatenate([part.fingerprints for part in parts])
    return sorted_by(fingerprints, pa.concat_tables([part.rows for part in parts]))
