"""The lineage of a dataset on a server, read off the chains there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from odfpy.chain.events import SetTransform
from odfpy.chain.metadata_chain import MetadataChain
from odfpy.client.source import Facts
from odfpy.coordinator.results import DatasetHandle, LineageNode
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetAlias
from odfpy.http.client import HttpClient
from odfpy.repository.http import http_dataset


def lineage_at(base: str, client: HttpClient, name: str, there: Sequence[Facts]) -> LineageNode:
    """A dataset and what it is derived from, as far as the server has it.

    Args:
        base: URL of the server.
        client: connections to it.
        name: the dataset.
        there: all datasets of the server.
    """
    return _Walk(base, client, {facts.id: facts for facts in there if facts.id}).node(
        next(facts for facts in there if facts.name == name), ()
    )


@dataclass(frozen=True)
class _Walk:
    base: str
    client: HttpClient
    there: Mapping[str, Facts]
    done: dict[str, LineageNode] = field(default_factory=dict)

    def node(self, facts: Facts, above: tuple[str, ...]) -> LineageNode:
        """A dataset; it is none of its own inputs, whatever a server says."""
        if facts.name not in self.done:
            names = [str(one) for one in self._inputs(facts)]
            inputs = [self.there[one] for one in names if one in self.there]
            path = (*above, facts.name)
            below = tuple(self.node(one, path) for one in inputs if one.name not in path)
            handle = DatasetHandle(DatasetId.parse(str(facts.id)), DatasetAlias.parse(facts.name))
            watermark = None if facts.watermark is None else Timestamp.parse(facts.watermark)
            self.done[facts.name] = LineageNode(handle, DatasetKind(facts.kind), below, watermark)
        return self.done[facts.name]

    def _inputs(self, facts: Facts) -> list[DatasetId]:
        """What a dataset is directly derived from."""
        if facts.kind != DatasetKind.DERIVATIVE.value:
            return []
        layout = http_dataset(f"{self.base}/{quote(facts.name)}", self.client)
        events = (one.block.event for one in MetadataChain(layout.blocks, layout.refs).iter_blocks())
        transform = next((event for event in events if isinstance(event, SetTransform)), None)
        references = [one.dataset_ref for one in transform.inputs] if transform else []
        return [one for one in references if isinstance(one, DatasetId)]
