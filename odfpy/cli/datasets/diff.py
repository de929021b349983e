"""`odf diff`: what a branch would add, or what changed between two moments of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.datasets.branch import complete_moments
from odfpy.cli.grammar import Form, Name, command, complete_columns, group, session_of, split_words, whole_number
from odfpy.cli.screen.output import Format, Output
from odfpy.data.amounts import count_of
from odfpy.errors import OdfError, UsageError

if TYPE_CHECKING:
    from odfpy.cli.session import Session
    from odfpy.coordinator.branches.diff import BranchDiff
    from odfpy.coordinator.reading.compare import Comparison, RowChange

commands = group("Differences.")

SHOWN = 10
"""Rows shown to people by default."""

DIFFERENT, TROUBLE = 1, 2


@command(
    commands,
    "odf diff com.example.rates staging",
    "odf diff com.example.rates v1 head",
    "odf diff com.example.rates 2024-03-01 2024-04-01 --rows 100",
    "odf diff com.example.rates 3 7 --key cur -o ndjson",
    "odf diff com.example.rates v1 head --exit-code --rows 0",
)
def diff(
    context: typer.Context,
    name: Name,
    first: Annotated[
        str,
        typer.Argument(
            help="A branch; or, with B, a time, block, tag or branch.",
            metavar="BRANCH|A",
            autocompletion=complete_moments,
        ),
    ],
    second: Annotated[
        str | None,
        typer.Argument(
            help="The version to compare A with: a time, block, tag, branch or head.",
            metavar="B",
            autocompletion=complete_moments,
        ),
    ] = None,
    rows: Annotated[
        str | None, typer.Option("--rows", "-n", help="Maximum number of rows; 10 in a table.", metavar="N")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="Columns that identify a row, comma-separated.",
            metavar="COLUMNS",
            autocompletion=complete_columns,
        ),
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if there are differences, with 2 after an error.")
    ] = False,
    form: Form = None,
) -> int:
    """Show what a branch would add to a dataset, or compare two versions, A and B: rows, by key."""
    session = session_of(context)
    output = session.output_as(form)
    limit = whole_number(rows, "--rows")
    try:
        if second is not None:
            is_different = _compare(session, output, (name, first, second), key, limit)
        elif key is not None:
            raise UsageError("--key needs two versions to compare", hint=f"odf diff {name} {first} head --key {key}")
        else:
            is_different = _staged(session, output, name, first, SHOWN if limit is None else limit)
    except OdfError as error:
        if exit_code:
            vars(error)["exit_code"] = TROUBLE
        raise
    return DIFFERENT if exit_code and is_different else 0


# --- What is staged on a branch --------------------------------------------------------------------------------------


def _staged(session: Session, output: Output, name: str, branch: str, limit: int) -> bool:
    from odfpy.coordinator.storage.references import NoSuchReference

    try:
        found = session.workspace.branches.diff(name, branch)
    except NoSuchReference as error:
        old, dots, new = branch.partition("..")  # the notation of git
        hint = f"`odf diff {name} {old} {new if dots and new else 'head'}` compares versions: times, blocks, tags."
        raise NoSuchReference(error.message, hint=f"{error.hint} {hint}" if error.hint else hint) from error
    if not output.for_people:
        output.tree(_staged_tree(found))
        return bool(found.blocks)
    for line in _staged_lines(found):
        output.text(line)
    if found.num_records and limit:
        output.text()
        output.arrow(session.workspace.branches.staged_rows(found, limit))
        if found.num_records > limit:
            output.info(f"{count_of(found.num_records - limit, 'more row')}; --rows shows more")
    return bool(found.blocks)


def _staged_lines(found: BranchDiff) -> list[str]:
    lines = [f"{found.handle}: {found.branch} branched from the head at block {found.base_number}"]
    if not found.blocks:
        return [*lines, "It has no blocks that the head lacks"]
    if found.head_blocks:
        lines.append(f"The head has advanced by {count_of(len(found.head_blocks), 'block')}")
    lines.append(f"It would add {count_of(found.num_records, 'record')} in {count_of(len(found.blocks), 'block')}:")
    lines += [
        f"  block {hashed.block.sequence_number} {hashed.hash} {type(hashed.block.event).__name__}"
        for hashed in found.blocks
    ]
    if found.keys is not None:
        lines.append(f"By key: {found.keys.new} new, {found.keys.changed} changed, {found.keys.gone} gone")
    return lines


def _staged_tree(found: BranchDiff) -> dict[str, Any]:
    keys = found.keys
    return {
        "dataset": str(found.handle),
        "branch": found.branch,
        "head": str(found.head),
        "tip": str(found.tip),
        "base": str(found.base),
        "baseNumber": found.base_number,
        "blocks": [
            {
                "blockHash": str(hashed.hash),
                "sequenceNumber": hashed.block.sequence_number,
                "event": type(hashed.block.event).__name__,
            }
            for hashed in found.blocks
        ],
        "headBlocks": len(found.head_blocks),
        "records": found.num_records,
        "keys": None if keys is None else {"new": keys.new, "changed": keys.changed, "gone": keys.gone},
    }


# --- Between two moments ---------------------------------------------------------------------------------------------


def _compare(session: Session, output: Output, what: tuple[str, str, str], key: str | None, limit: int | None) -> bool:
    name, old, new = what
    with session.workspace.queries.compare(name, old, new, key=split_words(key)) as found:
        counted = _Counted(found, SHOWN if limit is None and output.for_people else limit)
        if output.for_people:
            _show(output, what, found, counted)
        elif output.form is Format.CSV:
            output.flow(["change", "count", *found.columns], (row for one in counted for row in _csv_rows(one, found)))
        elif output.form is Format.NDJSON:
            for one in counted:
                output.tree(one.to_json())
        else:
            output.tree([one.to_json() for one in counted])
    return any(counted.counts.values())


class _Counted:
    """Differences: yields only the first ones, but counts all."""

    def __init__(self, found: Iterable[RowChange], limit: int | None) -> None:
        self.counts = {"added": 0, "removed": 0, "changed": 0}
        self.left = 0
        self._found = found
        self._limit = limit

    def __iter__(self) -> Iterator[RowChange]:
        for number, one in enumerate(self._found):
            self.counts[one.change.value] += one.count
            if self._limit is None or number < self._limit:
                yield one
            else:
                self.left += 1


def _show(output: Output, what: tuple[str, str, str], found: Comparison, counted: _Counted) -> None:
    shown = list(counted)
    name, old, new = what
    by = f"by {', '.join(found.key)}" if found.key else "rows"
    counts = ", ".join(f"{count} {word}" for word, count in counted.counts.items() if found.key or word != "changed")
    output.text(f"{name}: {old} to {new}, {by}: {counts}")
    if not shown:
        return
    output.text()
    columns = [*found.key, *(column for column in found.columns if column not in found.key)]
    output.rows(["", *columns], [[_sign(one), *(_both(one, column) for column in columns)] for one in shown])
    if counted.left:
        output.info(f"{count_of(counted.left, 'more row')}; --rows shows more")


def _sign(one: RowChange) -> str:
    sign = {"added": "+", "removed": "-", "changed": "~"}[one.change.value]
    return sign if one.count == 1 else f"{sign} {one.count}x"


def _both(one: RowChange, column: str) -> Any:
    """Return a cell, or its old and new value if they differ."""
    from odfpy.cli.screen.output import cell

    if one.old is None or one.new is None:
        return (one.old or one.new or {}).get(column)
    before, after = one.old[column], one.new[column]
    return after if before == after else f"{_version_of(cell(before))} -> {_version_of(cell(after))}"


def _version_of(text: str) -> str:
    return text or "(none)"


def _csv_rows(one: RowChange, found: Comparison) -> Iterator[list[Any]]:
    """Yield a line for the old and one for the new row, with the signs used in changelogs."""
    signs = {"added": ("", "+A"), "removed": ("-R", ""), "changed": ("-C", "+C")}[one.change.value]
    for sign, cells in zip(signs, (one.old, one.new), strict=True):
        if cells is not None:
            yield [sign, one.count, *(cells[column] for column in found.columns)]
