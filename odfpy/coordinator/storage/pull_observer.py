"""Observers of a pull, which are notified when the pull of each dataset begins and ends."""

from __future__ import annotations

from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.storage.stored_dataset import StoredDataset


class PullObserver:
    """Observer of a pull; the base class does nothing. Observers must not raise: they may not make a pull fail."""

    def started(self, dataset: StoredDataset) -> None:
        """Handle the beginning of a dataset's pull.

        Args:
            dataset: the dataset before its pull.
        """

    def finished(self, dataset: StoredDataset, result: PullResult) -> None:
        """Handle the end of a dataset's pull; for datasets that are new in the workspace, `started` was not called.

        Args:
            dataset: the dataset before its pull; a new dataset after it.
            result: the result of its pull.
        """

    def close(self, *, interrupted: bool) -> None:
        """Handle the end of the whole pull.

        Args:
            interrupted: whether the pull was ended by an error or cancelled.
        """


NOBODY = PullObserver()
