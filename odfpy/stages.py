"""Profiles: the time that the stages of an operation take, as a tree. `odf pull --profile` prints one.

    with profiling("pull") as profile:
        with stage("plan"):
            ...

Without `profiling`, a stage costs one lookup of a context variable. A new thread has no profile unless it gets the
context of one. Stages of one thread run one after the other, so their sum never exceeds the time of their parent.
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
    """A node of a profile: a stage, and the stages inside it.

    Attributes:
        name: name of the stage.
        seconds: total time, in seconds.
        times: number of times that the stage ran.
        calls: calls from Python to Java, without those of its parts.
        jobs: Spark jobs, without those of its parts.
        is_subject: whether the stage is the whole work on one dataset.
        parts: stages inside it by name, in the order of their first run.
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
        """Return the stage of a name inside this one; it is created on first use."""
        with _ADDING:
            found = self.parts.get(name)
            if found is None:
                found = self.parts[name] = StageTime(name, is_subject=is_subject)
        return found

    def add(self, seconds: float, times: int = 1, calls: int = 0, jobs: int = 0) -> None:
        """Add a measurement.

        Args:
            seconds: time in seconds.
            times: number of runs.
            calls: calls to Java, without those of its parts.
            jobs: Spark jobs, without those of its parts.
        """
        with _ADDING:
            self.seconds += seconds
            self.times += times
            self.calls += calls
            self.jobs += jobs

    @property
    def all_calls(self) -> int:
        """Calls from Python to Java, including those of its parts."""
        return self.calls + sum(part.all_calls for part in self.parts.values())

    @property
    def all_jobs(self) -> int:
        """Spark jobs, including those of its parts."""
        return self.jobs + sum(part.all_jobs for part in self.parts.values())

    @property
    def other(self) -> float:
        """Seconds outside of all parts."""
        return max(0.0, self.seconds - sum(part.seconds for part in self.parts.values()))

    def walk(self, depth: int = 0) -> Iterator[tuple[int, StageTime]]:
        """Yield this stage and all stages inside it, each with its depth, parents first."""
        yield depth, self
        for part in self.parts.values():
            yield from part.walk(depth + 1)

    def at(self, *names: str) -> StageTime | None:
        """Return the stage at a path of names, None if it never ran."""
        found: StageTime | None = self
        for name in names:
            found = None if found is None else found.parts.get(name)
        return found


_AT: Final[ContextVar[StageTime | None]] = ContextVar("odfpy_stage", default=None)
_ADDING: Final = Lock()
_NOTHING: Final[AbstractContextManager[None]] = nullcontext()


class _Running:
    """Context manager that measures one run of a stage."""

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
    """Measure a stage, even if it fails. The block must not `yield`: the caller's time would be counted.

    Args:
        name: name of the stage; runs with the same name and parent add up.
        is_subject: whether the stage is the whole work on one dataset.
        again: whether this continues a run that has been counted.
    """
    above = _AT.get()
    if above is None:
        return _NOTHING
    return _Running(above.part(name, is_subject=is_subject), 0 if again else 1)


def staged(name: str, items: Iterable[Item], *, again: bool = False) -> Iterator[Item]:
    """Yield items, and measure the time that producing each of them takes.

    Args:
        name: name of the stage, inside the one of the consumer.
        items: the items.
        again: whether this continues a run that has been counted.
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
    """Profile the block; its stages do not appear in an outer profile.

    Args:
        name: name of the root stage.
    """
    whole = StageTime(name)
    with _Running(whole, 1):
        yield whole


def current() -> StageTime | None:
    """Return the current stage, None outside of `profiling`."""
    return _AT.get()


def count_call() -> None:
    """Count a call from Python to Java."""
    found = _AT.get()
    if found is not None:
        found.calls += 1
