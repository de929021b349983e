"""Runs: each is a row of the dataset `odf.runs`, and a line of output."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, Final

from odfpy.automation.job_planner import Outcome, Start
from odfpy.coordinator.record_log import RecordedDataset
from odfpy.data.timestamp import NANOS_PER_MILLI, Timestamp
from odfpy.escaping import escape_controls_in_lines
from odfpy.values import dataclass

DATASET: Final = "odf.runs"
FAILED: Final = ("failed", "interrupted")
"""Outcomes of failed runs."""

MAX_LENGTH: Final = 2000
"""Maximum number of characters of an error message, and of all warnings together."""

RUNS: Final = RecordedDataset(
    name=DATASET,
    folder="automation/runs",
    description="Runs of the scheduler of this workspace",
    columns={
        "id": "STRING",
        "at": "TIMESTAMP",
        "dataset": "STRING",
        "dataset_id": "STRING",
        "job": "STRING",
        "reason": "STRING",
        "due_at": "TIMESTAMP",
        "started_at": "TIMESTAMP",
        "seconds": "DOUBLE",
        "outcome": "STRING",
        "attempt": "INT",
        "rows": "BIGINT",
        "blocks": "BIGINT",
        "watermark": "TIMESTAMP",
        "head": "STRING",
        "error_code": "STRING",
        "error_message": "STRING",
        "warnings": "STRING",
        "peak_memory": "BIGINT",
        "engine_memory": "BIGINT",
    },
    longest=MAX_LENGTH,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run, as reported by its process.

    Attributes:
        outcome: a value of `Outcome`.
        rows: number of new rows; None for a verification.
        blocks: number of new blocks; for a verification, of verified ones.
        watermark: new watermark of the dataset.
        head: new head of the dataset.
        error_code: code of the error.
        error_message: message of the error.
        warnings: warnings, one per line.
        peak_memory: peak memory of its process in bytes, None if unknown.
        engine_memory: memory of the Spark engine in bytes at the end, None if it was not used.
        seconds: duration in seconds; None for a run that was killed.
    """

    outcome: str
    rows: int | None = None
    blocks: int | None = None
    watermark: str | None = None
    head: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    warnings: str | None = None
    peak_memory: int | None = None
    engine_memory: int | None = None
    seconds: float | None = None

    @classmethod
    def of(cls, tree: Any) -> RunResult | None:
        """Parse a result; return None if it is invalid."""
        known = {field.name for field in fields(cls)}
        if not isinstance(tree, dict) or not tree.keys() <= known:
            return None
        if tree.get("outcome") not in {outcome.value for outcome in Outcome}:
            return None
        return cls(**tree)

    @classmethod
    def interrupted(cls, why: str) -> RunResult:
        """Return the result of an interrupted run."""
        return cls(outcome=Outcome.INTERRUPTED.value, error_message=why)

    def bounded(self) -> dict[str, Any]:
        """Return the result as columns of a row, with sanitized and truncated texts."""
        tree = asdict(self)
        for name in ("error_message", "warnings"):
            if tree[name] is not None:
                tree[name] = escape_controls_in_lines(tree[name])[:MAX_LENGTH]
        return tree


@dataclass(frozen=True, slots=True)
class Run:
    """A run in progress.

    Attributes:
        id: id of the run.
        start: job and reason.
        name: name of the dataset at the start.
        dataset_id: complete id of the dataset.
        started: time of the start, in seconds since the epoch.
        seen_rows: number of rows of the dataset at the start.
    """

    id: str
    start: Start
    name: str
    dataset_id: str
    started: float
    seen_rows: int | None = None

    def row(self, result: RunResult | None, ended: float) -> dict[str, Any]:
        """Return the row of the run, as in `odf.runs`.

        Args:
            result: the result, None while the run is in progress.
            ended: time of the end; the current time while the run is in progress.
        """
        found = {} if result is None else result.bounded()
        row = {
            "id": self.id,
            "at": time_text(ended),
            "dataset": self.name,
            "dataset_id": self.dataset_id,
            "job": self.start.key.job.value,
            "reason": self.start.reason.value,
            "due_at": time_text(self.start.due_at),
            "started_at": time_text(self.started),
            "seconds": round(max(0.0, ended - self.started), 3),
            "outcome": "running",
            "attempt": self.start.attempt,
        }
        return {**dict.fromkeys(RUNS.columns), **row, **found}


def time_text(seconds: float) -> str:
    """Format a time for rows, with milliseconds.

    Args:
        seconds: seconds since the epoch.
    """
    return str(Timestamp(int(seconds * 1000) * NANOS_PER_MILLI))
