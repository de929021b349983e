"""Observers of a pull, which are notified when each dataset begins and ends."""

from __future__ import annotations

from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.storage.stored_dataset import StoredDataset


class PullObserver:
    """An observer of a pull; this one does nothing. Observers must not raise: a pull does not fail because of them."""

    def started(self, dataset: StoredDataset) -> None:
        """Receive the begin of a dataset's pull.

        Args:
            dataset: the dataset at that time.
        """

    def finished(self, dataset: StoredDataset, result: PullResult) -> None:
        """Receive the end of a dataset's pull; the begin is not reported for datasets from elsewhere.

        Args:
            dataset: the dataset as it was at the begin; a new one as it is.
            result: the result of its pull.
        """

    def close(self, *, interrupted: bool) -> None:
        """Receive the end of the whole pull.

        Args:
            interrupted: whether it ended by an error, or was cancelled.
        """


NOBODY = PullObserver()
