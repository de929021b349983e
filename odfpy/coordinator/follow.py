"""`odf pull --follow`: copies that are updated as their originals grow.

Servers announce each new head (`<dataset>/events`); other locations are polled. Announcements are only hints: a pull
compares the heads itself.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from odfpy.coordinator.requests import PullRequest
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transfer.transfers import Transfers
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import OdfError, UsageError
from odfpy.http.url import shown_url
from odfpy.repository.events import NoEvents, heads_told

INTERVAL = 30.0
"""Seconds between two polls of a location without events."""

RETRY = 5.0
"""Seconds until a retry after a pull failed or a server disconnected."""

MAX_RETRY = 300.0
"""Maximum of the growing pause between retries, in seconds."""

_TURN = 0.5
_LOGGER = logging.getLogger("odfpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowPace:
    """The timing of checks for new data.

    Attributes:
        interval: seconds between two polls of a location without events.
        retry: seconds until the next attempt after an error; doubled after each further error.
        breath: minimum seconds between two pulls, even if the server announces more heads.
    """

    interval: float = INTERVAL
    breath: float = 0.5
    retry: float = RETRY

    def after(self, failures: int) -> float:
        """Return the seconds until the next attempt after a number of consecutive failures."""
        return min(self.retry * 2.0 ** (failures - 1), max(self.retry, MAX_RETRY))


class Follow:
    """Datasets of a workspace that follow others until the user presses Ctrl-C."""

    def __init__(
        self,
        storage: Storage,
        request: PullRequest,
        pull: Callable[[PullRequest], Iterator[PullResult]],
        pace: FollowPace | None = None,
    ) -> None:
        """
        Args:
            storage: the workspace.
            request: the request of the first pull.
            pull: function that pulls datasets.
            pace: intervals of polls and retries.
        """
        self._storage = storage
        self._request = request
        self._transfers = Transfers(storage)
        self._pull = pull
        self._pace = pace or FollowPace()
        self._changed: dict[DatasetId, None] = {}  # a set in insertion order
        self._has_changed = threading.Event()
        self._end = threading.Event()
        self._failures: Counter[DatasetId] = Counter()

    def run(self) -> Iterator[PullResult]:
        """Pull datasets, then pull them again whenever the source of a copy among them may have changed.

        Yields:
            A result for each dataset of the first pull, then one for each dataset that has changed or failed.

        Raises:
            UsageError: none of the datasets is a copy.
        """
        names = []
        for result in self._pull(self._request):
            names.append(result.name)
            yield result
        copies, derivatives = self._partition(names)
        if not copies:
            raise UsageError(
                "There is nothing to follow: none of these datasets is a copy",
                hint="`odf pull URL --follow` copies a dataset and follows it. `odf pull` checks sources.",
            )
        for dataset, url in copies:
            threading.Thread(target=self._listen, args=(dataset, url), daemon=True).start()
        try:
            while changed := self._take_changed():
                yield from self._pull_changed(changed, derivatives)
                self._end.wait(self._pace.breath)
        except KeyboardInterrupt:
            return
        finally:
            self._end.set()

    def stop(self) -> None:
        """Stop `run` in another thread, after its current work."""
        self._end.set()

    def _partition(self, names: Sequence[str]) -> tuple[list[tuple[StoredDataset, str]], list[str]]:
        """Return the copies with their sources, and the derivatives of this workspace."""
        copies, derivatives = [], []
        for name in dict.fromkeys(names):
            try:
                dataset = self._storage.get(name)
                url = self._transfers.pull_url(dataset)
                kind = dataset.state.kind
            except OdfError:
                continue  # the first pull has reported the error
            if url is not None:
                copies.append((dataset, url))
            elif kind is DatasetKind.DERIVATIVE:
                derivatives.append(str(dataset.handle.id))
        return copies, derivatives

    def _pull_changed(self, changed: list[DatasetId], derivatives: list[str]) -> Iterator[PullResult]:
        any_updated = False
        for dataset_id in changed:
            for result in self._pull(self._request_for(str(dataset_id))):
                if result.outcome is PullOutcome.FAILED:
                    self._enqueue_later(dataset_id)
                else:
                    self._failures.pop(dataset_id, None)
                any_updated = any_updated or result.outcome is PullOutcome.UPDATED
                if result.outcome is not PullOutcome.UP_TO_DATE:
                    yield result
        if any_updated and derivatives:
            results = self._pull(self._request_for(*derivatives))
            yield from (item for item in results if item.outcome is not PullOutcome.UP_TO_DATE)

    def _request_for(self, *refs: str) -> PullRequest:
        """Return the request for further pulls of the datasets from the first pull."""
        return replace(self._request, refs=refs, all=False, recursive=False, as_name=None)

    def _take_changed(self) -> list[DatasetId]:
        """Wait for changes; return the changed datasets, or an empty list after `stop`."""
        while not self._end.is_set():
            if self._has_changed.wait(_TURN):
                self._has_changed.clear()
                changed = list(self._changed)
                for dataset_id in changed:
                    self._changed.pop(dataset_id, None)
                if changed:
                    return changed
        return []

    def _enqueue(self, dataset_id: DatasetId) -> None:
        self._changed[dataset_id] = None
        self._has_changed.set()

    def _enqueue_later(self, dataset_id: DatasetId) -> None:
        self._failures[dataset_id] += 1
        pause = self._pace.after(self._failures[dataset_id])
        timer = threading.Timer(pause, self._enqueue, (dataset_id,))
        timer.daemon = True
        timer.start()

    def _listen(self, dataset: StoredDataset, url: str) -> None:
        """Enqueue a dataset whenever its source may have changed; runs in a thread."""
        failures = 0
        while not self._end.is_set():
            try:
                for head in heads_told(url):
                    failures = 0
                    if head != str(dataset.chain.head()):
                        self._enqueue(dataset.handle.id)
                    if self._end.is_set():
                        return
                pause = 0.0  # the stream has ended normally
            except NoEvents:
                self._enqueue(dataset.handle.id)
                pause = self._pace.interval
            except OdfError:  # a pull would report the error; the server may be unavailable for a while
                pause = self._pace.after(failures) if failures else 0.0
                failures += 1
            except Exception:  # any bug: the thread must not end without a report
                _LOGGER.exception("Listening to %s failed; trying again", shown_url(url))
                failures += 1
                pause = self._pace.after(failures)
            self._end.wait(max(pause, _TURN))
