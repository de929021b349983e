"""Notices of a scheduler: posted by its listener, delivered by a separate thread.

with NoticeSender(Notices(workspace)) as told:
    told.hear(NoticeKind.FAILED, "com.example.rates", "com.example.rates: pull failed: ...", row)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import Self

from odfpy.automation.notifications.notice import Notice, NoticeKind
from odfpy.automation.notifications.notices import Notices
from odfpy.errors import OdfError

INTERVAL: Final = 1.0
"""Seconds between two checks for due notices."""

_AT_THE_END: Final = 2.0
"""Seconds to wait for the last notices on exit."""

_LOGGER = logging.getLogger("odf.automation")


class NoticeSender:
    """Posts the notices of a scheduler, and delivers them during the `with` block."""

    def __init__(self, notices: Notices, interval: float = INTERVAL) -> None:
        """
        Args:
            notices: notices of the workspace.
            interval: seconds between two deliveries.
        """
        self._notices = notices
        self._interval = interval
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._deliver, name="notices", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def post(self, kind: NoticeKind, dataset: str, sentence: str, row: Mapping[str, Any] | None = None) -> None:
        """Post a notice; errors are logged, and the scheduler continues.

        Args:
            kind: kind of the event.
            dataset: name of the dataset.
            sentence: description of the event.
            row: row of the run; None if there is none.
        """
        run = row or {}
        subject, _, more = sentence.partition("\n")
        notice = Notice(
            kind=kind, subject=subject, text=more, dataset=dataset, code=run.get("error_code"), run=run.get("id")
        )
        try:
            self._notices.post(notice)
        except OdfError as error:
            _LOGGER.error("a notice is lost: %s: %s", error.message, notice.subject)  # noqa: TRY400 - no bug

    def _deliver(self) -> None:
        while not self._over.wait(self._interval):
            self._notices.deliver(wait=0)
        for _ in range(2):  # a running delivery does not see the latest notices
            self._notices.deliver(wait=_AT_THE_END, is_last=True)  # remaining notices are delivered next time
