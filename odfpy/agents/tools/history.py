"""`dataset_history`: the last blocks of a dataset, and the rows added since a time."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from odfpy.agents.readers import Reader
from odfpy.agents.tool import Arguments, DatasetName, Tool, ToolAnswer
from odfpy.agents.tools.find import text_or_none
from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, ExecuteTransform
from odfpy.coordinator.storage.signers import BlockSigners, Signers
from odfpy.data.amounts import count_of
from odfpy.data.timestamp import Timestamp
from odfpy.engine.cancellation import CancellationToken


class HistoryArguments(Arguments):
    """A dataset, and a start time."""

    dataset: DatasetName
    since: Annotated[
        str | None,
        Field(max_length=50, description="Only blocks after this time, RFC 3339 or a date (2024-03-01); UTC."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number of blocks; the newest are listed.")] = 20


class BlockOfHistory(BaseModel):
    """A block."""

    sequence_number: int
    block: str
    time: Annotated[str, Field(description="System time.")]
    event: Annotated[str, Field(description="Kind of the event: AddData and ExecuteTransform add rows.")]
    new_rows: int
    watermark: str | None
    signed_by: list[str]


class HistoryAnswer(ToolAnswer):
    """Blocks of a dataset, newest first."""

    dataset: str
    blocks: list[BlockOfHistory]
    num_blocks: Annotated[int, Field(description="Number of blocks since then, including those not listed.")]
    new_rows: Annotated[int, Field(description="Number of their rows, including corrections and retractions.")]
    block_before: Annotated[
        str | None, Field(description="The block before all of these: the old version for compare_states.")
    ]

    def summary(self) -> str:
        listed = "" if len(self.blocks) == self.num_blocks else f" The newest {len(self.blocks)} are listed."
        return f"{count_of(self.num_blocks, 'block')} with {count_of(self.new_rows, 'row')}.{listed}"


def _history(reader: Reader, asked: HistoryArguments, control: CancellationToken) -> HistoryAnswer:
    dataset = reader.dataset(asked.dataset)
    since = None if asked.since is None else Timestamp.parse(asked.since)
    signers = Signers(dataset)
    found: list[BlockOfHistory] = []
    count = rows = 0
    before: str | None = None
    for hashed in dataset.chain.iter_blocks(dataset.state.head):
        control.check()
        if since is not None and hashed.block.system_time <= since:
            before = str(hashed.hash)
            break
        count += 1
        rows += _rows_of(hashed)
        if len(found) < asked.limit:
            found.append(_block(hashed, signers.get(hashed)))
    return HistoryAnswer(
        dataset=str(dataset.handle), blocks=found, num_blocks=count, new_rows=rows, block_before=before
    )


def _block(hashed: HashedBlock, signed: BlockSigners) -> BlockOfHistory:
    event = hashed.block.event
    watermark = event.new_watermark if isinstance(event, AddData | ExecuteTransform) else None
    return BlockOfHistory(
        sequence_number=hashed.block.sequence_number,
        block=str(hashed.hash),
        time=str(hashed.block.system_time),
        event=type(event).__name__,
        new_rows=_rows_of(hashed),
        watermark=text_or_none(watermark),
        signed_by=list(dict.fromkeys(signer.name for signer in signed.signers)),
    )


def _rows_of(hashed: HashedBlock) -> int:
    event = hashed.block.event
    if not isinstance(event, AddData | ExecuteTransform) or event.new_data is None:
        return 0
    return event.new_data.offset_interval.num_rows


HISTORY = Tool(
    name="dataset_history",
    title="History of a dataset",
    description=(
        "List the last blocks of a dataset's metadata chain, newest first, with their times, rows and signers."
        " With `since`, list the blocks since then; `compare_states` returns the rows that changed."
    ),
    arguments=HistoryArguments,
    answer=HistoryAnswer,
    run=_history,
)
