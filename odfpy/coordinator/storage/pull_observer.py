"""The observer of a pull, who is told when each dataset begins and ends."""

from __future__ import annotations

from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.storage.stored_dataset import StoredDataset


class PullObserver:
    """Somebody who watches a pull; this one does nothing. An observer raises nothing: a pull does not fail by it."""

    def started(self, dataset: StoredDataset) -> None:
        """Hear that the pull of a dataset begins.

        Args:
            dataset: as it is then.
        """

    def finished(self, dataset: StoredDataset, result: PullResult) -> None:
        """Hear that the pull of a dataset has ended; of one that came from elsewhere, nobody has said that it began.

        Args:
            dataset: as it was when it began; a new one as it is.
            result: what came of it.
        """

    def close(self, *, interrupted: bool) -> None:
        """Hear that the whole pull has ended.

        Args:
            interrupted: whether by an error, or by somebody who wants no more of it.
        """


NOBODY = PullObserver()
