"""The way from whoever asks to the relays: over Flight for a user, by calls for a relay that asks for its clients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import pyarrow as pa

from odfpy.federation.execution.at_once import at_once
from odfpy.federation.relay.errors import RelayUnavailable
from odfpy.federation.relay.question import Answer, AnswerOptions, Part
from odfpy.federation.sql.fragment import Fragment

_AT_ONCE: Final = 8
"""Fragments that are asked for at the same time."""


class PartRows(Protocol):
    """The rows of a part on their way, as pyarrow's readers of streams have them."""

    @property
    def schema(self) -> pa.Schema:
        """Return their columns."""

    def __iter__(self) -> Iterator[Any]:
        """Yield chunks: each has `data`, a batch or None, and `app_metadata`, a buffer or None."""

    def cancel(self) -> None:
        """Have no more of them; from any thread."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A batch, with metadata perhaps, for those who make `PartRows` themselves.

    Attributes:
        data: the batch.
        app_metadata: what comes beside it.
    """

    data: pa.RecordBatch
    app_metadata: pa.Buffer | None = None


class RelayClient(ABC):
    """Whoever asks a relay, and reads what it names; used by several threads at once."""

    @abstractmethod
    def entities(self, seconds: float) -> Mapping[str, pa.Schema]:
        """The entities that may be asked for, by name.

        Args:
            seconds: to wait.

        Raises:
            OdfError: the relay does not answer.
        """

    @abstractmethod
    def ask(
        self, query: str, fragments: Mapping[str, Fragment], options: AnswerOptions, seconds: float
    ) -> Mapping[str, Answer]:
        """The answers to the fragments of a query, which are asked at the same time.

        Args:
            query: its id, which was never used before.
            fragments: by name.
            options: what is to come beside the rows.
            seconds: to wait.

        Raises:
            OdfError: the relay does not answer, or refuses.
        """

    @abstractmethod
    def rows(self, part: Part, seconds: float) -> AbstractContextManager[PartRows]:
        """The rows of a part, for a block.

        Args:
            part: what is read.
            seconds: for all of it.

        Raises:
            OdfError: they cannot be read; also while they are taken.
        """

    @abstractmethod
    def cancel(self, query: str) -> None:
        """Tell all relays that a query is not wanted any more. What goes wrong is nobody's trouble.

        Args:
            query: its id.
        """

    def _at_once(
        self, query: str, fragments: Mapping[str, Fragment], ask: Callable[[tuple[str, Fragment]], Answer]
    ) -> Mapping[str, Answer]:
        """Ask for all fragments of a query at the same time; when one fails, none of the others is wanted.

        Args:
            query: its id.
            fragments: by name.
            ask: asks for one, which it gets with its name.
        """

        def give_up(error: BaseException) -> None:
            if not isinstance(error, RelayUnavailable):  # else there is nobody to tell
                self.cancel(query)

        answers = at_once([partial(ask, item) for item in fragments.items()], _AT_ONCE, give_up)
        return dict(zip(fragments, answers, strict=True))
