"""Stages: how long the parts of some work take, as a tree, for whoever wants a profile.

    with profiling("pull") as profile:
        with stage("plan"):
            ...

Where nobody wants one, a stage costs a look into a context variable. Threads have no profile unless they are given the
context of one. Stages of one thread come one after the other, so that they take no longer than what they are part of.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
from threading import Lock
from types import TracebackType
from typing import Final, TypeVar

Item = TypeVar("Item")


class StageTime:
    """A stage of some work, with the stages that are part of it.

    Attributes:
        name: of the stage, in words of its field.
        seconds: that it has taken, in all.
        times: how often it was there.
        calls: calls from Python to Java in it, besides those in its parts.
        jobs: jobs of Spark in it, besides those in its parts.
        is_subject: whether it is all the work on one dataset.
        parts: its own stages by name, in the order in which they first came.
    """

    __slots__ = ("calls", "is_subject", "jobs", "name", "parts", "seconds", "times")

    def __init__(self, name: str, *, is_subject: bool = False) -> None:
        self.name = name
        self.seconds = 0.0
        self.times = 0
        self.calls = 0
        self.jobs = 0
        self.is_subject = is_subject
        self.parts: dict[str, StageTime] = {}

    def part(self, name: str, *, is_subject: bool = False) -> StageTime:
        """The stage of that name in this one, the same each time."""
        with _ADDING:
            found = self.parts.get(name)
            if found is None:
                found = self.parts[name] = StageTime(name, is_subject=is_subject)
        return found

    def add(self, seconds: float, times: int = 1, calls: int = 0, jobs: int = 0) -> None:
        """Add what was measured.

        Args:
            seconds: how long it has taken.
            times: how often it was there.
            calls: calls to Java besides those of its parts.
            jobs: jobs of Spark besides those of its parts.
        """
        with _ADDING:
            self.seconds += seconds
            self.times += times
            self.calls += calls
            self.jobs += jobs

    @property
    def all_calls(self) -> int:
        """Calls from Python to Java, with those of its parts."""
        return self.calls + sum(part.all_calls for part in self.parts.values())

    @property
    def all_jobs(self) -> int:
        """Jobs of Spark, with those of its parts."""
        return self.jobs + sum(part.all_jobs for part in self.parts.values())

    @property
    def other(self) -> float:
        """Seconds that belong to no part; where there are no parts, all of them do not."""
        return max(0.0, self.seconds - sum(part.seconds for part in self.parts.values()))

    def walk(self, depth: int = 0) -> Iterator[tuple[int, StageTime]]:
        """The stage and all in it, each with its depth."""
        yield depth, self
        for part in self.parts.values():
            yield from part.walk(depth + 1)

    def at(self, *names: str) -> StageTime | None:
        """The stage that some names lead to, None if there was none."""
        found: StageTime | None = self
        for name in names:
            found = None if found is None else found.parts.get(name)
        return found


_AT: Final[ContextVar[StageTime | None]] = ContextVar("odfpy_stage", default=None)
_ADDING: Final = Lock()
_NOTHING: Final[AbstractContextManager[None]] = nullcontext()


class _Running:
    """A stage that is under way."""

    __slots__ = ("_began", "_stage", "_times", "_token")

    _token: Token[StageTime | None]
    _began: float

    def __init__(self, of: StageTime, times: int) -> None:
        self._stage = of
        self._times = times

    def __enter__(self) -> StageTime:
        self._token = _AT.set(self._stage)
        self._began = time.perf_counter()
        return self._stage

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        seconds = time.perf_counter() - self._began
        _AT.reset(self._token)
        self._stage.add(seconds, self._times)


def stage(name: str, *, is_subject: bool = False, again: bool = False) -> AbstractContextManager[StageTime | None]:
    """Measure a stage, also one that ends with an error; do not give anything to a caller (`yield`) within it.

    Args:
        name: of the stage; stages of a name at the same place add up.
        is_subject: whether it is all the work on one dataset.
        again: whether this goes on with what has been counted.
    """
    above = _AT.get()
    if above is None:
        return _NOTHING
    return _Running(above.part(name, is_subject=is_subject), 0 if again else 1)


def staged(name: str, items: Iterable[Item], *, again: bool = False) -> Iterator[Item]:
    """The same items; the time until each of them is there goes to a stage of whoever asks for it.

    Args:
        name: of the stage.
        items: the items.
        again: whether this goes on with what has been counted.
    """
    iterator = iter(items)
    while True:
        with stage(name, again=again):
            try:
                item = next(iterator)
            except StopIteration:
                return
        again = True
        yield item


@contextmanager
def profiling(name: str) -> Iterator[StageTime]:
    """Measure the stages of some work, and keep them from any profile around it.

    Args:
        name: of the work.
    """
    whole = StageTime(name)
    with _Running(whole, 1):
        yield whole


def current() -> StageTime | None:
    """The stage that is under way, None where nobody wants a profile."""
    return _AT.get()


def count_call() -> None:
    """Count a call from Python to Java."""
    found = _AT.get()
    if found is not None:
        found.calls += 1
