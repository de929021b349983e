"""Background verifications of a server: a few at a time, one for each dataset; they end with the server.

Results are stored next to the dataset (`odfpy.coordinator.maintenance.last_verification`), so they survive restarts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.coordinator.maintenance.report import Finding, VerifyReport
from odfpy.coordinator.requests import VerifyRequest
from odfpy.coordinator.storage.results import Progress
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.timestamp import Timestamp
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import OdfError, QueryCancelled, SandboxRequired
from odfpy.serving.http.logs import log

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace
    from odfpy.engine.registry import EngineRegistry

MAX_AT_ONCE: Final = 2
"""Maximum concurrent verifications of a server."""

_MAX_KEPT: Final = 1000


class AlreadyUnderWay(Exception):
    """A verification of the dataset is already running."""


class TooManyUnderWay(Exception):
    """The server has reached its limit of concurrent verifications."""


@dataclass
class VerificationJob:
    """A verification that is running, or has ended without a report.

    Attributes:
        started_by: name of the token that started it.
        request: the datasets to verify, and how thoroughly.
        progress: how far it is; None before the first sign of life.
        verified: number of verified datasets.
        ended_at: time of its end; None while it is running.
        problem: why there is no report; None if there is one.
    """

    started_by: str
    request: VerifyRequest
    started_at: Timestamp = field(default_factory=Timestamp.now)
    progress: Progress | None = None
    verified: int = 0
    ended_at: Timestamp | None = None
    problem: OdfError | Finding | None = None
    control: CancellationToken = field(default_factory=CancellationToken)
    thread: threading.Thread | None = None

    @property
    def is_under_way(self) -> bool:
        """True while it is running."""
        return self.ended_at is None

    def record_progress(self, sign: Progress) -> None:
        """Record a sign of life."""
        self.progress = sign


class Verifications:
    """The verifications of a server. For all threads."""

    def __init__(self, workspaces: Iterable[Workspace]) -> None:
        self._workspaces = {workspace.storage.root: workspace for workspace in workspaces}
        self._jobs: dict[Path, VerificationJob] = {}
        self._lock = threading.Lock()
        self._is_over = False

    def start(
        self,
        dataset: StoredDataset,
        started_by: str,
        engines: EngineRegistry,
        *,
        integrity_only: bool = False,
        recursive: bool = False,
    ) -> VerificationJob:
        """Start a verification.

        Args:
            dataset: the dataset.
            started_by: name of the caller's token.
            engines: engines that replay the transformations.
            integrity_only: whether to skip the replay.
            recursive: whether to include the inputs.

        Raises:
            AlreadyUnderWay, TooManyUnderWay: it cannot start now.
        """
        refs = (str(dataset.handle.id),)
        job = VerificationJob(started_by, VerifyRequest(refs=refs, integrity_only=integrity_only, recursive=recursive))
        workspace = self._workspaces[dataset.workspace_folder.root]
        with self._lock:
            known = self._jobs.get(dataset.folder)
            if known is not None and known.is_under_way:
                raise AlreadyUnderWay
            if self._is_over or sum(other.is_under_way for other in self._jobs.values()) >= MAX_AT_ONCE:
                raise TooManyUnderWay
            ended = [folder for folder, other in self._jobs.items() if not other.is_under_way]
            for folder in ended[: max(0, len(self._jobs) - _MAX_KEPT)]:
                del self._jobs[folder]
            self._jobs[dataset.folder] = job
            job.thread = threading.Thread(
                target=_run, args=(workspace, job, engines), name=f"verification of {dataset.handle}", daemon=True
            )
            job.thread.start()
        return job

    def get(self, dataset: StoredDataset) -> VerificationJob | None:
        """Return the last verification of a dataset in this process, running or not; None if there is none."""
        return self._jobs.get(dataset.folder)

    def cancel(self, dataset: StoredDataset) -> bool:
        """Cancel the verification of a dataset; returns whether one was running."""
        job = self.get(dataset)
        if job is None or not job.is_under_way:
            return False
        job.control.cancel()
        return True

    def stop(self, seconds: float) -> None:
        """Cancel all verifications, and wait for their end; new ones are no longer started.

        Args:
            seconds: maximum time to wait.
        """
        deadline = time.monotonic() + seconds
        with self._lock:
            self._is_over = True
            jobs = [other for other in self._jobs.values() if other.is_under_way]
        for job in jobs:
            job.control.cancel()
        for job in jobs:
            if job.thread is not None:
                job.thread.join(max(0.0, deadline - time.monotonic()))


def _run(workspace: Workspace, job: VerificationJob, engines: EngineRegistry) -> None:
    try:
        with job.control:
            reports = workspace.maintenance.verify(
                job.request, job.record_progress, engines=engines, control=job.control
            )
            for report in reports:
                job.verified += 1
                job.problem = job.problem or _hindered(report)
    except QueryCancelled as error:
        job.problem = error.with_message("The verification was stopped", hint=None)
    except OdfError as error:
        job.problem = error
    except Exception as error:  # noqa: BLE001 - nobody else would see errors of a thread
        log("failed", level=logging.ERROR, error=error, path="verification")
        job.problem = OdfError("Internal error; the server's log has the details")
    finally:
        job.ended_at = Timestamp.now()


def _hindered(report: VerifyReport) -> Finding | None:
    """Return the finding that the caller may not use the engine for a replay, None without it."""
    return next((finding for finding in report.findings if finding.code == SandboxRequired.code), None)
