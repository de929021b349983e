"""Restoration of names: a dataset whose name file is lost or damaged gets the name that its remote uses.

The remote of a dataset is stored in another file than its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from odfpy.coordinator.storage.storage import Storage, last_known_name
from odfpy.dataset.identity import DID_ODF_PREFIX, DatasetId
from odfpy.dataset.names import DatasetAlias, DatasetPattern, is_pattern
from odfpy.errors import AlreadyExists, OdfError


def restore_names(storage: Storage, refs: Sequence[str] | None) -> dict[DatasetId, tuple[str, ...]]:
    """Restore lost names of datasets from their remotes, unless another dataset has the name.

    Args:
        storage: the workspace.
        refs: the datasets to restore, by id, lost name or pattern; None for all.

    Returns:
        The ids of restored datasets, each with the written files.
    """
    done: dict[DatasetId, tuple[str, ...]] = {}
    for damaged in storage.scan()[1]:
        folder = storage.odf / "datasets" / damaged.name
        alias = last_known_name(folder)
        with suppress(OdfError):  # folders that are not datasets are reported when datasets are listed
            dataset_id = DatasetId.parse(f"{DID_ODF_PREFIX}{damaged.name}")
            if alias is not None and (refs is None or any(_means(ref, dataset_id, alias) for ref in refs)):
                with storage.editing(), suppress(AlreadyExists):
                    storage.restore_name(dataset_id, alias)
                    done[dataset_id] = (str(folder / "info" / "alias"),)
    return done


def _means(ref: str, dataset_id: DatasetId, alias: DatasetAlias) -> bool:
    if is_pattern(ref):
        return DatasetPattern(ref).matches(alias)
    name = ref.partition("@")[0]
    return name == str(dataset_id) or name.lower() == str(alias).lower()
