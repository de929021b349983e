"""The work of a run: one job for one dataset, in the process of the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odfpy.automation.errors import JobImpossible
from odfpy.automation.job_planner import Outcome
from odfpy.automation.runs import RunResult
from odfpy.coordinator.maintenance.report import Severity
from odfpy.coordinator.requests import PullRequest, PushRequest, VerifyRequest
from odfpy.coordinator.schedules.schedule import Job
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.errors import OdfError

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

PATIENCE: Final = 60.0
"""Seconds to wait for another writer of the dataset."""

_OUTCOMES: Final = {
    PullOutcome.UPDATED: Outcome.UPDATED,
    PullOutcome.UP_TO_DATE: Outcome.UP_TO_DATE,
    PullOutcome.FAILED: Outcome.FAILED,
    PullOutcome.SKIPPED: Outcome.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a run.

    Attributes:
        job: the job.
        dataset_id: complete id of the dataset.
        integrity_only: for a verification, whether to skip the replay.
        to: for a push, the remote; that of the last push by default.
    """

    job: Job
    dataset_id: str
    integrity_only: bool = False
    to: str | None = None


def do(workspace: Workspace, work: Work) -> RunResult:
    """Run a job, and return its result; expected errors are included in the result."""
    workspace.storage.lock_patience = PATIENCE
    try:
        return _JOBS[work.job](workspace, work)
    except OdfError as error:
        return failed(error)


def failed(error: OdfError) -> RunResult:
    """Return the result of a run that has failed."""
    return RunResult(outcome=Outcome.FAILED.value, error_code=error.code, error_message=error.message)


def _pull(workspace: Workspace, work: Work) -> RunResult:
    return _of_transfer(workspace.updates.pull(PullRequest(refs=(work.dataset_id,))), workspace, work)


def _push(workspace: Workspace, work: Work) -> RunResult:
    return _of_transfer(workspace.remotes.push(PushRequest(refs=(work.dataset_id,), to=work.to)), workspace, work)


def _of_transfer(results: Iterable[PullResult], workspace: Workspace, work: Work) -> RunResult:
    found = list(results)
    worst = max(found, key=lambda one: list(_OUTCOMES).index(one.outcome), default=None)
    error = worst.error if worst is not None else None
    has_news = any(one.outcome is PullOutcome.UPDATED for one in found)
    outcome = Outcome.UP_TO_DATE if worst is None else _OUTCOMES[worst.outcome]
    state = workspace.storage.get(work.dataset_id).state
    return RunResult(
        outcome=(Outcome.UPDATED if has_news and outcome is Outcome.UP_TO_DATE else outcome).value,
        rows=sum(one.num_records for one in found),
        blocks=sum(one.num_blocks for one in found),
        watermark=None if state.watermark is None else str(state.watermark),
        head=None if state.head is None else str(state.head),
        error_code=None if error is None else error.code,
        error_message=None if error is None else error.message,
        warnings=_lines([*(warning.message for one in found for warning in one.warnings)]),
    )


def _verify(workspace: Workspace, work: Work) -> RunResult:
    request = VerifyRequest(refs=(work.dataset_id,), integrity_only=work.integrity_only)
    (report,) = workspace.maintenance.verify(request)
    errors = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    others = [finding.message for finding in report.findings if finding.severity is not Severity.ERROR]
    return RunResult(
        outcome=(Outcome.FAILED if errors else Outcome.UP_TO_DATE).value,
        blocks=report.blocks,
        head=None if report.head is None else str(report.head),
        error_code=errors[0].code if errors else None,
        error_message="\n".join(finding.message for finding in errors) or None,
        warnings=_lines(others),
    )


def _compact(workspace: Workspace, work: Work) -> RunResult:
    """Compact a dataset, unless derivatives would have to be rebuilt, which requires a confirmation by a user."""
    plan = workspace.maintenance.plan_compact(work.dataset_id)
    if plan.downstream.all:
        names = ", ".join(map(str, plan.downstream.all))
        raise JobImpossible(
            f"{plan.handle} was not compacted: {names} would have to be recomputed",
            hint=f"`odf compact {plan.handle}` does it after a confirmation.",
        )
    result = workspace.maintenance.compact(work.dataset_id)
    return RunResult(
        outcome=(Outcome.UPDATED if result.changes else Outcome.UP_TO_DATE).value,
        blocks=result.blocks[1],
        head=str(result.new_head),
        warnings=_lines(result.notes),
    )


def _lines(texts: Iterable[str]) -> str | None:
    return "\n".join(texts) or None


_JOBS: Final = {Job.PULL: _pull, Job.PUSH: _push, Job.VERIFY: _verify, Job.COMPACT: _compact}
