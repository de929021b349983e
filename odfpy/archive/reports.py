"""Reports: each push to an archive of a workspace is recorded as a row of the dataset `odf.archive-reports`.

A report has the same fields as in datalake: the outcome of the push (`status`), when it began (`start`, in
milliseconds), how long it took (`duration`, in seconds), its records, and a message if there was an error. New reports
are small files in `.odf/archive/reports`. Readers ingest them into the dataset, and so do pushes when there are many.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from odfpy.archive.pushing import Pushed, PushOutcome
from odfpy.coordinator.record_log import RecordedDataset
from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError
from odfpy.files import make_folder, replace_file

if TYPE_CHECKING:
    from odfpy.archive.local import LocalArchive
    from odfpy.coordinator.workspace import Workspace

DATASET: Final = "odf.archive-reports"
MAX_RECORDS: Final = 100
"""Maximum number of records in a report; its counts cover all."""

_MAX_MESSAGE_LENGTH: Final = 2000
_MANY: Final = 200

REPORTS: Final = RecordedDataset(
    name=DATASET,
    folder="archive/reports",
    description="Pushes to the archives of this workspace",
    columns={
        "id": "STRING",
        "at": "TIMESTAMP",
        "version": "INT",
        "status": "STRING",
        "start": "BIGINT",
        "duration": "DOUBLE",
        "archive": "STRING",
        "by": "STRING",
        "files": "BIGINT",
        "known": "BIGINT",
        "refused": "BIGINT",
        "bytes": "BIGINT",
        "records": "STRING",
        "message": "STRING",
    },
    longest=1 << 20,
)


class ReportStatus(Enum):
    """The outcome of a complete push.

    Attributes:
        SUCCESS: all files are in the archive.
        WARNING: some are; others were rejected.
        ERROR: none is.
    """

    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"


class Pusher(Enum):
    """The origin of a push: `odf archive push`, an uploader, the server for a client of its own, or an import."""

    COMMAND = "command"
    UPLOADER = "uploader"
    SERVER = "server"
    IMPORT = "import"


@dataclass(frozen=True, slots=True, kw_only=True)
class PushReport:
    """A completed push.

    Attributes:
        archive: name of its dataset.
        by: origin of the push.
        start: when it began, in milliseconds since the epoch.
        duration: duration in seconds.
        results: results per file.
        error: why it failed as a whole, None if it did not.
    """

    archive: str
    by: Pusher
    start: int
    duration: float
    results: Sequence[Pushed] = ()
    error: OdfError | None = None

    @property
    def status(self) -> ReportStatus:
        """The overall outcome."""
        refused = self._count(PushOutcome.REFUSED)
        if self.error is not None or (refused and refused == len(self.results)):
            return ReportStatus.ERROR
        return ReportStatus.WARNING if refused else ReportStatus.SUCCESS

    @property
    def message(self) -> str | None:
        """A description of the errors for people; None if there were none."""
        messages = [result.error.message for result in self.results if result.error is not None]
        if self.error is not None:
            messages.insert(0, self.error.message)
        return "\n".join(messages)[:_MAX_MESSAGE_LENGTH] or None

    def row(self) -> dict[str, Any]:
        """Return the row of the report in the dataset."""
        with_record = [result for result in self.results if result.record is not None]
        records = [_record(result) for result in with_record[:MAX_RECORDS]]
        return {
            "version": 0,
            "status": self.status.value,
            "start": self.start,
            "duration": round(self.duration, 6),
            "archive": self.archive,
            "by": self.by.value,
            "files": len(with_record),
            "known": self._count(PushOutcome.KNOWN),
            "refused": self._count(PushOutcome.REFUSED),
            "bytes": sum(result.record.size for result in with_record if result.record is not None),
            "records": json.dumps(records, separators=(",", ":")),
            "message": self.message,
        }

    def _count(self, outcome: PushOutcome) -> int:
        return sum(result.outcome is outcome for result in self.results)


def _record(result: Pushed) -> dict[str, Any]:
    record = result.record
    assert record is not None  # noqa: S101  those without are not asked for
    return {
        "url": result.url,
        "size": record.size,
        "create_time": record.create_time,
        "metadata": record.metadata(),
    }


def record_report(workspace: Workspace, report: PushReport) -> None:
    """Record a push. The report is durable on return; readers ingest it into the dataset.

    Args:
        workspace: workspace of the archive.
        report: report of the push.

    Raises:
        OdfError: the report cannot be written.
    """
    folder = workspace.storage.odf / REPORTS.folder
    try:
        make_folder(folder)
        name = f"{time.time_ns():020d}-{uuid.uuid4()}.ndjson"  # ingested by name, so in order of arrival
        replace_file(folder / name, REPORTS.line_of(report.row()))
        is_many = sum(1 for _ in folder.glob("*.ndjson")) >= _MANY
    except OSError as error:
        raise OdfError(f"Cannot write {folder}: {error.strerror}") from error
    if is_many:
        REPORTS.ingest(workspace)


def recorded_push(archive: LocalArchive, by: Pusher, push: Callable[[], list[Pushed]]) -> list[Pushed]:
    """Push and record the outcome. A failure to record does not fail the push.

    Args:
        archive: the target archive.
        by: origin of the push.
        push: function that pushes.

    Raises:
        OdfError: as `push`.
    """
    start, begun = Timestamp.now().millis, time.monotonic()
    results: Sequence[Pushed] = ()
    failure: OdfError | None = None
    try:
        outcomes = push()
        results = outcomes
    except OdfError as error:
        failure = error
        raise
    finally:
        duration = time.monotonic() - begun
        report = PushReport(archive=archive.name, by=by, start=start, duration=duration, results=results, error=failure)
        try:
            record_report(archive.workspace, report)
        except OdfError as error:
            logging.getLogger("odfpy").warning("a push to %s was not recorded: %s", archive.name, error.message)
    return outcomes


def reports(
    workspace: Workspace, *, num: int, status: ReportStatus | None = None, since: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the last reports, newest first.

    Args:
        workspace: the workspace.
        num: maximum number of items.
        status: only reports with this status.
        since: only pushes that began at or after this time, in milliseconds since the epoch.

    Raises:
        OdfError: new reports cannot be ingested.
    """
    REPORTS.ingest(workspace)
    conditions = [f"status = '{status.value}'"] if status else []
    conditions += [f"start >= {since:d}"] if since is not None else []
    for row in REPORTS.records(workspace, num=num, condition=" AND ".join(conditions) or None):
        row["at"] = row["at"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
        row["records"] = json.loads(row["records"])
        yield row
