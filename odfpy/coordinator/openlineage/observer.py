"""Observer that reports a pull to OpenLineage. Its failures do not affect the pull."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from odfpy.coordinator.openlineage.events import EventMaker, PullRun
from odfpy.coordinator.openlineage.sender import EventSender
from odfpy.coordinator.storage.pull_observer import NOBODY, PullObserver
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.dataset.identity import DatasetId
from odfpy.settings.sections import OpenLineageSection

_LOGGER = logging.getLogger("odfpy")


class LineageObserver(PullObserver):
    """Sends the events of a pull."""

    def __init__(self, sender: EventSender, maker: EventMaker) -> None:
        """
        Args:
            sender: the sender of events.
            maker: builder of the events.
        """
        self._sender = sender
        self._maker = maker
        self._under_way: dict[DatasetId, PullRun] = {}
        self._failed = 0
        if maker.parent is not None:
            sender.send(maker.start(maker.parent))

    def started(self, dataset: StoredDataset) -> None:
        """Send a START event."""
        with self._unharmed():
            run = self._under_way[dataset.handle.id] = self._maker.begin(dataset)
            self._sender.send(self._maker.start(run))

    def finished(self, dataset: StoredDataset, result: PullResult) -> None:
        """Send a COMPLETE or FAIL event, or an ABORT for a skipped dataset."""
        self._failed += result.outcome is PullOutcome.FAILED
        if dataset.handle.id not in self._under_way:
            self.started(dataset)
        with self._unharmed():
            self._sender.send(self._maker.end(self._under_way.pop(dataset.handle.id), result))

    def close(self, *, interrupted: bool) -> None:
        """Send ABORT events for interrupted pulls, and wait for delivery, for a limited time."""
        with self._unharmed():
            for run in self._under_way.values():
                self._sender.send(self._maker.abort(run))
            if self._maker.parent is not None:
                parent = self._maker.parent
                last = self._maker.abort(parent) if interrupted else self._maker.end_of_all(parent, self._failed)
                self._sender.send(last)
        self._sender.close()

    @contextmanager
    def _unharmed(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - damaged datasets, bugs in the library: none may fail a pull
            self._sender.lose(f"{type(error).__name__}: {error}")


def lineage_observer(storage: Storage, settings: OpenLineageSection, *, of_all: bool) -> PullObserver:
    """Return the observer configured in the settings; an invalid configuration is reported, and disables it.

    Args:
        storage: the workspace's files.
        settings: the receiver.
        of_all: whether all datasets are pulled, as parts of one job.
    """
    try:
        maker = EventMaker(settings.namespace, storage, parent="pull --all" if of_all else None)
        return LineageObserver(EventSender(settings), maker)
    except (OSError, ValueError) as error:
        _LOGGER.warning("no events of lineage are sent: %s", error)
        return NOBODY
