"""`odf push`: data out to other places."""

from __future__ import annotations

from typing import Annotated

import typer

from odfpy.cli.grammar import All, Form, Names, Recursive, command, complete_repositories, group, session_of
from odfpy.cli.results import report

commands = group("Data out.")


@command(
    commands,
    "odf push com.example.rates --to mirror",
    "odf push --all --to /srv/mirror/",
    "odf push com.example.rates",
)
def push(
    context: typer.Context,
    names: Names = None,
    to: Annotated[
        str | None,
        typer.Option(
            help="Repository, repository/name, path or URL; remembered for the next time.",
            metavar="PLACE",
            autocompletion=complete_repositories,
        ),
    ] = None,
    all_: All = False,
    recursive: Recursive = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a copy that has diverged.")] = False,
    form: Form = None,
) -> int:
    """Copy datasets to a repository. A path or URL with a slash at its end is that of a repository."""
    session = session_of(context)
    output = session.output_as(form)
    results = session.workspace.push(
        names or (), to=to, all=all_, recursive=recursive, force=force, progress=session.progress
    )
    return report(results, output, session.progress)
