"""Listeners for events of a scheduler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from odfpy.automation.notifications.notice import NoticeKind


@dataclass(frozen=True, slots=True)
class Listener:
    """Callbacks for events of a scheduler; they run in its thread, and must return quickly.

    Attributes:
        on_run: called with the row of each run that has started (`outcome` is `running`) or ended.
        on_notice: called for events that concern users: kind, name of the dataset, a sentence, and the row of the run.
        on_remark: called for problems of the scheduler itself, or of a schedule.
    """

    on_run: Callable[[Mapping[str, Any]], object] = lambda _row: None
    on_notice: Callable[[NoticeKind, str, str, Mapping[str, Any] | None], object] = lambda *_: None
    on_remark: Callable[[str], object] = lambda _text: None

    def also(self, on_notice: Callable[[NoticeKind, str, str, Mapping[str, Any] | None], object]) -> Listener:
        """Return a listener that also passes notices to another callback, which is called first.

        Args:
            on_notice: the other callback.
        """

        def both(kind: NoticeKind, name: str, text: str, row: Mapping[str, Any] | None) -> None:
            on_notice(kind, name, text, row)
            self.on_notice(kind, name, text, row)

        return replace(self, on_notice=both)
