"""`odf log`: the chain of a dataset, newest block first."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import singledispatch
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.chain.block import HashedBlock
from odfpy.chain.encoding import block_document
from odfpy.chain.events import (
    AddData,
    AddPushSource,
    ExecuteTransform,
    MetadataEvent,
    Seed,
    SetDataSchema,
    SetInfo,
    SetLicense,
    SetPollingSource,
    SetTransform,
)
from odfpy.chain.references import ReferenceKind
from odfpy.cli.grammar import Form, NameAt, command, group, session_of, whole_number
from odfpy.cli.screen.output import Format, Output
from odfpy.cli.screen.terminal import paint
from odfpy.codec.shape import kind_of
from odfpy.coordinator.reading.history import block_tree, signature_trees
from odfpy.data.amounts import format_size
from odfpy.data.timestamp import Timestamp
from odfpy.errors import UsageError
from odfpy.escaping import escape_controls
from odfpy.repository.transfer.clock import ahead

if TYPE_CHECKING:
    from odfpy.cli.session import Session
    from odfpy.coordinator.storage.signers import BlockSigners

commands = group("History.")

_SHORT_HASH = len("f1620") + 8
"""Number of characters of a hash that distinguish blocks of one chain; commands accept such prefixes."""


@command(
    commands,
    "odf log com.example.rates",
    "odf log com.example.rates --oneline",
    "odf log com.example.rates --limit 5 -o yaml",
)
def log(
    context: typer.Context,
    name: NameAt,
    limit: Annotated[str | None, typer.Option("--limit", "-n", help="Maximum number of blocks.", metavar="N")] = None,
    oneline: Annotated[bool, typer.Option("--oneline", help="One line per block.")] = False,
    form: Form = None,
) -> None:
    """Show the history of a dataset, newest first."""
    session = session_of(context)
    output = session.output_as(form)
    wanted = islice(session.workspace.datasets.log(name), whole_number(limit, "--limit", at_least=1))
    signers = session.workspace.datasets.signers(name)
    if oneline:
        if not output.for_people:
            raise UsageError("--oneline cannot be combined with -o", hint="Omit one of them.")
        _print_lines(session, name, wanted)
        return
    blocks = ((hashed, signers.get(hashed)) for hashed in wanted)
    match output.form:
        case Format.TABLE:
            for hashed, signed in blocks:
                _print_block(output, hashed, signed)
        case Format.YAML:
            for hashed, signed in blocks:
                early = _early(hashed.block.system_time)
                remarks = (f"Block: {hashed.hash}{early}", *_signed(signed))
                output.text("\n".join(("---", *(f"# {line}" for line in remarks))))
                output.tree(block_document(hashed))
        case Format.NDJSON:
            for block in blocks:
                output.tree(block_tree(*block))
        case Format.JSON:
            output.tree([block_tree(*block) for block in blocks])
        case Format.CSV:
            columns = ["sequenceNumber", "blockHash", "systemTime", "event", "signatures"]
            output.rows(columns, [_row(*block) for block in blocks])


def _early(time: Timestamp) -> str:
    """Return a remark on a time in the future."""
    early = ahead(time, Timestamp.now())
    return "" if early is None else f"  ({early.in_words} ahead of the local clock)"


def _row(hashed: HashedBlock, signed: BlockSigners) -> tuple[object, ...]:
    block, tree = hashed.block, block_document(hashed)
    return block.sequence_number, hashed.hash, block.system_time, tree["content"]["event"], signature_trees(signed)


def _signed(signed: BlockSigners) -> Iterable[str]:
    """Return the signers of a block, or the errors of its signatures."""
    if signed.error is not None:
        yield paint(f"signed NOT VALID: {signed.error.message}", "red", sys.stdout)
    elif signed.signers:
        yield f"signed by {', '.join(signer.name for signer in signed.signers)}"


def _print_block(output: Output, hashed: HashedBlock, signed: BlockSigners) -> None:
    block = hashed.block
    output.text(paint(f"block {block.sequence_number} {hashed.hash}", "yellow", sys.stdout))
    output.text(f"time  {block.system_time}{_early(block.system_time)}")
    for line in _signed(signed):
        output.text(line)
    output.text(f"event {type(block.event).__name__}")
    for line in _details(block.event):
        output.text(f"      {escape_controls(line)}")
    output.text()


def _print_lines(session: Session, name: str, blocks: Iterable[HashedBlock]) -> None:
    """Print number, hash, time and event of blocks, with the references that point to them."""
    output = session.output
    pointing: dict[str, list[str]] = {}
    for kind in ReferenceKind:
        for reference in session.workspace.branches.all(name.partition("@")[0], kind):
            pointing.setdefault(str(reference.target), []).append(str(reference.name))
    width = 0
    for hashed in blocks:
        block = hashed.block
        width = width or len(str(block.sequence_number))
        number = paint(f"{block.sequence_number:>{width}} {str(hashed.hash)[:_SHORT_HASH]}", "yellow", sys.stdout)
        names = pointing.get(str(hashed.hash))
        after = paint(f"  ({', '.join(names)})", "cyan", sys.stdout) if names else ""
        what = next((f" {escape_controls(line)}" for line in _details(block.event)), "")
        output.text(f"{number} {str(block.system_time)[:19]} {type(block.event).__name__}{what}{after}")


@singledispatch
def _details(event: MetadataEvent) -> Iterable[str]:
    """Return the details of an event, one per line."""
    del event
    return ()


@_details.register
def _(event: Seed) -> Iterable[str]:
    yield f"{event.dataset_kind.value} {event.dataset_id}"


@_details.register(AddData)
@_details.register(ExecuteTransform)
def _(event: AddData | ExecuteTransform) -> Iterable[str]:
    if event.new_data is not None:
        interval = event.new_data.offset_interval
        yield f"rows {interval.start} to {interval.end}, {format_size(event.new_data.size)}"
        yield f"data {event.new_data.physical_hash}"
    if event.new_watermark is not None:
        yield f"watermark {event.new_watermark}"
    if isinstance(event, AddData) and event.new_source_state is not None:
        yield f"source {event.new_source_state.source_name} at {event.new_source_state.value}"
    if isinstance(event, ExecuteTransform):
        for item in event.query_inputs:
            rows = "no new rows" if item.new_offset is None else f"rows up to {item.new_offset}"
            yield f"input {item.dataset_id}: {rows}"


@_details.register
def _(event: SetDataSchema) -> Iterable[str]:
    if event.schema is not None:
        yield f"columns {', '.join(event.schema.names)}"


@_details.register
def _(event: SetPollingSource) -> Iterable[str]:
    yield f"fetch {kind_of(type(event.fetch))}, read {kind_of(type(event.read))}, merge {kind_of(type(event.merge))}"


@_details.register
def _(event: AddPushSource) -> Iterable[str]:
    yield f"{event.source_name}: read {kind_of(type(event.read))}, merge {kind_of(type(event.merge))}"


@_details.register
def _(event: SetTransform) -> Iterable[str]:
    yield f"engine {event.transform.engine}, inputs {', '.join(str(item.alias) for item in event.inputs)}"


@_details.register
def _(event: SetInfo) -> Iterable[str]:
    if event.description:
        yield event.description.splitlines()[0]


@_details.register
def _(event: SetLicense) -> Iterable[str]:
    yield event.name
