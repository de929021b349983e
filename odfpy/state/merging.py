"""The log structure of key indexes and arrangements: runs that stay, and runs that are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from odfpy.state.fingerprints import Entries
from odfpy.state.run_file import RunInfo
from odfpy.values import dataclass

_HASH_SPACE = 1 << 64


@dataclass(frozen=True, slots=True)
class IndexSizes:
    """Sizes by which an index is cut; any sizes give the same answers.

    Attributes:
        block_rows: entries that are read together, at most.
        least_rows: runs with fewer entries are not worth a file of their own.
        fanout: a run is merged with what comes after it unless it is that many times as large.
        part_rows: rows that are sorted and merged at once, at most: this bounds the memory that making an index takes.
        part_bytes: the same in bytes.
    """

    block_rows: int = 8_192
    least_rows: int = 4_096
    fanout: int = 2
    part_rows: int = 1 << 20
    part_bytes: int = 1 << 27


DEFAULT_SIZES = IndexSizes()


def num_staying(runs: Sequence[RunInfo], rows: int, sizes: IndexSizes) -> int:
    """Return how many runs stay as they are when entries come after them; the others are merged with these.

    Args:
        runs: the runs, the oldest first.
        rows: number of entries that come.
        sizes: says which are worth a run of their own.
    """
    staying = len(runs)
    while staying and runs[staying - 1].rows < sizes.fanout * max(rows, sizes.least_rows):
        staying -= 1
        rows += runs[staying].rows
    return staying


def ranges(runs: Sequence[RunInfo], new: Entries, sizes: IndexSizes) -> Iterator[tuple[int, int | None]]:
    """The ranges of fingerprints in which runs and new entries are merged, about equally many at once.

    Args:
        runs: the runs.
        new: the entries.
        sizes: bounds what is merged at once.
    """
    rows = len(new.fingerprints) + sum(run.rows for run in runs)
    size = new.rows.nbytes + sum(run.size for run in runs)
    count = max(1, -(-rows // sizes.part_rows), -(-size // sizes.part_bytes))
    # Fingerprints are spread evenly.
    for number in range(count):
        last = number + 1 == count
        yield number * _HASH_SPACE // count, None if last else (number + 1) * _HASH_SPACE // count
