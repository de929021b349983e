"""`odf provenance`: trace a row to its sources."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from odfpy.cli.grammar import Name, command, group, session_of, whole_number
from odfpy.cli.screen.output import Format
from odfpy.errors import UsageError, member_named

commands = group("Provenance.")


class _Form(Enum):
    TEXT = "text"
    JSON = "json"
    DOT = "dot"
    HTML = "html"


class _Check(Enum):
    ON = "on"
    OFF = "off"


@command(
    commands,
    "odf provenance com.example.daily 3",
    "odf provenance com.example.daily 3 --column warmest --depth 1",
    "odf provenance com.example.daily 3 -o html > row.html",
)
def provenance(
    context: typer.Context,
    name: Name,
    offset: Annotated[str, typer.Argument(help="Offset of the row.", metavar="OFFSET")],
    column: Annotated[str | None, typer.Option(help="Trace only this column.", metavar="NAME")] = None,
    depth: Annotated[str | None, typer.Option(help="Follow at most N levels of derivatives.", metavar="N")] = None,
    form: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Print text, json, dot or html.",
            metavar="FORM",
            autocompletion=lambda: [one.value for one in _Form],
        ),
    ] = "text",
    check: Annotated[
        str,
        typer.Option(
            help="Whether to check the answer by a replay of the cited rows.",
            metavar="on|off",
            autocompletion=lambda: ["on", "off"],
        ),
    ] = "on",
) -> None:
    """Show where a row comes from, down to its sources: the input rows that it was computed from."""
    from odfpy.provenance.graph import dot, html
    from odfpy.provenance.report import graph, lines, tree

    session = session_of(context)
    wanted = member_named(_Form, "output format", form, error=UsageError)
    is_checked = member_named(_Check, "choice for --check", check, error=UsageError) is _Check.ON
    number = whole_number(offset, "OFFSET") or 0
    answer = session.workspace.queries.provenance(
        name, number, column=column, depth=whole_number(depth, "--depth"), check=is_checked
    )
    output = session.output_as(None)
    match wanted:
        case _Form.TEXT:
            for line in lines(answer):
                output.text(line)
        case _Form.JSON:
            session.output_as(Format.JSON.value).tree(tree(answer))
        case _Form.DOT:
            output.text(dot(graph(answer)))
        case _Form.HTML:
            output.text(html(graph(answer), list(lines(answer))))
