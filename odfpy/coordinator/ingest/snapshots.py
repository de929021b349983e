"""Plausibility checks of files before their rows are merged.

Rows that are missing in a snapshot are retracted, and if the header of a CSV file is missing, its first row would be
lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.events import AddPushSource, SetPollingSource
from odfpy.chain.read_steps import ReadCsv
from odfpy.chain.sources import MergeSnapshot, MergeStrategy
from odfpy.coordinator.ingest.overrides import Overrides
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.settings.dataset_sections import RetractionsSection

if TYPE_CHECKING:
    from odfpy.data.data_warning import DataWarning
    from odfpy.ingest.fetch.preview import UpcomingInput
    from odfpy.ingest.retractions import RetractionLimit


def retraction_limit(dataset: StoredDataset, strategy: MergeStrategy, overrides: Overrides) -> RetractionLimit | None:
    """Return how much one snapshot may retract; None for strategies whose input has explicit retractions.

    Args:
        dataset: the dataset.
        strategy: the merge strategy.
        overrides: exceptions that the user allows.

    Raises:
        MalformedManifest: the settings of the dataset are damaged; the message names the file.
    """
    if not isinstance(strategy, MergeSnapshot):
        return None
    from odfpy.ingest.retractions import RetractionLimit

    share = Config.of_dataset(dataset.folder).section(RetractionsSection).share
    return RetractionLimit(int(share.removesuffix("%")), overrides.retractions, str(dataset.handle))


def require_whole(source: SetPollingSource | AddPushSource, path: Path, name: str) -> None:
    """Check that a CSV file has the header that its source declares.

    Without the header, the first row would silently be lost. An empty file is refused only for snapshots: other
    strategies lose no rows. Other formats show by themselves whether they are complete.

    Args:
        source: the source.
        path: the file.
        name: the name of the file in messages.

    Raises:
        HeaderMissing: the file has no header.
        IngestError: the file cannot be read.
    """
    if not isinstance(source.read, ReadCsv) or not source.read.header:
        return
    from odfpy.ingest.normalize import primary_key
    from odfpy.ingest.read import schema_of
    from odfpy.ingest.read.csv_header import require_header

    keys, is_state = primary_key(source.merge), isinstance(source.merge, MergeSnapshot)
    require_header(source.read, schema_of(source.read), keys, path, name, may_be_empty=not is_state)


def warnings_ahead(
    dataset: StoredDataset, source: SetPollingSource, inputs: Sequence[UpcomingInput]
) -> tuple[DataWarning, ...]:
    """Return warnings about files before they are fetched, such as empty snapshots.

    Args:
        dataset: the dataset.
        source: the source.
        inputs: the inputs that the next pull would ingest.

    Raises:
        HeaderMissing: a local file has no header; a pull would raise the same error.
    """
    if not source.prepare:
        for item in inputs:
            if item.path is not None:
                require_whole(source, item.path, item.name)
    if not isinstance(source.merge, MergeSnapshot) or not dataset.state.num_records:
        return ()
    from odfpy.data.data_warning import MAX_EXAMPLES, DataWarning, WarningKind

    empty = tuple(item.name for item in inputs if item.size == 0)
    if not empty:
        return ()
    what = f"{empty[0]} is empty" if len(empty) == 1 else f"{len(empty)} inputs are empty"
    message = f"{what}: as a state, this retracts all current rows"
    return (DataWarning(WarningKind.RETRACTIONS, message, None, empty[:MAX_EXAMPLES]),)
