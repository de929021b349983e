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


@command(app, "odf engine prepare")
def prepare(context: typer.Context) -> None:
    """Make the start-up cache now, for images and new machines; otherwise the first engine makes it when it is idle."""
    session = session_of(context)
    path, is_new = session.workspace.engines.prepare()
    session.output.say(f"Made the start-up cache {path}" if is_new else f"The start-up cache is there: {path}")


@command(app, "odf engine stop", "odf engine stop --force")
def stop(
    context: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="Even in the middle of a job.")] = False,
) -> None:
    """End the engine if one is running."""
    session = session_of(context)
    stopped = session.workspace.engines.stop(force=force)
    session.output.say("The engine has ended" if stopped else "No engine is running")
