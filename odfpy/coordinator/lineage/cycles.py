"""Cycles in a workspace: error messages, and the command that breaks the cycle.

`odf add`, `odf reset` and `odf merge` reject cycles. But copies from other locations, older releases or manual
changes may introduce one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from odfpy.chain.events import SetTransform
from odfpy.coordinator.lineage.graph import CycleInWorkspace, DependencyCycle, DependencyOrder, cycle_error
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.errors import OdfError

InputsOf = Callable[[DatasetId], Sequence[DatasetId]]
Before = list[tuple[Timestamp, int]]
"""Time of the query that closes the cycle, and number of the block before it; empty if no such query was found."""

_OTHER_INPUTS = (
    "change the inputs of one of them: edit its manifest (`odf show` prints it), and run `odf add --replace`"
)


def is_copy(dataset: StoredDataset) -> bool:
    """Return whether a dataset is pulled from another location, so that it is not derived here; damage is ignored."""
    from odfpy.repository.registry import Aliases  # parses YAML: imported only if there is a cycle

    try:
        return bool(Aliases.of(dataset.folder).list("pull"))
    except OdfError:
        return False


def cycle_error_of(
    way: Sequence[StoredDataset], inputs_of: InputsOf, known: dict[DatasetId, Before]
) -> DependencyCycle:
    """Return the error for datasets that are derived from each other, with a hint for a fix.

    Args:
        way: the datasets of the cycle; the first one is also the last.
        inputs_of: returns the inputs of each dataset in the workspace.
        known: cache of query times by dataset; it is extended.
    """
    for dataset in way:
        if dataset.handle.id not in known:
            known[dataset.handle.id] = _before_the_cycle(dataset, inputs_of)
    names = [str(dataset.handle) for dataset in way]
    return cycle_error(names, hint=_way_out(way[1:], known), error=CycleInWorkspace)


def _way_out(members: Sequence[StoredDataset], known: Mapping[DatasetId, Before]) -> str:
    own = [dataset for dataset in members if not is_copy(dataset)]
    if not own:
        return f"They are copies: `odf delete --force {members[0].handle}` removes one; inform its publisher."
    candidates = [(since, number, dataset) for dataset in own for since, number in known[dataset.handle.id]]
    if not candidates:
        return f"Either {_OTHER_INPUTS}; or `odf delete --force {own[0].handle}`."
    _, number, latest = max(candidates, key=lambda item: item[0])
    name = latest.handle
    return f"`odf reset {name} {number}` resets {name} to its previous query; or {_OTHER_INPUTS}."


def _before_the_cycle(dataset: StoredDataset, inputs_of: InputsOf) -> Before:
    since: Before = []
    try:
        for hashed in dataset.chain.iter_blocks():
            event = hashed.block.event
            if not isinstance(event, SetTransform):
                continue
            inputs = [item.dataset_ref for item in event.inputs if isinstance(item.dataset_ref, DatasetId)]
            if not path_of_cycle(dataset.handle.id, inputs, inputs_of):
                return since
            since = [(hashed.block.system_time, hashed.block.sequence_number - 1)]
    except OdfError:  # damage is reported elsewhere
        pass
    return []


def path_of_cycle(dataset_id: DatasetId, inputs: Sequence[DatasetId], inputs_of: InputsOf) -> tuple[DatasetId, ...]:
    """Return the path from a dataset back to itself, if it had given inputs; empty if there is none.

    Args:
        dataset_id: id of the dataset.
        inputs: the assumed inputs of the dataset.
        inputs_of: returns the inputs of any dataset.
    """
    seen = DependencyOrder(lambda item: inputs if item == dataset_id else inputs_of(item))
    return seen.way_round(dataset_id)
