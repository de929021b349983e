"""`odf engine`: the warm Spark engine of the workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of

app = group("The Spark engine of the workspace.")


@command(app, "odf engine status")
def status(context: typer.Context, form: Form = None) -> None:
    """Show whether an engine is running, and its state."""
    from odfpy.codec.tree import to_tree

    session = session_of(context)
    found = session.workspace.engines.status()
    tree = {"running": False} if found is None else {"running": True, **to_tree(found)}
    session.output_as(form).tree(tree)


@command(app, "odf engine prepare")
def prepare(context: typer.Context) -> None:
    """Create the start-up cache now, for images and new machines; otherwise the first idle engine does so."""
    session = session_of(context)
    path, is_new = session.workspace.engines.prepare()
    session.output.info(f"Created the start-up cache {path}" if is_new else f"The start-up cache exists: {path}")


@command(app, "odf engine stop", "odf engine stop --force")
def stop(
    context: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="Stop it even during a job.")] = False,
) -> None:
    """Stop the engine if it is running."""
    session = session_of(context)
    stopped = session.workspace.engines.stop(force=force)
    session.output.info("The engine has stopped" if stopped else "No engine is running")
