"""`odf new` and `odf add`: manifests, and the datasets that are made of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import Form, Wait, command, group, session_of
from odfpy.cli.screen.results import tell_counts
from odfpy.cli.screen.terminal import paint
from odfpy.errors import AlreadyExists, OdfError, UsageError

if TYPE_CHECKING:
    from odfpy.cli.screen.output import Output
    from odfpy.coordinator.storage.results import AddResult

commands = group("Manifests.")


@command(commands, "odf new com.example.rates", "odf new com.example.big-trades --derivative --file trades.yaml")
def new(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the dataset to be.", metavar="NAME")],
    root: Annotated[bool, typer.Option("--root", help="Takes in outside data (default).")] = False,
    derivative: Annotated[bool, typer.Option("--derivative", help="Computed from other datasets.")] = False,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="Where to write it, `-` for the screen.", metavar="PATH")
    ] = None,
) -> None:
    """Write a commented manifest to start from."""
    from odfpy.coordinator.template_manifest import template
    from odfpy.dataset.kind import DatasetKind

    if root and derivative:
        raise UsageError("A dataset is either --root or --derivative")
    output = session_of(context).output
    text = template(name, DatasetKind.DERIVATIVE if derivative else DatasetKind.ROOT)
    if file == "-":
        output.text(text.rstrip("\n"))
        return
    target = Path(file or f"{name}.yaml")
    try:
        with target.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise AlreadyExists(f"{target} is there already", hint="Choose another file with --file.") from None
    except OSError as error:
        raise OdfError(f"Cannot write {target}: {error.strerror}", hint="Choose another file with --file.") from error
    output.say(f"Wrote {target}; change it, then run `odf add {target}`")


@command(commands, "odf add rates.yaml", "odf add --recursive snapshots/", "odf add --replace - < rates.yaml")
def add(
    context: typer.Context,
    manifests: Annotated[
        list[str], typer.Argument(help="YAML files, URLs, folders with -r, `-` for standard input.", metavar="FILE")
    ],
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="All manifests in folders; datasets that exist stay.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Change datasets that exist; history stays.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check.")] = False,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Let sources of manifests from a URL run here; `odf source list` shows them."),
    ] = False,
    wait: Wait = None,
    form: Form = None,
) -> None:
    """Make datasets of manifests, in dependency order: all of them, or none if anything is wrong."""
    from odfpy.coordinator.manifests import is_from_elsewhere

    session = session_of(context)
    session.wait_for_locks(wait)
    output = session.output_as(form)
    workspace = session.workspace
    snapshots = workspace.datasets.load(manifests, recursive=recursive, stdin=sys.stdin.buffer)
    approve = trust or not any(map(is_from_elsewhere, manifests))
    # A folder of manifests grows: those of datasets that are there already are no mistake.
    results = workspace.datasets.add(snapshots, replace=replace, keep=recursive, dry_run=dry_run, approve=approve)
    if not output.for_people:
        output.tree(
            [
                {
                    "name": str(result.handle),
                    "id": str(result.handle.id),
                    "kind": result.kind.value,
                    "outcome": result.outcome.value,
                    "changes": list(result.changes),
                    "notes": list(result.notes),
                }
                for result in results
            ]
        )
        return
    for result in results:
        _tell(result, output, dry_run=dry_run)
    tell_counts([result.outcome.value for result in results], output)


def _tell(result: AddResult, output: Output, *, dry_run: bool) -> None:
    from odfpy.coordinator.storage.results import AddOutcome

    would = "would be " if dry_run else ""
    output.say(f"{result.handle}: {result.kind.value.lower()} dataset {would}{result.outcome.value}")
    if result.outcome is AddOutcome.KEPT:
        output.say("  note: the manifest is another one than that of the dataset; --replace takes it over:")
    for line in result.changes:
        colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
        output.say(f"    {paint(line, colour, sys.stderr)}")
    for note in result.notes:
        output.say(f"  note: {note}")
