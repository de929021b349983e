"""`odf engine`: the warm Spark engine of the workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of

app = group("The Spark engine, which starts when it is needed.")


@command(app, "odf engine status")
def status(context: typer.Context, form: Form = None) -> None:
    """Say whether an engine is running, and what it has done."""
    from odfpy.codec.tree import to_tree

    session = session_of(context)
    found = session.workspace.engines.status()
    tree = {"running": False} if found is None else {"running": True, **to_tree(found)}
    session.output_as(form).tree(tree)


@command(app, "odf engine stop", "odf engine stop --force")
def stop(
    context: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="Also in the middle of a job.")] = False,
) -> None:
    """End the engine if one is running."""
    session = session_of(context)
    stopped = session.workspace.engines.stop(force=force)
    session.output.say("The engine has ended" if stopped else "No engine is running")
