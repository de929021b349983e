"""The audit log: who has read what, as an ODF dataset of the workspace; `odfpy.coordinator.record_log` writes it.

Accesses that a killed server has left in `.odf/audit` are taken in by the next one, or by `odf audit`.
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
"""The action of a row that stands for many accesses of nobody known; `files` says how many."""

_MINUTE: Final = 60.0
_MAX_STRANGERS: Final = 100


class AuditLog:
    """Takes accesses in, from any thread, and brings them into the dataset."""

    def __init__(self, workspace: Workspace, interval: float) -> None:
        """
        Args:
            workspace: whose accesses they are.
            interval: seconds after which accesses are taken into the dataset, at most.
        """
        self._log = RecordLog(workspace, AUDIT, interval)
        self._lock = threading.Lock()
        self._minute = 0.0
        self._strangers = 0
        self._left_out = 0

    def record(self, access: Mapping[str, Any]) -> None:
        """Hand in an access; it is on the disk a second later.

        Args:
            access: values of the columns by name; `id` and `at` are made here.
        """
        with self._lock:
            if access.get("who") is None and not self._takes_strangers():
                return
            self._log.record(access)

    def _takes_strangers(self) -> bool:
        """Return whether another access of nobody known is listed, and count it: else anybody could fill the disk."""
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
        """Bring all that was handed in so far into the dataset now, for somebody who looks at it."""
        self._log.bring_in()

    def stop(self) -> None:
        """Bring all that was handed in into the dataset."""
        with self._lock:
            self._report_uncounted()
        self._log.stop()


def take_in(workspace: Workspace) -> int:
    """Take all that has been recorded, and that no server is still writing, into the dataset; gives how many files.

    Raises:
        OdfError: the dataset cannot be written; nothing is lost.
    """
    return AUDIT.take_in(workspace)


def accesses(
    workspace: Workspace, *, num: int, condition: str | None = None, columns: Iterable[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The last accesses, the newest first.

    Args:
        workspace: whose.
        num: how many at most.
        condition: in SQL, over the columns and `offset`, which numbers accesses in the order in which they came.
        columns: names of those that are wanted; all by default.
    """
    return AUDIT.records(workspace, num=num, condition=condition, columns=columns)
