"""`odf mcp`: datasets for agents, over the Model Context Protocol."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from odfpy.cli.grammar import command, group, session_of

commands = group("Datasets for agents.")

_TOKEN: Final = "ODF_MCP_TOKEN"  # noqa: S105 - the name of a variable


@command(
    commands,
    "odf mcp",
    "odf mcp --dataset com.example.%",
    "odf mcp --token odf_...",
    name="mcp",
)
def mcp(
    context: typer.Context,
    token: Annotated[
        str | None,
        typer.Option(
            help=f"Serve only what this access token may read; also in the variable {_TOKEN}.", metavar="TOKEN"
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Show only datasets of this name or pattern; repeatable.", metavar="PATTERN"),
    ] = None,
    proofs: Annotated[
        str | None,
        typer.Option(help="Folder that proofs are written to, by default .odf/mcp/proofs.", metavar="FOLDER"),
    ] = None,
) -> None:
    """Serve the workspace to an agent, over standard input and output. It is read-only, unless a token allows more."""
    from odfpy.dataset.names import DatasetAlias, DatasetPattern, is_pattern
    from odfpy.extras import needs_extra

    session = session_of(context)
    only = [DatasetPattern(text) if is_pattern(text) else DatasetAlias.parse(text) for text in dataset or []]
    workspace = session.workspace
    with needs_extra("mcp", "Servers for agents"):
        from odfpy.agents.stdio import serve_stdio
    folder = None if proofs is None else Path(proofs)
    serve_stdio(workspace, token=token or os.environ.get(_TOKEN) or None, only=only, proofs=folder)
