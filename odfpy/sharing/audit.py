"""The audit log of accesses, an ODF dataset of the workspace; written by `odfpy.coordinator.record_log`.

Accesses recorded in `.odf/audit` by a killed server are appended by the next server, or by `odf audit`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from odfpy.coordinator.record_log import RecordedDataset, RecordLog

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

DATASET: Final = "odf.audit"
AUDIT: Final = RecordedDataset(
    name=DATASET,
    folder="audit",
    description="Accesses to what this workspace shares",
    columns={
        "id": "STRING",
        "at": "TIMESTAMP",
        "who": "STRING",
        "action": "STRING",
        "path": "STRING",
        "version": "BIGINT",
        "block": "STRING",
        "granted": "BOOLEAN",
        "status": "INT",
        "files": "BIGINT",
        "bytes": "BIGINT",
        "address": "STRING",
        "client": "STRING",
    },
)
LEFT_OUT: Final = "not listed"
"""The action of a row that summarizes many anonymous accesses; `files` is their number."""

_MINUTE: Final = 60.0
_MAX_STRANGERS: Final = 100


class AuditLog:
    """Collects accesses, from any thread, and appends them to the dataset."""

    def __init__(self, workspace: Workspace, interval: float) -> None:
        """
        Args:
            workspace: the workspace whose accesses are logged.
            interval: maximum seconds until accesses are appended to the dataset.
        """
        self._log = RecordLog(workspace, AUDIT, interval)
        self._lock = threading.Lock()
        self._minute = 0.0
        self._strangers = 0
        self._left_out = 0

    def record(self, access: Mapping[str, Any]) -> None:
        """Record an access; it is on disk a second later.

        Args:
            access: values of the columns by name; `id` and `at` are added here.
        """
        with self._lock:
            if access.get("who") is None and not self._takes_strangers():
                return
            self._log.record(access)

    def _takes_strangers(self) -> bool:
        """Return whether to log another anonymous access, and count it: otherwise anyone could fill the disk."""
        now = time.monotonic()
        if now - self._minute >= _MINUTE:
            self._minute, self._strangers = now, 0
            self._report_uncounted()
        self._strangers += 1
        if self._strangers > _MAX_STRANGERS:
            self._left_out += 1
        return self._strangers <= _MAX_STRANGERS

    def _report_uncounted(self) -> None:
        if self._left_out:
            self._log.record({"action": LEFT_OUT, "files": self._left_out, "granted": False})
            self._left_out = 0

    def bring_in(self) -> None:
        """Append everything recorded so far to the dataset now, for a reader of the log."""
        self._log.bring_in()

    def stop(self) -> None:
        """Append everything recorded to the dataset, and stop."""
        with self._lock:
            self._report_uncounted()
        self._log.stop()


def ingest_records(workspace: Workspace) -> int:
    """Append what was recorded by servers that no longer run; returns the number of files.

    Raises:
        OdfError: the dataset cannot be written; nothing is lost.
    """
    return AUDIT.ingest(workspace)


def accesses(
    workspace: Workspace, *, num: int, condition: str | None = None, columns: Iterable[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Return the latest accesses, newest first.

    Args:
        workspace: the workspace.
        num: maximum number of items.
        condition: SQL condition over the columns and `offset`, the running number of an access.
        columns: names of the requested columns; all by default.
    """
    return AUDIT.records(workspace, num=num, condition=condition, columns=columns)
