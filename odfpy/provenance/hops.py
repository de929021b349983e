"""Tracing of a row to its source rows, dataset by dataset, down to root datasets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from odfpy.dataset.identity import DatasetId
from odfpy.provenance.errors import UnknownProvenance
from odfpy.provenance.model import Provenance, TracedDataset

_MAX_ROWS: Final = 200_000


class Datasets(Protocol):
    """The datasets of a workspace, for tracing rows."""

    def order(self, dataset_id: DatasetId) -> Sequence[DatasetId]:
        """Return a dataset and all datasets upstream of it, each before its own inputs."""
        ...

    def followed(self, dataset_id: DatasetId, offsets: Sequence[int]) -> TracedDataset:
        """Return rows of a dataset, with their source rows if it is derivative."""
        ...

    def read(self, dataset_id: DatasetId, offsets: Sequence[int]) -> TracedDataset:
        """Return rows of a dataset; those of a root dataset have their origins."""
        ...


def provenance_of(
    datasets: Datasets, dataset_id: DatasetId, offset: int, *, column: str | None = None, depth: int | None = None
) -> Provenance:
    """Return the rows that a row was computed from.

    Args:
        datasets: the datasets to trace through.
        dataset_id: the dataset of the row.
        offset: offset of the row.
        column: restricts the columns of the result to those that this column depends on.
        depth: maximum number of consecutive derivatives to trace through; None for all.

    Raises:
        OdfError: the row does not exist, or its provenance cannot be determined.
    """
    waiting: defaultdict[DatasetId, set[int]] = defaultdict(set, {dataset_id: {offset}})
    levels = {dataset_id: 0}
    found = []
    for one in datasets.order(dataset_id):
        if one not in waiting:
            continue
        offsets = sorted(waiting[one])
        if len(offsets) > _MAX_ROWS:
            raise UnknownProvenance(
                f"The row was computed from {len(offsets)} rows of one dataset, more than are traced further",
                hint=f"`--depth {levels[one]}` stops there.",
            )
        is_last = depth is not None and levels[one] >= depth
        dataset = datasets.read(one, offsets) if is_last else datasets.followed(one, offsets)
        found.append(dataset)
        for row in dataset.rows:
            for rows in (row.made_of, row.because_of):
                for source, cited in rows.items():
                    waiting[source].update(cited)
                    levels[source] = min(levels.get(source, levels[one] + 1), levels[one] + 1)
    answer = Provenance(offset, column, tuple(found))
    return answer if column is None else _of_column(answer, column)


def _of_column(answer: Provenance, column: str) -> Provenance:
    """Return the result with only those columns of each dataset that a column depends on."""
    wanted: defaultdict[DatasetId, set[str]] = defaultdict(set, {answer.datasets[0].id: {column}})
    found = []
    for dataset in answer.datasets:
        kept = tuple(one for one in dataset.columns if one.column in wanted[dataset.id])
        for one in kept:
            if one.source is not None:
                wanted[one.input].add(one.source)
        found.append(replace(dataset, columns=kept))
    return replace(answer, datasets=tuple(found))
