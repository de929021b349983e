"""Bounds on what other relays send: one that sends without end harms its own rows only."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from typing import Final

import pyarrow as pa

from odfpy.data.memory import bytes_of
from odfpy.errors import ResultTooLarge
from odfpy.federation.relay.errors import InvalidAnswer
from odfpy.federation.relay.question import Answer

MAX_PARTS: Final = 10_000
"""Of one answer, with the parts of all relays behind the one that gives it."""

MAX_CHARACTERS: Final = 24 << 20
"""Of all tickets of an answer: it is sent in one message, in which they are sealed once more."""

_OWN: Final = 1_000
"""Parts of an answer that peers leave to the relay itself."""

RECEIVED: Final = 16 << 30
"""Bytes of Arrow data that are received for one query, or passed on for one part, if nothing else is said."""


def fitting(answers: Mapping[str, Answer]) -> set[str]:
    """The names of the answers that go into one. Short ones come first: what a long one harms is itself.

    Args:
        answers: of peers, by name.
    """
    parts, characters = MAX_PARTS - _OWN, MAX_CHARACTERS
    taken = set()
    for name in sorted(answers, key=lambda name: _length(answers[name])):
        number, size = _length(answers[name])
        if number <= parts and size <= characters:
            taken.add(name)
            parts -= number
            characters -= size
    return taken


def _length(answer: Answer) -> tuple[int, int]:
    parts = sum(len(one.ticket) + len(one.location) + len(one.relay) for one in answer.parts)
    missing = sum(len(one.relay) + len(one.why) for one in answer.missing)
    return len(answer.parts) + len(answer.missing), parts + missing


class Received:
    """The bytes that are received for a query; for all threads that receive some.

    Where they are too many, whoever sends most of what is under way is stopped, and the others go on.
    """

    def __init__(self, most: int = RECEIVED) -> None:
        """
        Args:
            most: bytes of Arrow data.
        """
        self._most = most
        self._lock = threading.Lock()
        self._ended = 0
        self._under_way: dict[Hashable, int] = {}

    def taken(self, part: Hashable, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch that was received, if it is one, and not too much.

        Args:
            part: tells where it comes from; each is read by one thread.
            batch: what Arrow has read: it believes what it reads, so this may lead to memory that is none of it.

        Raises:
            ResultTooLarge: it is too much.
            InvalidAnswer: it is not a batch.
        """
        try:
            batch.validate(full=True)
        except (pa.ArrowException, ValueError) as error:
            raise InvalidAnswer("The row data is malformed") from error
        with self._lock:
            self._under_way[part] = self._under_way.get(part, 0) + bytes_of(batch)
            total = self._ended + sum(self._under_way.values())
            if total > self._most and self._under_way[part] == max(self._under_way.values()):
                del self._under_way[part]  # what it has sent is thrown away
                raise ResultTooLarge(
                    f"The rows have more than {self._most:,} bytes, with those of the others",
                    hint="Ask for less: other columns, a condition, a LIMIT.",
                )
        return batch

    def end(self, part: Hashable) -> None:
        """Nothing comes from a part any more.

        Args:
            part: tells which.
        """
        with self._lock:
            self._ended += self._under_way.pop(part, 0)
