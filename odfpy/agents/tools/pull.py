"""`pull`: bring a dataset up to date; only for a token that may write."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from odfpy.agents.readers import Reader
from odfpy.agents.tool import Arguments, DatasetName, Tool, ToolAnswer
from odfpy.agents.tools.find import text_or_none
from odfpy.coordinator.requests import PullRequest
from odfpy.data.amounts import count_of
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import UsageError
from odfpy.serving.callers.tokens import Scope


class PullArguments(Arguments):
    """A dataset to bring up to date."""

    dataset: DatasetName


class PullAnswer(ToolAnswer):
    """The added blocks and rows."""

    dataset: str
    outcome: Annotated[str, Field(description="updated, up to date, failed or skipped")]
    new_blocks: int
    new_rows: int
    old_head: str | None
    new_head: str | None
    watermark: str | None
    problem: Annotated[str | None, Field(description="Why it failed or was skipped.")]

    def summary(self) -> str:
        return f"{self.outcome}: {count_of(self.new_blocks, 'new block')} with {count_of(self.new_rows, 'row')}."


def _pull(reader: Reader, asked: PullArguments, control: CancellationToken) -> PullAnswer:
    control.check()
    dataset = reader.dataset(asked.dataset)
    if not reader.caller.may(Scope.WRITE, dataset.workspace_folder):
        raise UsageError("This token may read the dataset, but not change it", hint="It needs the scope write.")
    workspace = reader.workspace_of(dataset)
    (result,) = workspace.updates.pull(PullRequest.of([str(dataset.handle.id)]))
    return PullAnswer(
        dataset=str(dataset.handle),
        outcome=result.outcome.value,
        new_blocks=result.num_blocks,
        new_rows=result.num_records,
        old_head=text_or_none(result.old_head),
        new_head=text_or_none(result.new_head),
        watermark=text_or_none(result.watermark),
        problem=None if result.error is None else f"{result.error.code}: {result.error.message}",
    )


PULL = Tool(
    name="pull",
    title="Pull a dataset",
    description=(
        "Pull one dataset from its own source, inputs or origin, as `odf pull NAME` does. It adds blocks and removes"
        " none. It takes as long as the source takes."
    ),
    arguments=PullArguments,
    answer=PullAnswer,
    run=_pull,
    writes=True,
    is_query=False,
    needs_token=True,
)
