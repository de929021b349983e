"""The log structure of key indexes and arrangements: which runs stay, and which are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from odfpy.state.fingerprints import Entries
from odfpy.state.run_file import RunInfo
from odfpy.values import dataclass

_HASH_SPACE = 1 << 64


@dataclass(frozen=True, slots=True)
class IndexSizes:
    """Sizes that determine the structure of an index; they do not affect results.

    Attributes:
        block_rows: the maximum number of entries of a block, which are read together.
        least_rows: the minimum number of entries of a run, which deserves its own file.
        fanout: a run is merged with newer entries unless it is that many times as large.
        part_rows: the maximum number of rows that are sorted and merged at once, which bounds the memory for making an
            index.
        part_bytes: the same in bytes.
    """

    block_rows: int = 8_192
    least_rows: int = 4_096
    fanout: int = 2
    part_rows: int = 1 << 20
    part_bytes: int = 1 << 27


DEFAULT_SIZES = IndexSizes()


def num_staying(runs: Sequence[RunInfo], rows: int, sizes: IndexSizes) -> int:
    """Return how many runs stay unchanged when entries are added; the others are merged with these.

    Args:
        runs: the runs, the oldest first.
        rows: number of added entries.
        sizes: the sizes that determine merging.
    """
    staying = len(runs)
    while staying and runs[staying - 1].rows < sizes.fanout * max(rows, sizes.least_rows):
        staying -= 1
        rows += runs[staying].rows
    return staying


def ranges(runs: Sequence[RunInfo], new: Entries, sizes: IndexSizes) -> Iterator[tuple[int, int | None]]:
    """Yield the ranges of fingerprints in which runs and new entries are merged, of about equal size.

    Args:
        runs: the runs.
        new: the entries.
        sizes: the sizes that bound what is merged at once.
    """
    rows = len(new.fingerprints) + sum(run.rows for run in runs)
    size = new.rows.nbytes + sum(run.size for run in runs)
    count = max(1, -(-rows // sizes.part_rows), -(-size // sizes.part_bytes))
    # Fingerprints are uniformly distributed.
    for number in range(count):
        last = number + 1 == count
        yield number * _HASH_SPACE // count, None if last else (number + 1) * _HASH_SPACE // count
