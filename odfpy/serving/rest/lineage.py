"""`/lineage` and `/{dataset}/lineage`: the graph of derivations, and which inputs hold watermarks back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from odfpy import __version__
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.storage.results import LineageNode
from odfpy.coordinator.storage.storage import Storage
from odfpy.data.lru_cache import LruCache
from odfpy.dataset.identity import DatasetId
from odfpy.serving.callers.access import AnyCaller, Caller, Readable
from odfpy.serving.http.json_responses import not_modified, reply, tag_of
from odfpy.serving.rest.catalog import Catalog, CatalogEntry
from odfpy.serving.rest.models import ID, NOT_MODIFIED, Records, answers, with_headers

server = APIRouter(tags=["datasets"])
router = APIRouter(tags=["datasets"])

_TAG: Final = 'W/"f1620566002562203fa5af2732a888ccdf6a254c4b2652cf5b34ff1631cb0c1635741"'
_ANSWERS: Final = {**with_headers(ETag=_TAG), **NOT_MODIFIED, **answers(401, 422)}


class NodeModel(BaseModel):
    """A dataset of the graph; inputs that the caller may not read, or that are missing, only have an id."""

    id: Annotated[str, Field(examples=[ID])]
    name: str | None
    kind: str | None = None
    numRecords: Records | None = None  # noqa: N815
    watermark: str | None = None
    updatedAt: str | None = None  # noqa: N815
    hasFailed: bool = False  # noqa: N815
    heldBackBy: Annotated[  # noqa: N815
        list[str], Field(description="Ids of the datasets, direct or indirect inputs, that hold the watermark back.")
    ] = []


class EdgeModel(BaseModel):
    """The derivation of a dataset from another one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"input": ID, "output": ID, "holdsBack": True}]})

    input: str
    output: str
    takenIn: Annotated[  # noqa: N815
        str | None, Field(description="The watermark of the input in the last run of the output.")
    ] = None
    holdsBack: Annotated[  # noqa: N815
        bool, Field(description="Whether this input holds the watermark of the output back.")
    ] = False


class GraphModel(BaseModel):
    """Datasets, and which of them are derived from which."""

    nodes: list[NodeModel]
    edges: list[EdgeModel]


class Lineages:
    """The lineages of the workspaces of a server, made again when a head has moved. For all threads."""

    def __init__(self, storages: Iterable[Storage]) -> None:
        self._storages = tuple(storages)
        self._made: LruCache[tuple[str, ...], dict[DatasetId, LineageNode]] = LruCache(2)

    def nodes(self, entries: Iterable[CatalogEntry]) -> dict[DatasetId, LineageNode]:
        """Return the node of each dataset of the server, with its inputs.

        Args:
            entries: all datasets of the server.
        """
        all_entries = list(entries)
        heads = tuple(f"{entry.dataset.handle.id} {entry.head}" for entry in all_entries)
        return self._made.get(heads, lambda: self._make(all_entries))

    def _make(self, entries: list[CatalogEntry]) -> dict[DatasetId, LineageNode]:
        lineages = {storage.root: Lineage(storage) for storage in self._storages}
        trees = {}
        for entry in entries:
            lineage = lineages[entry.dataset.workspace_folder.root]
            if lineage.name_of(entry.dataset.handle.id) is not None:
                trees[entry.dataset.handle.id] = lineage.tree(entry.dataset.handle.id)
        return trees


@server.get("/lineage", response_model=GraphModel, responses=_ANSWERS)
def lineage_of_all(request: Request, caller: AnyCaller) -> Response:
    """Return the lineage graph of all datasets that the caller may read."""
    catalog: Catalog = request.app.state.catalog
    entries = catalog.entries()
    return _answer(request, entries, {entry.dataset.handle.id for entry in entries}, caller)


@router.get("/lineage", response_model=GraphModel, responses={**_ANSWERS, **answers(401, 404, 422)})
def lineage_of_one(
    request: Request,
    caller: AnyCaller,
    dataset: Readable,
    downstream: Annotated[bool, Query(description="Include the datasets derived from it.")] = True,
) -> Response:
    """Return the lineage graph of the dataset, upstream and downstream, as far as the caller may read it."""
    catalog: Catalog = request.app.state.catalog
    entries = catalog.entries()
    inputs = {entry.dataset.handle.id: entry.inputs for entry in entries}
    outputs: dict[DatasetId, list[DatasetId]] = {}
    for key, below in inputs.items():
        for item in below:
            outputs.setdefault(item, []).append(key)
    wanted = _reached(dataset.handle.id, lambda key: inputs.get(key, ()))
    if downstream:
        wanted |= _reached(dataset.handle.id, lambda key: outputs.get(key, ()))
    return _answer(request, entries, wanted, caller)


def _reached(start: DatasetId, following: Callable[[DatasetId], Iterable[DatasetId]]) -> set[DatasetId]:
    reached, waiting = {start}, [start]
    while waiting:
        new = [neighbor for neighbor in following(waiting.pop()) if neighbor not in reached]
        reached.update(new)
        waiting += new
    return reached


def _answer(request: Request, entries: list[CatalogEntry], wanted: set[DatasetId], caller: Caller) -> Response:
    catalog: Catalog = request.app.state.catalog
    lineages: Lineages = request.app.state.lineages
    visible = {entry.dataset.handle.id: entry for entry in catalog.visible_among(entries, caller)}
    trees = lineages.nodes(entries)
    nodes, edges = {}, []
    for key, entry in visible.items():
        if key not in wanted:
            continue
        tree = trees.get(key)
        held = () if tree is None else tree.held_back_by
        nodes[key] = _node(entry, [str(handle.id) for handle in held if handle.id in visible])
        taken = {} if tree is None else {item.handle.id: item for item in tree.inputs}
        for item in entry.inputs:
            if item in wanted:
                edges.append(_edge(item, key, taken.get(item), is_known=item in visible))
                if item not in visible:
                    nodes.setdefault(item, NodeModel(id=str(item), name=None))
    graph = GraphModel(nodes=list(nodes.values()), edges=edges).model_dump()
    tag = tag_of(__version__, "lineage", graph)
    return not_modified(request, tag) or reply(request, graph, tag)


def _node(entry: CatalogEntry, held_back_by: list[str]) -> NodeModel:
    return NodeModel(
        id=str(entry.dataset.handle.id),
        name=entry.name,
        kind=entry.kind.value,
        numRecords=entry.num_records,
        watermark=str(entry.watermark) if entry.watermark is not None else None,
        updatedAt=str(entry.updated_at) if entry.updated_at is not None else None,
        hasFailed=entry.failure is not None,
        heldBackBy=held_back_by,
    )


def _edge(source: DatasetId, output: DatasetId, item: LineageNode | None, *, is_known: bool) -> EdgeModel:
    if item is None or not is_known:
        return EdgeModel(input=str(source), output=str(output))
    taken_in = str(item.taken_in) if item.taken_in is not None else None
    return EdgeModel(input=str(source), output=str(output), takenIn=taken_in, holdsBack=item.holds_back)
