"""Which blocks have to be read for which rows."""

from __future__ import annotations

import pytest
from support.chains.events import add, day, unchecked

from odfpy.chain.slices import newest_blocks, slices_of
from odfpy.coordinator.transform.slices import watermark_times

BLOCKS = unchecked(
    [
        add(0, 9, new_watermark=day(1)),
        add(10, 19, new_watermark=day(2)),
        add(after=19, new_watermark=day(2)),
        add(20, 29, new_watermark=day(2)),
    ]
)


@pytest.mark.parametrize(("start", "first"), [(None, 3), (29, 3), (20, 3), (19, 1), (10, 1), (9, 0), (0, 0)])
def test_blocks_are_read_back_to_the_first_row_that_is_wanted(start: int | None, first: int) -> None:
    assert newest_blocks(reversed(BLOCKS), start) == BLOCKS[first:]


@pytest.mark.parametrize("start", [None, 29, 19, 9, 0])
def test_blocks_are_read_back_to_the_last_move_of_the_watermark(start: int | None) -> None:
    blocks = newest_blocks(reversed(BLOCKS), start, watermark=True)
    assert watermark_times(blocks)[-1:] == watermark_times(BLOCKS)[-1:]
    wanted = [item.data for item in slices_of(BLOCKS) if start is not None and item.data.offset_interval.end >= start]
    assert [item.data for item in slices_of(blocks)][-len(wanted) or len(BLOCKS) :] == wanted
