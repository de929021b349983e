"""Cursors: the position of the next page of a result, and the snapshot of the archive that it refers to."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Final

from odfpy.archive.errors import InvalidCursor
from odfpy.archive.question import Question

_FORMAT: Final = 1
_MAX_LENGTH: Final = 4096
_BOUND: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in a result.

    Attributes:
        horizon: offset of the last row of the archive at the first page.
        start: start of the last record of the previous page.
        id: id of the same record.
    """

    horizon: int
    start: int
    id: str

    @property
    def is_possible(self) -> bool:
        """True if the values have the right types; those of a forged cursor may not."""
        numbers = (self.horizon, self.start)
        return isinstance(self.id, str) and all(isinstance(number, int) and abs(number) < _BOUND for number in numbers)

    def text(self, archive: str, question: Question) -> str:
        """Return the cursor as text for URLs.

        Args:
            archive: id of the dataset.
            question: the query.
        """
        place = [_FORMAT, self.horizon, self.start, self.id]
        data = json.dumps([*place, _digest(archive, question, place)], separators=(",", ":")).encode()
        return urlsafe_b64encode(data).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str, archive: str, question: Question) -> Cursor:
        """Parse a cursor.

        Args:
            text: text of the cursor.
            archive: id of the dataset.
            question: the query that it is used for.

        Raises:
            InvalidCursor: the cursor belongs to another query or archive.
        """
        try:
            data = urlsafe_b64decode(text[:_MAX_LENGTH].encode("ascii") + b"=" * (-len(text) % 4))
            _, horizon, start, id, _ = json.loads(data)  # noqa: A001 - the field's name
            cursor = cls(horizon, start, id)
            is_ours = cursor.text(archive, question) == text and cursor.is_possible
        except (ValueError, TypeError, RecursionError):
            is_ours = False
        if is_ours:
            return cursor
        raise InvalidCursor(
            f"Not a cursor of this search: {text[:80]!r}",
            hint="Pass the cursor of the previous page, with the same search, or no cursor for the first page.",
        )


def _digest(archive: str, question: Question, place: list[object]) -> str:
    asked = [sorted(set(question.what)), sorted(set(question.where)), question.start, question.end, question.work_id]
    return hashlib.blake2b(json.dumps([archive, asked, place]).encode(), digest_size=8).hexdigest()
