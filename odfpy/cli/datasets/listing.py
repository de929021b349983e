"""`odf list`, `show`: the datasets of a workspace."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.grammar import Command, Form, Name, Names, command, group, session_of
from odfpy.cli.screen.output import Columns, Record, error_tree
from odfpy.data.amounts import format_size
from odfpy.data.timestamp import NANOS_PER_SECOND, SECONDS_PER_DAY, Timestamp
from odfpy.errors import OdfError

if TYPE_CHECKING:
    from odfpy.coordinator.storage.results import DamagedDataset, DatasetSummary, LineageNode
    from odfpy.coordinator.workspace import Workspace
    from odfpy.dataset.identity import DatasetId

commands = group("Datasets.")


class _List(Command):
    """A command where `-w FOLDER` names the workspace, as everywhere, and `-w` without a folder means `--wide`."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments, reading a `-w` without a folder as `--wide`."""
        following = [*args[1:], "-"]
        words = (
            ("--wide" if word == "-w" and after[:1] == "-" else word)
            for word, after in zip(args, following, strict=False)
        )
        return super().parse_args(ctx, list(words))


@command(commands, "odf list", "odf list com.example.%", "odf list --wide", "odf list -o json", name="list", cls=_List)
def list_(
    context: typer.Context,
    names: Names = None,
    form: Form = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="Also blocks, ids, heads, and inputs that hold watermarks back; short -w.")
    ] = False,
) -> int:
    """List the datasets of the workspace."""
    session = session_of(context)
    output = session.output_as(form)
    found, damaged = session.workspace.datasets.survey(names or ())
    if not found and not damaged and output.for_people:
        output.info("No datasets; add some with `odf add`.")
        return 0
    columns = _WIDE if wide else _NARROW
    records = [_tree(summary) for summary in found]
    if not output.for_people:
        for summary, record in zip(found, records, strict=True):
            record["inputs"] = [_name_of(session.workspace, id_) for id_ in summary.inputs]
    if wide:
        held_back = session.workspace.graph.held_back()
        for summary, record in zip(found, records, strict=True):
            record["heldBackBy"] = list(map(str, held_back.get(summary.handle.id, ())))
    records += [_damaged_tree(dataset) for dataset in damaged]
    output.records(records, columns)
    for dataset in damaged:
        output.error(dataset.error.message, dataset.error.hint, dataset.error.code)
    return 1 if damaged else 0


def _tree(summary: DatasetSummary) -> dict[str, Any]:
    return {
        "name": str(summary.handle),
        "id": str(summary.handle.id),
        "kind": summary.kind.value,
        "head": str(summary.head),
        "blocks": summary.num_blocks,
        "records": summary.num_records,
        "bytes": summary.data_bytes,
        "linkedFiles": summary.linked_files,
        "linkedBytes": summary.linked_bytes,
        "updated": _text(summary.last_data_time),
        "watermark": _text(summary.watermark),
    }


def _name_of(workspace: Workspace, id_: DatasetId) -> str:
    """Return the name of a dataset, or its id if it is not in the workspace."""
    with suppress(OdfError):
        return str(workspace.datasets.handle(str(id_)))
    return str(id_)


def _damaged_tree(dataset: DamagedDataset) -> dict[str, Any]:
    return {"name": dataset.name, "kind": "damaged", **error_tree(dataset.error)}


def _size(record: Record) -> str | None:
    return None if record.get("bytes") is None else format_size(record["bytes"])


def _linked(record: Record) -> str | None:
    count = record.get("linkedFiles")
    return f"{count} ({format_size(record['linkedBytes'])})" if count else None


def _updated(record: Record) -> str | None:
    return None if record.get("updated") is None else ago(Timestamp.parse(record["updated"]), Timestamp.now())


def _watermark(record: Record) -> str | None:
    """Format a watermark for a table."""
    time: str | None = record.get("watermark")
    return None if time is None else time[:16].replace("T", " ")


def _held_back(record: Record) -> str:
    return ", ".join(record.get("heldBackBy", ()))


def ago(time: Timestamp, now: Timestamp) -> str:
    """Return how long ago a time was, in a dozen characters at most; the date if it was long ago."""
    seconds = max(0, (now.nanos - time.nanos) // NANOS_PER_SECOND)
    for unit, size in (("days", SECONDS_PER_DAY), ("hours", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return str(time)[:10] if seconds >= 100 * SECONDS_PER_DAY else f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


_NARROW: Columns = {
    "Name": "name",
    "Kind": "kind",
    "Records": "records",
    "Size": _size,
    "Updated": _updated,
    "Watermark": _watermark,
}
_WIDE: Columns = {
    **_NARROW,
    "Updated": "updated",
    "Watermark": "watermark",
    "Held back by": _held_back,
    "Linked files": _linked,
    "Blocks": "blocks",
    "Id": "id",
    "Head": "head",
}


def _input_tree(node: LineageNode) -> dict[str, Any]:
    return {
        "name": str(node.handle),
        "watermark": _text(node.watermark),
        "takenIn": _text(node.taken_in),
        "holdsBack": node.holds_back,
    }


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


@command(commands, "odf show com.example.rates", "odf show com.example.rates -o json")
def show(context: typer.Context, name: Name, form: Form = None) -> None:
    """Show the metadata of a dataset."""
    from odfpy.chain.encoding import snapshot_document
    from odfpy.coordinator.storage.config import Config
    from odfpy.data.schemas.primary_key import primary_key_of
    from odfpy.serving.callers.visibility import visibility_of

    session = session_of(context)
    output = session.output_as(form)
    workspace = session.workspace
    dataset = workspace.storage.get(name)
    state = dataset.state
    aliases = workspace.remotes.aliases(name)
    tree = _tree(workspace.datasets.summary(name))
    tree["visibility"] = visibility_of(dataset.folder).value
    tree["pulledFrom"] = list(aliases.shown("pull"))
    tree["pushedTo"] = list(aliases.shown("push"))
    tree["inputs"] = list(map(str, workspace.graph.inputs(name)))
    with suppress(OdfError):  # an unreadable input must not hide the rest
        lineage = workspace.graph.lineage(name)
        tree["inputWatermarks"] = [_input_tree(node) for node in lineage.inputs]
        tree["heldBackBy"] = list(map(str, lineage.held_back_by))
    tree["derivatives"] = [str(handle) for handle in workspace.graph.dependents(name)]
    own = Config.of_dataset(dataset.folder).items()
    tree["settings"] = {item.setting.key: item.value for item in own if item.origin != "default"}
    tree["columns"] = list(state.schema.names) if state.schema else None
    tree["primaryKey"] = primary_key_of(state.schema) if state.schema else None
    tree["manifest"] = snapshot_document(workspace.datasets.snapshot(name))["content"]
    output.tree({key: value for key, value in tree.items() if value not in (None, [], {})})
