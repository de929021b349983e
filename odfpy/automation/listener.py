"""Listeners, which hear of what a scheduler does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from odfpy.automation.notifications.notice import NoticeKind


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener, which is told what a scheduler does; each is called in its thread, and must return soon.

    Attributes:
        on_run: of each run that has begun (`outcome` is `running`) or ended, with its row.
        on_notice: of what a person may want to hear: kind, name of the dataset, a sentence, and the row of the run.
        on_remark: of what is wrong with the scheduler itself, or a schedule.
    """

    on_run: Callable[[Mapping[str, Any]], object] = lambda _row: None
    on_notice: Callable[[NoticeKind, str, str, Mapping[str, Any] | None], object] = lambda *_: None
    on_remark: Callable[[str], object] = lambda _text: None

    def also(self, on_notice: Callable[[NoticeKind, str, str, Mapping[str, Any] | None], object]) -> Listener:
        """Return a listener that first lets somebody else hear each notice.

        Args:
            on_notice: who is told first.
        """

        def both(kind: NoticeKind, name: str, text: str, row: Mapping[str, Any] | None) -> None:
            on_notice(kind, name, text, row)
            self.on_notice(kind, name, text, row)

        return replace(self, on_notice=both)
