"""Batch verification: compare a derivative with the result of its query over all input data, run with plain Spark.

A replay computes a result in the same way as before, so it cannot detect a wrong result. The batch query shares neither
code nor a process with the original run: it has its own engine, which is stopped afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import ExecuteTransform, ExecuteTransformInput
from odfpy.chain.state import ChainState, is_same_query
from odfpy.codec.tree import from_tree, to_tree
from odfpy.coordinator.maintenance.report import BatchComparison, Finding, Severity
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transform.engines import engine_settings
from odfpy.coordinator.transform.intervals import InputInterval, recorded_intervals
from odfpy.coordinator.transform.run import make_request, output_so_far, require_transform
from odfpy.engine.spark.batch.request import JOB, BatchAnswer, BatchRequest, obstacle_of
from odfpy.engine.worker.admin import stop_engine
from odfpy.engine.worker.client import SparkEngine
from odfpy.errors import BatchMismatch, EngineUnavailable, OdfError
from odfpy.values import dataclass

MAX_COUNT: Final = 1000
"""Maximum number of differences listed."""

_IDLE_SECONDS: Final = 60
_REPORT: Final = (
    "If the dataset has no other errors, this is a bug of the engine: please report it with the query and the"
    " rows that differ (`-o json` has them)."
)
_UNSAID: Final = "Differences may be correct, since an input retracts rows that it does not have."


@dataclass(frozen=True, slots=True)
class ReplayedTransform:
    """A transform of a derivative, at which the comparison is made.

    Attributes:
        hashed: the block of the transform.
        state: the chain state after it.
        has_changed: whether some of the rows were computed by another query.
    """

    hashed: HashedBlock
    state: ChainState
    has_changed: bool


def moments(blocks: Sequence[HashedBlock], states: Sequence[ChainState], *, each: bool) -> list[ReplayedTransform]:
    """Return the last transform of a chain, or all of them.

    Args:
        blocks: the blocks of the chain, oldest first.
        states: the states after each of them.
        each: whether to return all transforms instead of the last one.
    """
    transforms: list[ReplayedTransform] = []
    for hashed, state in zip(blocks, states, strict=True):
        if isinstance(hashed.block.event, ExecuteTransform):
            before = transforms[-1] if transforms else None
            transforms.append(
                ReplayedTransform(hashed, state, before is not None and (before.has_changed or _differ(before, state)))
            )
    return transforms if each else transforms[-1:]


def _differ(before: ReplayedTransform, state: ChainState) -> bool:
    left, right = before.state.set_transform, state.set_transform
    return left is not None and right is not None and not is_same_query(left, right)


class BatchVerifier:
    """Compares datasets with the results of their queries, in an engine that it starts on demand."""

    def __init__(self, storage: Storage, config: Config) -> None:
        settings = engine_settings(storage, config)
        # Run on this machine even if a cluster computed the rows, to detect faults of the cluster.
        master = "local[*]" if settings.is_cluster else settings.master
        alone = replace(settings, master=master, host=None, storage=None, properties=None, jobs_only=True)
        self._storage = storage
        self._engine = SparkEngine(storage.batch_run, replace(alone, idle_seconds=_IDLE_SECONDS))
        self._is_used = False

    def compare(self, dataset: StoredDataset, moment: ReplayedTransform) -> BatchComparison | None:
        """Compare the state of a dataset at a transform with its query; return None if the dataset had no columns yet.

        Raises:
            InvalidQuery, EngineError: the batch query fails.
            EngineUnavailable: the engine does not start, or dies.
        """
        block = moment.hashed
        answer = self._answer(dataset, moment)
        if answer is None:
            return None
        return BatchComparison(
            block=block.hash, sequence_number=block.block.sequence_number, answer=answer, most=MAX_COUNT
        )

    def _answer(self, dataset: StoredDataset, moment: ReplayedTransform) -> BatchAnswer | None:
        transform = require_transform(dataset, moment.state).transform
        if (obstacle := obstacle_of(transform)) is not None:
            return BatchAnswer(obstacle=obstacle)
        with self._request(dataset, moment) as request:
            if request is None:
                return None
            run, output = request.run, request.output
            reads = [
                path for query_input in run.query_inputs for path in (query_input.schema_file, *query_input.data_paths)
            ]
            reads += [output.schema_file, *output.data_paths]
            folder = Path(run.new_data_path).parent
            self._is_used = True
            answer = self._engine.run_job(JOB, json.dumps(to_tree(request)), folder, reads)
        batch_answer: BatchAnswer = from_tree(BatchAnswer, json.loads(answer))
        return batch_answer

    @contextmanager
    def _request(self, dataset: StoredDataset, moment: ReplayedTransform) -> Iterator[BatchRequest | None]:
        """Yield the batch request for a transform; its files exist during the block."""
        event, state = moment.hashed.block.event, moment.state
        output = output_so_far(dataset, state)
        if output is None or not isinstance(event, ExecuteTransform):
            yield None
            return
        set_transform = require_transform(dataset, state)
        inputs = [_from_first_row(item) for item in recorded_intervals(self._storage, dataset, set_transform, event)]
        time = moment.hashed.block.system_time
        with self._storage.scratch() as scratch:
            run = make_request(dataset, set_transform, state, inputs, time, scratch, None)
            yield BatchRequest(replace(run, query_changed=moment.has_changed), output, MAX_COUNT)

    def close(self) -> None:
        """Stop the engine if one was started; jobs of other verifications are finished first."""
        if self._is_used:
            with suppress(EngineUnavailable):
                stop_engine(self._storage.batch_run)


def _from_first_row(item: InputInterval) -> InputInterval:
    """Return an interval of an input extended back to its first row."""
    covered = item.interval
    return replace(
        item,
        interval=ExecuteTransformInput(
            covered.dataset_id,
            prev_block_hash=None,
            new_block_hash=covered.last_block_hash,
            prev_offset=None,
            new_offset=covered.last_offset,
        ),
    )


# --- Findings --------------------------------------------------------------------------------------------------------


def finding_of(comparison: BatchComparison) -> Finding | None:
    """Return the finding of a comparison; None if there is no difference."""
    answer = comparison.answer
    if answer.obstacle is not None:
        return _finding(comparison, Severity.WARNING, f"Not compared with the batch result: {answer.obstacle}")
    if answer.is_equal:
        return None
    kinds = ((answer.missing, "missing"), (answer.extra, "too many"), (answer.differing, "with different values"))
    counts = ", ".join(f"{count} {'row' if count == 1 else 'rows'} {what}" for count, what in kinds if count)
    message = f"The state of the dataset differs from the result of its query, run once: {counts}"
    message = ". ".join([message, *answer.remarks])
    if answer.taken_back:
        return _finding(comparison, Severity.WARNING, message, BatchMismatch, _UNSAID)
    return _finding(comparison, Severity.ERROR, message, BatchMismatch, _REPORT)


def _finding(
    comparison: BatchComparison,
    severity: Severity,
    message: str,
    cause: type[OdfError] | None = None,
    hint: str | None = None,
) -> Finding:
    return Finding(
        severity=severity,
        check="batch",
        message=message,
        block=comparison.block,
        sequence_number=comparison.sequence_number,
        hint=hint,
        code=cause.code if cause else None,
    )
