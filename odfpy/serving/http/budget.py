"""A memory budget for data sent by clients: a total, and a share of it for each caller.

REST, WebSockets and Flight SQL charge what they have received and still hold to it, before they read more; requests
beyond the budget are rejected before they are read.

    with budget.reserve(who) as held:
        held.grow(len(chunk))

Anonymous callers are identified by their address, and one person may have many of these: all of them together have a
separate budget, so that enough is left for callers with a token.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from odfpy.errors import OdfError
from odfpy.serving.settings import ServeSettings

_OBJECT: Final = 232
_LIST: Final = 64
_TEXT: Final = 32
_ITEM: Final = 8


class OverBudget(OdfError, code="E460"):
    """A caller sends more data concurrently than the memory limits of the server allow.

    Attributes:
        is_own: whether the limit of this caller is exceeded, rather than that of all callers.
    """

    is_own: bool

    def __init__(self, message: str, *, hint: str, is_own: bool) -> None:
        super().__init__(message, hint=hint)
        self.is_own = is_own


@dataclass(frozen=True, slots=True)
class BudgetHolder:
    """The party that memory is charged to: a token or an address.

    Attributes:
        name: name of a token, or the address of an anonymous caller.
        has_token: whether it is a token.
    """

    name: str
    has_token: bool = False

    @classmethod
    def at(cls, address: str | None) -> BudgetHolder:
        """Return the holder for an anonymous caller's address."""
        return cls(f"address {address or ''}")

    @classmethod
    def of_token(cls, name: str) -> BudgetHolder:
        """Return the holder for a token."""
        return cls(f"token {name}", has_token=True)


@dataclass(frozen=True, slots=True)
class _Limit:
    total: int
    each: int


class MemoryBudget:
    """A memory budget with its reservations; thread-safe."""

    def __init__(self, settings: ServeSettings) -> None:
        self._limits = {
            True: _Limit(settings.request_memory, settings.request_memory_each),
            False: _Limit(settings.stranger_memory, settings.stranger_memory_each),
        }
        self._lock = threading.Lock()
        self._taken: Counter[BudgetHolder] = Counter()
        self._total: Counter[bool] = Counter()

    def reserve(self, who: BudgetHolder, size: int = 0) -> Reservation:
        """Reserve bytes for a caller; they must be released in the end.

        Raises:
            OverBudget: the budget is exceeded.
        """
        reservation = Reservation(self, who)
        reservation.grow(size)
        return reservation

    @property
    def taken(self) -> int:
        """Return the number of reserved bytes."""
        return self._total.total()

    def _take(self, who: BudgetHolder, size: int) -> None:
        limit = self._limits[who.has_token]
        with self._lock:
            if size > 0 and self._taken[who] + size > limit.each:
                raise OverBudget(
                    f"You are sending more than the {limit.each} bytes allowed for one caller",
                    hint="Send less at the same time.",
                    is_own=True,
                )
            if size > 0 and self._total[who.has_token] + size > limit.total:
                raise OverBudget(
                    "The server has no memory left for more requests", hint="Try again in a moment.", is_own=False
                )
            self._taken[who] += size
            self._total[who.has_token] += size
            if not self._taken[who]:
                del self._taken[who]


class Reservation:
    """The reserved bytes of a caller; a context manager that releases them at its end."""

    def __init__(self, budget: MemoryBudget, who: BudgetHolder) -> None:
        self._budget = budget
        self._who = who
        self._size = 0

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return self._size

    @property
    def who(self) -> BudgetHolder:
        """Return the holder."""
        return self._who

    def grow(self, count: int) -> None:
        """Reserve more bytes.

        Raises:
            OverBudget: the budget is exceeded; the reservation is unchanged.
        """
        self.resize(self._size + count)

    def resize(self, size: int) -> None:
        """Change the reservation to a number of bytes.

        Raises:
            OverBudget: the budget is exceeded; the reservation is unchanged.
        """
        if size != self._size:
            self._budget._take(self._who, size - self._size)  # noqa: SLF001 - two halves of one thing
            self._size = size

    def pass_to(self, who: BudgetHolder) -> None:
        """Transfer the reservation to another holder, once the caller is known.

        Raises:
            OverBudget: that holder's share is exceeded; nothing changes.
        """
        if who != self._who:
            other = self._budget.reserve(who, self._size)
            self.release()
            self._who, self._size = who, other.size

    def release(self) -> None:
        """Release the reservation."""
        self.resize(0)

    def __enter__(self) -> Reservation:  # noqa: PYI034
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def weight_of_json(text: str | bytes) -> int:
    """Estimate the memory of a parsed JSON document: `[[],[],...` is small, but its lists are not."""
    objects, lists, items, quotes = (_count(text, sign) for sign in '{[,"')
    return len(text) + _OBJECT * objects + _LIST * lists + _ITEM * items + _TEXT * quotes


def _count(text: str | bytes, sign: str) -> int:
    return text.count(sign) if isinstance(text, str) else text.count(sign.encode())
