"""The client's interface to relays: over Flight for a user, by direct calls for a relay that acts for its clients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import pyarrow as pa

from odfpy.federation.execution.concurrent_calls import call_concurrently
from odfpy.federation.relay.errors import RelayUnavailable
from odfpy.federation.relay.question import Answer, AnswerOptions, Part
from odfpy.federation.sql.fragment import Fragment

_AT_ONCE: Final = 8
"""Maximum number of fragments sent concurrently."""


class PartRows(Protocol):
    """The rows of a part while they are received; the interface of pyarrow's stream readers."""

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the rows."""

    def __iter__(self) -> Iterator[Any]:
        """Yield chunks: each has `data`, a batch or None, and `app_metadata`, a buffer or None."""

    def cancel(self) -> None:
        """Stop receiving; may be called from any thread."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A batch, perhaps with metadata, for implementations of `PartRows` other than pyarrow's.

    Attributes:
        data: the batch.
        app_metadata: application metadata that accompanies it.
    """

    data: pa.RecordBatch
    app_metadata: pa.Buffer | None = None


class RelayClient(ABC):
    """A client of one relay, which plans queries there and reads the parts that it names; thread-safe."""

    @abstractmethod
    def entities(self, seconds: float) -> Mapping[str, pa.Schema]:
        """Return the entities that may be queried, by name.

        Args:
            seconds: maximum time to wait.

        Raises:
            OdfError: the relay does not respond.
        """

    @abstractmethod
    def ask(
        self, query: str, fragments: Mapping[str, Fragment], options: AnswerOptions, seconds: float
    ) -> Mapping[str, Answer]:
        """Return the answers to the fragments of a query; the fragments are sent concurrently.

        Args:
            query: its id; must never have been used before.
            fragments: fragments by name.
            options: requested additions to the rows.
            seconds: to wait.

        Raises:
            OdfError: the relay does not answer, or refuses.
        """

    @abstractmethod
    def rows(self, part: Part, seconds: float) -> AbstractContextManager[PartRows]:
        """Open the rows of a part; a context manager.

        Args:
            part: the part to read.
            seconds: time limit for the whole operation.

        Raises:
            OdfError: they cannot be read; may also be raised while they are consumed.
        """

    @abstractmethod
    def cancel(self, query: str) -> None:
        """Notify all relays that a query was cancelled. Errors are ignored.

        Args:
            query: id of the query.
        """

    def _at_once(
        self, query: str, fragments: Mapping[str, Fragment], ask: Callable[[tuple[str, Fragment]], Answer]
    ) -> Mapping[str, Answer]:
        """Send all fragments of a query concurrently; when one fails, the others are abandoned.

        Args:
            query: id of the query.
            fragments: fragments by name.
            ask: sends one fragment, given its name and the fragment.
        """

        def give_up(error: BaseException) -> None:
            if not isinstance(error, RelayUnavailable):  # otherwise there is no relay to notify
                self.cancel(query)

        answers = call_concurrently([partial(ask, item) for item in fragments.items()], _AT_ONCE, give_up)
        return dict(zip(fragments, answers, strict=True))
