"""The log structure of key indexes and arrangements: selection of the runs to merge."""

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
        block_rows: maximum number of entries in a block, which is the unit of reading.
        least_rows: minimum number of entries for which a separate run is worthwhile.
        fanout: minimum size of a run, relative to the newer entries, at which it is not merged with them.
        part_rows: maximum number of rows that are sorted and merged at once, which bounds memory.
        part_bytes: maximum bytes of these rows.
    """

    block_rows: int = 8_192
    least_rows: int = 4_096
    fanout: int = 2
    part_rows: int = 1 << 20
    part_bytes: int = 1 << 27


DEFAULT_SIZES = IndexSizes()


def num_staying(runs: Sequence[RunInfo], rows: int, sizes: IndexSizes) -> int:
    """Return the number of runs that stay unchanged when entries are added; the later ones are merged with the entries.

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
    """Yield ranges of fingerprints of about equal size, in which runs and new entries are merged one after the other.

    Args:
        runs: the runs.
        new: the entries.
        sizes: the sizes that bound each range.
    """
    rows = len(new.fingerprints) + sum(run.rows for run in runs)
    size = new.rows.nbytes + sum(run.size for run in runs)
    count = max(1, -(-rows // sizes.part_rows), -(-size // sizes.part_bytes))
    # Fingerprints are uniformly distributed.
    for number in range(count):
        last = number + 1 == count
        yield number * _HASH_SPACE // count, None if last else (number + 1) * _HASH_SPACE // count
