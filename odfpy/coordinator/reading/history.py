"""History of a dataset: its blocks as JSON trees, and statistics per day."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from odfpy.chain.block import HashedBlock
from odfpy.chain.encoding import block_document
from odfpy.chain.events import AddData, ExecuteTransform
from odfpy.coordinator.storage.signers import BlockSigners
from odfpy.data.timestamp import Timestamp
from odfpy.repository.transfer.clock import ahead
from odfpy.values import dataclass

_DAY = len("2024-01-01")


@dataclass(frozen=True, slots=True)
class DayOfHistory:
    """The blocks of a day of system time.

    Attributes:
        day: the day, in UTC.
        num_commits: number of blocks with rows or a watermark.
        num_records: number of their rows, including corrections and retractions.
        data_size: size of their slices in bytes.
        watermark: watermark of the last of these blocks, None if it has none.
        lag_seconds: lag of this watermark behind the time of its block.
    """

    day: str
    num_commits: int
    num_records: int
    data_size: int
    watermark: Timestamp | None
    lag_seconds: float | None


def days_of(blocks: Iterable[HashedBlock], most: int) -> list[DayOfHistory]:
    """Return the statistics of the last days, oldest first; days without data blocks are omitted.

    Args:
        blocks: the blocks, newest first.
        most: maximum number of days.
    """
    days: list[DayOfHistory] = []
    for hashed in blocks:
        event = hashed.block.event
        if not isinstance(event, AddData | ExecuteTransform):
            continue
        day = str(hashed.block.system_time)[:_DAY]
        if not days or days[-1].day != day:
            if len(days) == most:
                break
            days.append(_begun(day, hashed.block.system_time, event.new_watermark))
        days[-1] = _with(days[-1], event)
    return days[::-1]


def block_tree(hashed: HashedBlock, signed: BlockSigners) -> dict[str, Any]:
    """Return a block with its signers as a JSON tree, as `odf log -o json` prints it.

    Args:
        hashed: the block.
        signed: signers of the block.
    """
    tree = {"blockHash": str(hashed.hash), **block_document(hashed), "signatures": signature_trees(signed)}
    early = ahead(hashed.block.system_time, Timestamp.now())
    return tree if early is None else {**tree, "aheadOfClock": early.seconds}


def signature_trees(signed: BlockSigners) -> list[dict[str, Any]]:
    """Return the signers of a block as JSON trees, or the error in the signatures."""
    if signed.error is not None:
        return [{"error": signed.error.message, "code": signed.error.code, "hint": signed.error.hint}]
    return [{"signer": str(signer.key), "name": signer.name, "time": str(signer.time)} for signer in signed.signers]


def _begun(day: str, time: Timestamp, watermark: Timestamp | None) -> DayOfHistory:
    lag = None if watermark is None else (time.nanos - watermark.nanos) / 1e9
    return DayOfHistory(day, 0, 0, 0, watermark, lag)


def _with(day: DayOfHistory, event: AddData | ExecuteTransform) -> DayOfHistory:
    new = event.new_data
    records = 0 if new is None else new.offset_interval.num_rows
    size = 0 if new is None else new.size
    return DayOfHistory(
        day.day, day.num_commits + 1, day.num_records + records, day.data_size + size, day.watermark, day.lag_seconds
    )
