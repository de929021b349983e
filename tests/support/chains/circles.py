"""Workspaces with datasets that are derived from each other, as only a hand, an older release or a copy makes them."""

from __future__ import annotations

from collections.abc import Sequence

from odfpy.chain.events import Seed, SetTransform, TransformInput
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.new_blocks import NewBlocks
from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.commit import commit_time
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DID_ODF_PREFIX, KeyPair
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.transform import TransformSql


def rederive(workspace: Workspace, name: str, *sources: str, branch: str | None = None) -> None:
    """Give a derivative other inputs in its chain, without any of the checks of `odf add`."""
    inputs = tuple(TransformInput(workspace.datasets.handle(source).id, f"i{at}") for at, source in enumerate(sources))
    query = TransformSql(engine="datafusion", query="select op, event_time, id, name from i0").normalized()
    with workspace.storage.get(name).on(branch).writing() as dataset:
        new = NewBlocks(dataset.state)
        new.add(SetTransform(inputs, query), commit_time(dataset.state))
        dataset.chain.commit(new)


def chained(workspace: Workspace, first: str, names: Sequence[str]) -> None:
    """Create derivatives without data, each of the previous one; without `odf add`, which analyzes every query."""
    source = workspace.datasets.handle(first).id
    query = TransformSql(engine="datafusion", query="select op, event_time, id, name from source").normalized()
    for name in names:
        new = NewBlocks(ChainState())
        made = KeyPair.generate().dataset_id
        for event in (Seed(made, DatasetKind.DERIVATIVE), SetTransform((TransformInput(source, "source"),), query)):
            new.add(event, Timestamp.now())
        folder = workspace.odf / "datasets" / str(made).removeprefix(DID_ODF_PREFIX)
        DatasetLayout.local(folder).chain.commit(new)
        (folder / "info").mkdir(exist_ok=True)
        (folder / "info" / "alias").write_text(f"{name}\n")
        source = made
