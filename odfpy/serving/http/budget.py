"""Memory for what clients send: so many bytes in all, and of these a share for each caller.

REST, WebSockets and Flight SQL count here what they have taken in and still hold, while they read it; whoever asks for
more than there is gets an error before it is read.

    with budget.reserve(who) as held:
        held.grow(len(chunk))

Callers without a token are known by their address only, of which one may have many: all of them together have a budget
of their own, so that they leave enough for those who have a token.
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
    """Somebody sends more at the same time than the server has memory for.

    Attributes:
        is_own: whether the caller has too much under way, rather than all callers together.
    """

    is_own: bool

    def __init__(self, message: str, *, hint: str, is_own: bool) -> None:
        super().__init__(message, hint=hint)
        self.is_own = is_own


@dataclass(frozen=True, slots=True)
class BudgetHolder:
    """The party that memory is charged to: a token or an address.

    Attributes:
        name: of a token, or the address of somebody without one.
        has_token: which of the two.
    """

    name: str
    has_token: bool = False

    @classmethod
    def at(cls, address: str | None) -> BudgetHolder:
        """Whoever is at an address, and shows no token."""
        return cls(f"address {address or ''}")

    @classmethod
    def of_token(cls, name: str) -> BudgetHolder:
        """Whoever shows a token of that name."""
        return cls(f"token {name}", has_token=True)


@dataclass(frozen=True, slots=True)
class _Limit:
    total: int
    each: int


class MemoryBudget:
    """A budget of memory, and who has how much of it; threads may share it."""

    def __init__(self, settings: ServeSettings) -> None:
        self._limits = {
            True: _Limit(settings.request_memory, settings.request_memory_each),
            False: _Limit(settings.stranger_memory, settings.stranger_memory_each),
        }
        self._lock = threading.Lock()
        self._taken: Counter[BudgetHolder] = Counter()
        self._total: Counter[bool] = Counter()

    def reserve(self, who: BudgetHolder, size: int = 0) -> Reservation:
        """Bytes for a caller, to be given back in the end.

        Raises:
            OverBudget: there are not as many.
        """
        reservation = Reservation(self, who)
        reservation.grow(size)
        return reservation

    @property
    def taken(self) -> int:
        """Bytes that are given out."""
        return self._total.total()

    def _take(self, who: BudgetHolder, size: int) -> None:
        limit = self._limits[who.has_token]
        with self._lock:
            if size > 0 and self._taken[who] + size > limit.each:
                raise OverBudget(
                    f"You send more than the {limit.each} bytes that one caller may have under way",
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
    """The bytes that a caller holds; a context manager, whose end gives them back."""

    def __init__(self, budget: MemoryBudget, who: BudgetHolder) -> None:
        self._budget = budget
        self._who = who
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes."""
        return self._size

    @property
    def who(self) -> BudgetHolder:
        """Whose they are."""
        return self._who

    def grow(self, count: int) -> None:
        """Take more.

        Raises:
            OverBudget: there are not as many; what is there stays.
        """
        self.resize(self._size + count)

    def resize(self, size: int) -> None:
        """Have so many bytes from now on.

        Raises:
            OverBudget: there are not as many; what is there stays.
        """
        if size != self._size:
            self._budget._take(self._who, size - self._size)  # noqa: SLF001 - two halves of one thing
            self._size = size

    def pass_to(self, who: BudgetHolder) -> None:
        """Let it be somebody else's: it has turned out whose it is.

        Raises:
            OverBudget: they do not have that many; nothing changes hands.
        """
        if who != self._who:
            other = self._budget.reserve(who, self._size)
            self.release()
            self._who, self._size = who, other.size

    def release(self) -> None:
        """Give it back."""
        self.resize(0)

    def __enter__(self) -> Reservation:  # noqa: PYI034
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def weight_of_json(text: str | bytes) -> int:
    """Bytes that a JSON document takes when it is parsed, by and large: `[[],[],...` is small and its lists are not."""
    objects, lists, items, quotes = (_count(text, sign) for sign in '{[,"')
    return len(text) + _OBJECT * objects + _LIST * lists + _ITEM * items + _TEXT * quotes


def _count(text: str | bytes, sign: str) -> int:
    return text.count(sign) if isinstance(text, str) else text.count(sign.encode())
