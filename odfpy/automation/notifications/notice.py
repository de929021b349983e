"""A notice: something that has happened to a dataset, and that somebody wants to be told."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from odfpy.data.timestamp import Timestamp
from odfpy.visible import visible, visible_lines

MAX_SUBJECT_LENGTH: Final = 200
MAX_TEXT_LENGTH: Final = 10_000
"""Characters; the message of an error may quote a row of a megabyte."""

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
    """Something to tell.

    What datasets and errors bring in is made harmless: long texts are cut, control characters are spelled out.

    Attributes:
        kind: what has happened.
        subject: the same in one line.
        text: more about it, in lines; empty if the subject says it all.
        dataset: name of the dataset, None if it is about none.
        time: when it happened.
        code: of the error, None for none.
        run: id of the run, None for none.
        id: names the notice; receivers drop a second one with it.
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
        object.__setattr__(self, "subject", _cut(visible(_sound(self.subject)), MAX_SUBJECT_LENGTH))
        object.__setattr__(self, "text", _cut(visible_lines(_sound(self.text)), MAX_TEXT_LENGTH))

    @property
    def minute(self) -> int:
        """The minute that it falls into, since 1970."""
        return self.time.nanos // _MINUTE

    @property
    def event(self) -> dict[str, Any]:
        """The JSON that webhooks send."""
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
    """Replace halves of characters, which no encoding can write."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _cut(text: str, most: int) -> str:
    left_out = len(text) - most
    return text if left_out <= 0 else f"{text[:most]}... ({left_out} more characters)"
