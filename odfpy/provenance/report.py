"""The result of a provenance query as text, as a tree, and as a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from odfpy.data.amounts import count_of
from odfpy.dataset.identity import DatasetId
from odfpy.provenance.graph import Graph, GraphEdge, GraphNode
from odfpy.provenance.model import ColumnSource, Origin, Provenance, Rows, TracedDataset, TracedRow
from odfpy.provenance.values import MAX_ROWS, plain_value, ranges_text, short_text

_MAX_BOXES: Final = 24


# --- Text ------------------------------------------------------------------------------------------------------------


def lines(answer: Provenance) -> Iterator[str]:
    """Yield the lines of a result: the requested row first, then dataset by dataset down to the roots."""
    names = {dataset.id: dataset.name for dataset in answer.datasets}
    first = answer.datasets[0]
    yield f"{first.name}, row {answer.offset}: {_row_text(first, answer.row)}"
    for number, dataset in enumerate(answer.datasets):
        if number:
            yield ""
            yield f"{dataset.name} ({dataset.kind.value.lower()}), {count_of(len(dataset.rows), 'row')}"
        yield from _rows_lines(dataset, names, is_first=number == 0)
        for step in dataset.steps:
            yield f"  how    {step.alias or 'query'}: {step.query_class}, {step.reason}"
        for column in dataset.columns:
            yield f"  where  {column.column}: {column_text(column)}"
        if dataset.followed:
            yield f"  {_check_text(dataset)}"


def column_text(one: ColumnSource) -> str:
    """Return a description of a column's source."""
    where = f"{one.input_name}.{one.source}" if one.source is not None else one.input_name
    return f"copied from {where}" if one.is_copy else f"{' of '.join(one.through)} of {where}"


def _rows_lines(dataset: TracedDataset, names: Mapping[DatasetId, str], *, is_first: bool) -> Iterator[str]:
    for row in dataset.rows[:MAX_ROWS]:
        if not is_first:
            yield f"  {row.offset}  {_row_text(dataset, row)}"
        if row.made_of:
            yield f"  why    {_cited(row.made_of, names)}" + (f" (one of {row.ways} ways)" if row.ways > 1 else "")
        if row.because_of:
            yield f"         because of {_cited(row.because_of, names)}"
        if row.takes_back is not None:
            yield f"         takes back row {row.takes_back}"
        if row.problem is not None:
            yield f"         unknown: {row.problem}"
        if row.offset in dataset.origins:
            yield f"         {origin_text(dataset.origins[row.offset])}"
    if len(dataset.rows) > MAX_ROWS:
        yield f"  ... and {count_of(len(dataset.rows) - MAX_ROWS, 'row')} more (`-o json` has all of them)"


def _row_text(dataset: TracedDataset, row: TracedRow) -> str:
    hidden = dataset.vocab.system_time_column
    values = (f"{name}={short_text(value)}" for name, value in row.values.items() if name != hidden)
    return f"{row.operation.symbol}  {'  '.join(values)}"


def _cited(rows: Rows, names: Mapping[DatasetId, str]) -> str:
    return "; ".join(f"{names.get(one, str(one))} {ranges_text(offsets)}" for one, offsets in rows.items())


def origin_text(origin: Origin) -> str:
    """Return a description of the origin of a root dataset's row."""
    parts = [f"came with block {origin.sequence_number}, {origin.system_time}"]
    if origin.source is not None:
        parts.append(f"from {origin.source}")
    if origin.file is not None:
        parts.append(f"file {origin.file}")
    elif origin.state is not None:
        parts.append(f"{(origin.state_kind or '').removeprefix('odf/')} {origin.state}")
    return ", ".join(parts)


def _check_text(dataset: TracedDataset) -> str:
    words = {"checked": "checked: the cited rows alone give these rows again"}.get(dataset.check.value)
    return (words or dataset.check.value) + (f": {dataset.remark}" if dataset.remark else "")


# --- Tree ------------------------------------------------------------------------------------------------------------


def tree(answer: Provenance) -> dict[str, Any]:
    """Return the result as a JSON tree."""
    first = answer.datasets[0]
    return {
        "dataset": {"id": str(first.id), "name": first.name},
        "offset": answer.offset,
        "column": answer.column,
        "check": answer.check.value,
        "datasets": [_dataset_tree(dataset) for dataset in answer.datasets],
    }


def _dataset_tree(dataset: TracedDataset) -> dict[str, Any]:
    return {
        "id": str(dataset.id),
        "name": dataset.name,
        "kind": dataset.kind.value,
        "followed": dataset.followed,
        "check": dataset.check.value if dataset.followed else None,
        "remark": dataset.remark,
        "steps": [
            {"alias": step.alias, "class": step.query_class, "reason": step.reason, "query": step.query}
            for step in dataset.steps
        ],
        "columns": [
            {
                "column": column.column,
                "input": str(column.input),
                "inputName": column.input_name,
                "source": column.source,
                "copied": column.is_copy,
                "through": list(column.through),
            }
            for column in dataset.columns
        ],
        "hidden": [str(hidden) for hidden in dataset.hidden],
        "rows": [_row_tree(row, dataset.origins.get(row.offset)) for row in dataset.rows],
    }


def _row_tree(row: TracedRow, origin: Origin | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "offset": row.offset,
        "op": row.operation.symbol,
        "values": {name: plain_value(value) for name, value in row.values.items()},
        "madeOf": {str(one): list(offsets) for one, offsets in row.made_of.items()},
        "becauseOf": {str(one): list(offsets) for one, offsets in row.because_of.items()},
        "takesBack": row.takes_back,
        "ways": row.ways,
        "problem": row.problem,
    }
    if origin is not None:
        found["origin"] = {
            "block": str(origin.block),
            "sequenceNumber": origin.sequence_number,
            "systemTime": str(origin.system_time),
            "source": origin.source,
            "file": origin.file,
            "stateKind": origin.state_kind,
            "state": origin.state,
        }
    return found


# --- Graph -----------------------------------------------------------------------------------------------------------


def graph(answer: Provenance) -> Graph:
    """Return the result as a graph with a box per row, up to a maximum per dataset."""
    nodes, edges = [], []
    shown = {dataset.id: {row.offset for row in dataset.rows[:_MAX_BOXES]} for dataset in answer.datasets}
    for layer, dataset in enumerate(answer.datasets):
        for row in dataset.rows[:_MAX_BOXES]:
            nodes.append(_box(dataset, row, layer))
            for rows, label in ((row.made_of, ""), (row.because_of, "because of")):
                targets = {_key(one, o, shown) for one, offsets in rows.items() for o in offsets if one in shown}
                edges += [GraphEdge(_key(dataset.id, row.offset, shown), target, label) for target in sorted(targets)]
        if (more := len(dataset.rows) - _MAX_BOXES) and more > 0:
            nodes.append(GraphNode(f"{dataset.id}:more", (f"{dataset.name}: {more} more",), layer, "more"))
    return Graph(f"{answer.datasets[0].name}, row {answer.offset}", nodes, edges)


def _key(dataset_id: DatasetId, offset: int, shown: Mapping[DatasetId, set[int]]) -> str:
    return f"{dataset_id}:{offset}" if offset in shown[dataset_id] else f"{dataset_id}:more"


def _box(dataset: TracedDataset, row: TracedRow, layer: int) -> GraphNode:
    text = [f"{dataset.name} {row.offset}  {row.operation.symbol}"]
    hidden = dataset.vocab.system_time_column
    text += [f"{name}: {short_text(value)}" for name, value in row.values.items() if name != hidden]
    if row.offset in dataset.origins:
        text.append(origin_text(dataset.origins[row.offset]))
    return GraphNode(
        f"{dataset.id}:{row.offset}", tuple(text), layer, "asked" if layer == 0 else dataset.kind.value.lower()
    )
