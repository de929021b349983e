"""Pinned queries: queries bound to the blocks of an earlier point in time."""

from __future__ import annotations

from dataclasses import replace

from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.errors import InvalidValue, UsageError
from odfpy.query.plan import plan
from odfpy.query.query import Query
from odfpy.query.references import AtBlock, AtTime, PointInTime
from odfpy.query.resolver import DatasetResolver


def pinned_as_at(resolver: DatasetResolver, query: Query, moment: str) -> Query:
    """Return the query with all of its datasets bound to their blocks at a point in time.

    Args:
        resolver: the datasets.
        query: the query.
        moment: a system time; or a block, tag or branch that all of the datasets have.

    Raises:
        NotYetThen: a dataset had no block yet.
        NotFound, BlockOfAnother: a dataset has no such block.
        UsageError: the history of a dataset has been shortened since, and the block is gone.
    """
    pins: dict[DatasetId, Multihash] = {}
    wanted = _moment(moment)
    for reference, resolved in plan(resolver, query).tables:
        if "@" in reference.dataset:
            continue  # the name determines the block
        cut = resolved.cut(wanted, "")
        if cut.last_offset is not None or cut.state.head is None:
            name = resolved.name
            raise UsageError(
                f"{name} has no block of {moment}: it was compacted",
                hint=f"Write odf_as_at('{name}', '{moment}') in the query: that goes by rows.",
            )
        pins[resolved.input.id] = cut.state.head
    return replace(query, pins={**pins, **query.pins})


def _moment(text: str) -> PointInTime:
    try:
        return AtTime(Timestamp.parse(text))
    except InvalidValue:
        return AtBlock(text, or_time=True)
