"""`odf inspect`: schema, lineage, source and query of a dataset."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.grammar import Form, Name, command, complete_forms, group, session_of, whole_number
from odfpy.cli.screen.output import Format
from odfpy.cli.screen.terminal import paint
from odfpy.errors import SchemaError, UsageError

if TYPE_CHECKING:
    from odfpy.coordinator.ingest.source_report import SourceReport
    from odfpy.coordinator.storage.results import LineageNode
    from odfpy.data.watermark import WatermarkPolicy

app = group("Inspect a dataset: schema, lineage, source, query.")

_MAX_DEPTH = 100
"""Maximum depth of nested datasets in JSON and YAML; parsers of these give up at a few hundred levels."""


@command(app, "odf inspect schema com.example.rates")
def schema(context: typer.Context, name: Name, form: Form = None) -> None:
    """Show the columns of a dataset."""
    from odfpy.codec.tree import to_tree
    from odfpy.data.schemas import schema as types
    from odfpy.data.schemas.type_text import type_text

    session = session_of(context)
    output = session.output_as(form)
    found = session.workspace.datasets.state(name).require_schema(name)
    if output.form not in (Format.TABLE, Format.CSV):
        output.tree(to_tree(found)["fields"])
        return
    rows = []
    for field in found.fields:
        inner = field.type.inner if isinstance(field.type, types.Option) else field.type
        rows.append((field.name, type_text(inner), "optional" if inner is not field.type else "required"))
    output.rows(["Column", "Type", "Presence"], rows)


@command(
    app, "odf inspect lineage com.example.big-trades", "odf inspect lineage com.example.big-trades -o html > l.html"
)
def lineage(
    context: typer.Context,
    name: Name,
    form: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Print a tree (the default), dot, html, json, ndjson, csv or yaml.",
            metavar="FORM",
            autocompletion=lambda: ["tree", "dot", "html", *complete_forms()],
        ),
    ] = None,
) -> None:
    """Show what a dataset is derived from, and which of its inputs hold its watermark back."""
    session = session_of(context)
    drawing = form.lower() if form is not None and form.lower() in ("tree", "dot", "html") else None
    output = session.output_as(None if drawing else form)
    tree = session.workspace.graph.lineage(name)
    if drawing in ("dot", "html"):
        from odfpy.coordinator.lineage.lineage_graph import lineage_graph
        from odfpy.provenance.graph import dot, html

        output.text((dot if drawing == "dot" else html)(lineage_graph(tree)))
        return
    if output.form is Format.CSV:
        columns = ["depth", "name", "id", "kind", "watermark", "takenIn", "holdsBack"]
        output.rows(columns, list(_flat(tree)))
    elif output.for_people:
        for line in _lines(tree):
            output.text(line)
    else:
        output.tree(_tree(tree))
    cycle = session.workspace.graph.cycle_above(name)
    if cycle is not None:
        raise cycle


def _lines(top: LineageNode) -> Iterator[str]:
    waiting = [(top, "", "")]
    while waiting:
        node, first, rest = waiting.pop()
        again = ", as above: a cycle" if node.is_above else ""
        yield f"{first}{node.handle}  {node.kind.value.lower()}, {_watermark(node)}{again}"
        for number, item in enumerate(reversed(node.inputs)):
            waiting.append((item, f"{rest}{'├─ ' if number else '└─ '}", f"{rest}{'│  ' if number else '   '}"))


def _watermark(node: LineageNode) -> str:
    words = "no watermark" if node.watermark is None else f"watermark {node.watermark}"
    if node.taken_in is not None and node.taken_in != node.watermark:
        words += f", ingested up to {node.taken_in}"
    elif node.taken_in != node.watermark and node.holds_back:
        words += ", not ingested yet"
    return f"{words}  <- holds it back" if node.holds_back else words


def _flat(top: LineageNode) -> Iterator[tuple[Any, ...]]:
    waiting = [(0, top)]
    while waiting:
        depth, node = waiting.pop()
        yield depth, *_facts(node).values()
        waiting += [(depth + 1, item) for item in reversed(node.inputs)]


def _tree(top: LineageNode) -> dict[str, Any]:
    """Return the lineage as nested trees for programs. Repeated nodes are marked where a cycle closes."""
    tree = {**_facts(top), "inputs": []}
    waiting = [(top, tree, 1)]
    while waiting:
        node, of_node, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise UsageError(
                f"The lineage of {top.handle} is more than {_MAX_DEPTH} datasets deep, too deep for nested JSON",
                hint="`-o csv` and `-o dot` give the same without nesting.",
            )
        for item in node.inputs:
            of_item = {**_facts(item), **({"circle": True} if item.is_above else {}), "inputs": []}
            of_node["inputs"].append(of_item)
            waiting.append((item, of_item, depth + 1))
    return tree


def _facts(node: LineageNode) -> dict[str, Any]:
    return {
        "name": str(node.handle),
        "id": str(node.handle.id),
        "kind": node.kind.value,
        "watermark": str(node.watermark) if node.watermark else None,
        "takenIn": str(node.taken_in) if node.taken_in else None,
        "holdsBack": node.holds_back,
    }


@command(app, "odf inspect source com.example.rates", "odf inspect source com.example.rates -n 20 -o json")
def source(
    context: typer.Context,
    name: Name,
    num_commits: Annotated[
        str, typer.Option("--num-commits", "-n", help="Maximum number of commits.", metavar="N")
    ] = "5",
    form: Form = None,
) -> None:
    """Show where the data of a dataset comes from, and how far it was ingested."""
    session = session_of(context)
    output = session.output_as(form)
    report = session.workspace.sources.report(name, num_commits=whole_number(num_commits, "--num-commits") or 0)
    tree = source_tree(report)
    if output.form is Format.CSV:
        output.tree(tree["commits"])
        return
    if not output.for_people:
        output.tree(tree)
        return
    if report.copied_from is not None:
        output.text(f"A copy, pulled from {report.copied_from}; the rest describes the original.\n")
    titles = {"Pulled from": "pollingSource", "Handed in by": "pushSources", "State": "states"}
    for title, key in {**titles, "Watermark": "watermarkPolicy"}.items():
        if tree[key] and tree[key] != _DEFAULT_POLICY:
            output.text(paint(title, "bold", sys.stdout))
            output.tree(tree[key])
            output.text()
    output.text(paint("Last commits", "bold", sys.stdout) if report.commits else "No data yet.")
    if report.commits:
        columns = {"Time": "systemTime", "Rows": "records", "Taken in": "state", "Watermark": "watermark"}
        output.records(tree["commits"], {**columns, "Block": "sequenceNumber"})


_DEFAULT_POLICY = {"lag": "0s", "idle": None}


def _policy_tree(policy: WatermarkPolicy) -> dict[str, Any]:
    return {"lag": str(policy.lag), "idle": None if policy.idle is None else str(policy.idle)}


def source_tree(report: SourceReport) -> dict[str, Any]:
    """Return sources and commits as a tree for programs."""
    from odfpy.codec.tree import to_tree

    return {
        "name": str(report.handle),
        "id": str(report.handle.id),
        "copiedFrom": report.copied_from,
        "pollingSource": to_tree(report.polling_source) if report.polling_source else None,
        "pushSources": [to_tree(item) for item in report.push_sources],
        "states": [to_tree(item) for item in report.states],
        "watermarkPolicy": _policy_tree(report.watermark_policy) if report.watermark_policy else None,
        "commits": [
            {
                "systemTime": str(commit.system_time),
                "records": commit.num_records,
                "state": commit.state.value if commit.state else None,
                "watermark": str(commit.watermark) if commit.watermark else None,
                "sequenceNumber": commit.sequence_number,
                "block": str(commit.block),
            }
            for commit in report.commits
        ],
    }


@command(app, "odf inspect query com.example.big-trades")
def query(context: typer.Context, name: Name, form: Form = None) -> None:
    """Show the query of a derivative dataset, and how the engine processes it."""
    from odfpy.codec.tree import to_tree

    session = session_of(context)
    output = session.output_as(form)
    workspace = session.workspace
    analysis = workspace.engines.analyze(name)
    transform = workspace.datasets.state(name).set_transform
    if analysis is None or transform is None:
        raise SchemaError(f"{name}: the schema of its inputs is not known yet", hint="Pull them first.")
    if not output.for_people:
        output.tree({"engine": transform.transform.engine, **to_tree(analysis)})
        return
    output.text(f"engine     {transform.transform.engine}")
    for item in transform.inputs:
        output.text(f"input      {item.alias}  {item.dataset_ref}")
    for step in analysis.steps:
        output.text(f"\nstep       {step.alias or 'output'}: {step.query_class}")
        output.text(f"  why      {step.reason}")
        output.text(f"  state    {step.state}")
        output.text()
        for line in step.query.strip().splitlines():
            output.text(f"           {line}")
    output.text(f"\ncolumns    {', '.join(analysis.output_columns)}")
    output.text(f"key        {_key(analysis.primary_key)}")
    output.text(f"watermark  {analysis.watermark or 'does not advance'}")
    output.text(f"late rows  {analysis.late}")
    for note in analysis.notes:
        output.text(f"note       {note}")


def _key(columns: tuple[str, ...] | None) -> str:
    if columns is None:
        return "none known from the query"
    return ", ".join(columns) or "no columns: there is one row at most"
