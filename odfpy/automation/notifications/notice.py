"""Notices: messages about events that concern a dataset or the scheduler."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from odfpy.data.timestamp import Timestamp
from odfpy.escaping import escape_controls, escape_controls_in_lines

MAX_SUBJECT_LENGTH: Final = 200
MAX_TEXT_LENGTH: Final = 10_000
"""Maximum number of characters; an error message may quote a long row."""

_MINUTE: Final = 60 * 1_000_000_000


class NoticeKind(Enum):
    """The kind of a notice."""

    FAILED = "failed"
    RECOVERED = "recovered"
    LATE = "late"
    ON_TIME = "on-time"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A message about an event.

    Texts from datasets and errors are sanitized: long ones are truncated, and control characters are escaped.

    Attributes:
        kind: kind of the event.
        subject: summary on one line.
        text: details, on several lines; empty if there are none.
        dataset: name of the dataset, None if the notice concerns no dataset.
        time: time of the event.
        code: code of the error, None if there is none.
        run: id of the run, None if there is none.
        id: id of the notice, by which receivers detect duplicates.
    """

    kind: NoticeKind
    subject: str
    text: str = ""
    dataset: str | None = None
    time: Timestamp = field(default_factory=Timestamp.now)
    code: str | None = None
    run: str | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(16))

    def __post_init__(self) -> None:
        object.__setattr__(self, "subject", _cut(escape_controls(_sound(self.subject)), MAX_SUBJECT_LENGTH))
        object.__setattr__(self, "text", _cut(escape_controls_in_lines(_sound(self.text)), MAX_TEXT_LENGTH))

    @property
    def minute(self) -> int:
        """Return the minute that it belongs to, counted from the epoch."""
        return self.time.nanos // _MINUTE

    @property
    def event(self) -> dict[str, Any]:
        """Return the JSON body of webhooks."""
        return {
            "event": self.kind.value,
            "id": self.id,
            "time": str(self.time),
            "dataset": self.dataset,
            "subject": self.subject,
            "text": self.text,
            "code": self.code,
            "run": self.run,
        }


def _sound(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _cut(text: str, most: int) -> str:
    left_out = len(text) - most
    return text if left_out <= 0 else f"{text[:most]}... ({left_out} more characters)"
