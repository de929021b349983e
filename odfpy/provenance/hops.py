"""Hops from a row to the rows that it is made of, dataset by dataset, down to root datasets."""

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
    """The datasets of a workspace, as far as rows are followed through them."""

    def order(self, dataset_id: DatasetId) -> Sequence[DatasetId]:
        """Return a dataset and all that it is derived from, each before its own inputs."""
        ...

    def followed(self, dataset_id: DatasetId, offsets: Sequence[int]) -> TracedDataset:
        """Return the rows of a dataset, with what they are made of, if it is derivative."""
        ...

    def read(self, dataset_id: DatasetId, offsets: Sequence[int]) -> TracedDataset:
        """Return the rows of a dataset, and, of a root dataset, where they came from."""
        ...


def provenance_of(
    datasets: Datasets, dataset_id: DatasetId, offset: int, *, column: str | None = None, depth: int | None = None
) -> Provenance:
    """Return the rows that a row was computed from.

    Args:
        datasets: where rows are looked for.
        dataset_id: the dataset of the row.
        offset: the row.
        column: only what has to do with this column is said of columns.
        depth: how many derivatives are followed one behind the other; None for all.

    Raises:
        OdfError: there is no such row, or it cannot be told what it is made of.
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
    """Return the answer with only those columns that one column comes from, dataset by dataset."""
    wanted: defaultdict[DatasetId, set[str]] = defaultdict(set, {answer.datasets[0].id: {column}})
    found = []
    for dataset in answer.datasets:
        kept = tuple(one for one in dataset.columns if one.column in wanted[dataset.id])
        for one in kept:
            if one.source is not None:
                wanted[one.input].add(one.source)
        found.append(replace(dataset, columns=kept))
    return replace(answer, datasets=tuple(found))
