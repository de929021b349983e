"""The names of bundles that wait for a worker, without duplicates; some are delayed."""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque


class WorkQueue:
    """A thread-safe queue of names for workers.

    A worker is *active* from the moment that it takes a name until `rest`. While it waits for a retry, it rests, too;
    then it resumes.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._names: set[str] = set()
        self._ready: deque[str] = deque()
        self._later: list[tuple[float, str]] = []
        self._active = 0
        self._idle_since = time.monotonic()
        self._is_stopped = False

    def __len__(self) -> int:
        return len(self._names)

    def put(self, name: str, delay: float = 0.0) -> None:
        """Add a name; a waiting one is not changed.

        Args:
            name: name of a bundle.
            delay: seconds before the name can be taken.
        """
        with self._changed:
            if name in self._names:
                return
            self._names.add(name)
            if delay:
                heapq.heappush(self._later, (time.monotonic() + delay, name))
            else:
                self._ready.append(name)
            self._changed.notify()

    def take(self) -> str | None:
        """Wait for a name and become active; return None after `stop`."""
        with self._changed:
            while not self._is_stopped:
                if (name := self._due()) is not None:
                    self._active += 1
                    return name
                self._changed.wait(self._until_due())
            return None

    def take_more(self, deadline: float) -> str | None:
        """Wait for another name; for active workers.

        Args:
            deadline: deadline on the clock of `time.monotonic`.

        Returns:
            The name; None at the deadline or after `stop`.
        """
        with self._changed:
            while not self._is_stopped:
                if (name := self._due()) is not None:
                    return name
                rest = deadline - time.monotonic()
                if rest <= 0:
                    return None
                due = self._until_due()
                self._changed.wait(rest if due is None else min(rest, due))
            return None

    def rest(self) -> None:
        """Deactivate the queue: taken names are done, or waiting again."""
        with self._changed:
            self._active -= 1

    def progress(self) -> None:
        """Record progress."""
        with self._changed:
            self._idle_since = time.monotonic()

    def resume(self) -> None:
        """Activate the queue again after `rest`, with the names taken before."""
        with self._changed:
            self._active += 1

    def idle(self) -> float:
        """Return the seconds since the last progress; 0 if a worker is active, or a name can be taken."""
        with self._changed:
            if self._active or self._ready or self._until_due() == 0:
                return 0.0
            return time.monotonic() - self._idle_since

    def stop(self) -> None:
        """Stop handing out names."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def _due(self) -> str | None:
        if not self._ready and self._until_due() == 0:
            self._ready.append(heapq.heappop(self._later)[1])
        if not self._ready:
            return None
        name = self._ready.popleft()
        self._names.discard(name)
        return name

    def _until_due(self) -> float | None:
        """Return the seconds until the first delayed name can be taken, None without any."""
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else None
