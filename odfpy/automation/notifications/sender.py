"""Notices beside a scheduler: what it says is posted, and goes out on a thread of its own.

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
"""Seconds between two looks at what is due."""

_AT_THE_END: Final = 2.0
"""Seconds for what was said last."""

_LOGGER = logging.getLogger("odf.automation")


class NoticeSender:
    """Posts what a scheduler says, and delivers it until the block is left."""

    def __init__(self, notices: Notices, interval: float = INTERVAL) -> None:
        """
        Args:
            notices: those of the workspace.
            interval: seconds between two looks at what is due.
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

    def hear(self, kind: NoticeKind, dataset: str, sentence: str, row: Mapping[str, Any] | None = None) -> None:
        """Post a notice; one that cannot be written is told in the log, and the scheduler goes on.

        Args:
            kind: what has happened.
            dataset: name of the dataset.
            sentence: what has happened, in words.
            row: of the run; None for none.
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
        for _ in range(2):  # a thread that is at it already does not see what was said last
            self._notices.deliver(wait=_AT_THE_END, is_last=True)  # if it goes quickly; the rest is there next time
