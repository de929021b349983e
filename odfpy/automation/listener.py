"""Listeners, which hear of what a scheduler does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class NoticeKind(Enum):
    """Something that a person may want to hear of."""

    FAILED = "failed"
    RECOVERED = "recovered"
    LATE = "late"
    ON_TIME = "on time again"


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
