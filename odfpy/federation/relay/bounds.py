"""Limits on what other relays send: one that sends too much only loses its own rows."""

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
"""Maximum parts of one answer, including those of all relays behind the sender."""

MAX_CHARACTERS: Final = 24 << 20
"""Maximum total size of the tickets in an answer: they are sealed once more, and sent in one message."""

_OWN: Final = 1_000
"""Parts of an answer that peers leave to the relay itself."""

RECEIVED: Final = 16 << 30
"""Default maximum bytes of Arrow data received for one query, or passed on for one part."""


def fitting(answers: Mapping[str, Answer]) -> set[str]:
    """Choose which answers to merge into one. Short ones come first, so that an oversized one only excludes itself.

    Args:
        answers: answers of peers, by name.
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
    parts = sum(len(part.ticket) + len(part.location) + len(part.relay) for part in answer.parts)
    missing = sum(len(absent.relay) + len(absent.why) for absent in answer.missing)
    return len(answer.parts) + len(answer.missing), parts + missing


class Received:
    """The bytes received for a query, counted over all its streams; thread-safe.

    When the limit is exceeded, the running stream that has sent most is stopped, and the others continue.
    """

    def __init__(self, most: int = RECEIVED) -> None:
        """
        Args:
            most: maximum bytes of Arrow data.
        """
        self._most = most
        self._lock = threading.Lock()
        self._ended = 0
        self._under_way: dict[Hashable, int] = {}

    def taken(self, part: Hashable, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Count a received batch, and check that it is a valid batch within the limit.

        Args:
            part: key of the stream that it belongs to; each is read by one thread.
            batch: a batch read by Arrow. Arrow trusts its input, so it may point to memory outside of the message.

        Raises:
            ResultTooLarge: the limit is exceeded.
            InvalidAnswer: the batch is invalid.
        """
        try:
            batch.validate(full=True)
        except (pa.ArrowException, ValueError) as error:
            raise InvalidAnswer("The row data is malformed") from error
        with self._lock:
            self._under_way[part] = self._under_way.get(part, 0) + bytes_of(batch)
            total = self._ended + sum(self._under_way.values())
            if total > self._most and self._under_way[part] == max(self._under_way.values()):
                del self._under_way[part]  # its data is discarded
                raise ResultTooLarge(
                    f"The rows have more than {self._most:,} bytes, with those of the others",
                    hint="Request less: other columns, a condition, a LIMIT.",
                )
        return batch

    def end(self, part: Hashable) -> None:
        """Mark the end of a stream.

        Args:
            part: key of the stream.
        """
        with self._lock:
            self._ended += self._under_way.pop(part, 0)
