"""The lineage of a dataset on a server, read from the chains of its datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from odfpy.chain.events import SetTransform
from odfpy.chain.metadata_chain import MetadataChain
from odfpy.client.backend import DatasetFacts
from odfpy.coordinator.lineage.lineage_tree import LineageTrees
from odfpy.coordinator.storage.results import DatasetHandle, LineageNode
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetAlias
from odfpy.http.client import HttpClient
from odfpy.repository.locations.http import http_dataset


def lineage_at(base: str, client: HttpClient, name: str, there: Sequence[DatasetFacts]) -> LineageNode:
    """Return the tree of a dataset and its inputs on the server.

    Args:
        base: URL of the server.
        client: HTTP client.
        name: name of the dataset.
        there: all datasets on the server.
    """
    server = _Server(base, client, {facts.id: facts for facts in there if facts.id})
    return LineageTrees(server.inputs_of, server.node).tree(
        next(facts.id for facts in there if facts.name == name and facts.id)
    )


class _Server:
    """The datasets of a server; inputs are cached."""

    def __init__(self, base: str, client: HttpClient, there: Mapping[str, DatasetFacts]) -> None:
        self._base = base
        self._client = client
        self._there = there
        self._known: dict[str, list[str]] = {}

    def inputs_of(self, dataset_id: str) -> list[str]:
        """Return the direct inputs of a dataset that are on the server."""
        if dataset_id not in self._known:
            inputs = map(str, self._inputs(self._there[dataset_id]))
            self._known[dataset_id] = [item for item in inputs if item in self._there]
        return self._known[dataset_id]

    def node(self, dataset_id: str, inputs: Sequence[LineageNode]) -> LineageNode:
        """Build the node of a dataset from those of its inputs."""
        facts = self._there[dataset_id]
        handle = DatasetHandle(DatasetId.parse(dataset_id), DatasetAlias.parse(facts.name))
        watermark = None if facts.watermark is None else Timestamp.parse(facts.watermark)
        return LineageNode(handle, DatasetKind(facts.kind), tuple(inputs), watermark)

    def _inputs(self, facts: DatasetFacts) -> list[DatasetId]:
        if facts.kind != DatasetKind.DERIVATIVE.value:
            return []
        layout = http_dataset(f"{self._base}/{quote(facts.name)}", self._client)
        events = (hashed.block.event for hashed in MetadataChain(layout.blocks, layout.refs).iter_blocks())
        transform = next((event for event in events if isinstance(event, SetTransform)), None)
        references = [one.dataset_ref for one in transform.inputs] if transform else []
        return [reference for reference in references if isinstance(reference, DatasetId)]
