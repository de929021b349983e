"""`odf new` and `odf add`: write manifests, and create datasets from them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.grammar import Form, Wait, command, group, session_of
from odfpy.cli.screen.results import print_counts
from odfpy.cli.screen.terminal import paint
from odfpy.errors import AlreadyExists, OdfError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odfpy.cli.screen.output import Output
    from odfpy.coordinator.storage.results import AddResult

commands = group("Manifests.")


@command(
    commands,
    "odf new com.example.rates",
    "odf new --from rates-2024.csv",
    "odf new com.example.rates --from https://example.com/rates.csv",
    "odf new com.example.big-trades --derivative --file trades.yaml",
)
def new(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(help="Name of the new dataset; with --from, by default that of the file.", metavar="NAME"),
    ] = None,
    root: Annotated[bool, typer.Option("--root", help="A root dataset, with data from outside (default).")] = False,
    derivative: Annotated[
        bool, typer.Option("--derivative", help="A derivative dataset, computed from other datasets.")
    ] = False,
    place: Annotated[
        str | None,
        typer.Option("--from", help="Infer it from a file, a folder, a file pattern or a URL.", metavar="SOURCE"),
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="File to write; `-` for standard output.", metavar="PATH")
    ] = None,
    form: Form = None,
) -> None:
    """Write a commented manifest to start from."""
    from odfpy.coordinator.template_manifest import template
    from odfpy.dataset.kind import DatasetKind

    if root and derivative:
        raise UsageError("--root cannot be combined with --derivative")
    session = session_of(context)
    output = session.output_as(form)
    if place is not None:
        if derivative:
            raise UsageError("--from is for root datasets", hint="A derivative gets its data from other datasets.")
        _new_from(place, name, file, Path(session.folder), output)
        return
    if name is None:
        raise UsageError("The dataset needs a name", hint="Write `odf new NAME`, or `odf new --from FILE`.")
    text = template(name, DatasetKind.DERIVATIVE if derivative else DatasetKind.ROOT)
    if file == "-":
        output.text(text.rstrip("\n"))
        return
    target = Path(file or f"{name}.yaml")
    _write(target, text)
    output.info(f"Wrote {target}; edit it, then run `odf add {target}`")


def _new_from(place: str, name: str | None, file: str | None, folder: Path, output: Output) -> None:
    """Infer a manifest, write it, and show the first rows that it would produce."""
    from odfpy.coordinator.inferring import infer_manifest, name_for

    target = None if file == "-" else Path(file or f"{name or name_for(place)}.yaml")
    if target is not None and target.exists():  # check before fetching something large
        raise _taken(target)
    found = infer_manifest(place, name, folder)
    if target is not None:
        _write(target, found.text)
    if not output.for_people:
        from odfpy.data.rows.plain_values import columns_of, plain

        names = found.rows.column_names
        rows = [dict(zip(names, map(plain, row), strict=True)) for row in zip(*columns_of(found.rows), strict=True)]
        written = None if target is None else str(target)
        output.tree({"name": found.name, "file": written, "manifest": found.text, **found.findings, "firstRows": rows})
    elif target is None:
        output.text(found.text.rstrip("\n"))
    else:
        output.arrow(found.rows)
        for remark in _remarks(found.findings):
            output.info(f"note: {remark}")
        output.info(f"Wrote {target}; read it, then run `odf add {target}`, `odf pull {found.name}`")


def _remarks(findings: dict[str, Any]) -> Iterator[str]:
    """Yield the most important remarks for the user; the manifest has all of them."""
    if not findings["isWhole"]:
        yield f"only the first {findings['rows']} rows were looked at; later rows may not fit, or have earlier times"
    yield from findings["remarks"]
    if findings["leftOut"]:
        yield f"omitted, since no column type fits: {', '.join(repr(one['name']) for one in findings['leftOut'])}"


def _write(target: Path, text: str) -> None:
    """Write a new file; remove it if it cannot be written completely.

    Raises:
        AlreadyExists: the file exists.
        OdfError: the file cannot be written.
    """
    try:
        stream = target.open("x", encoding="utf-8")
    except FileExistsError:
        raise _taken(target) from None
    except OSError as error:
        raise _cannot_write(target, error) from error
    try:
        with stream:
            stream.write(text)
    except OSError as error:
        target.unlink(missing_ok=True)
        raise _cannot_write(target, error) from error


def _taken(target: Path) -> AlreadyExists:
    return AlreadyExists(f"{target} already exists", hint="Choose another file with --file.")


def _cannot_write(target: Path, error: OSError) -> OdfError:
    return OdfError(f"Cannot write {target}: {error.strerror}", hint="Choose another file with --file.")


@command(commands, "odf add rates.yaml", "odf add --recursive snapshots/", "odf add --replace - < rates.yaml")
def add(
    context: typer.Context,
    manifests: Annotated[
        list[str], typer.Argument(help="YAML files, URLs, folders with -r, `-` for standard input.", metavar="FILE")
    ],
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Add all manifests in folders; existing datasets stay unchanged.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Also change existing datasets; their history stays.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check the manifests.")] = False,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Approve sources of manifests from a URL; `odf source list` shows them."),
    ] = False,
    wait: Wait = None,
    form: Form = None,
) -> None:
    """Create datasets from manifests, in dependency order; none if a manifest is invalid."""
    from odfpy.coordinator.manifests import is_from_elsewhere

    session = session_of(context)
    session.wait_for_locks(wait)
    output = session.output_as(form)
    workspace = session.workspace
    snapshots = workspace.datasets.load(manifests, recursive=recursive, stdin=sys.stdin.buffer)
    approve = trust or not any(map(is_from_elsewhere, manifests))
    # A folder of manifests may grow, so manifests of existing datasets are no error.
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
        _print(result, output, dry_run=dry_run)
    print_counts([result.outcome.value for result in results], output)


def _print(result: AddResult, output: Output, *, dry_run: bool) -> None:
    from odfpy.coordinator.storage.results import AddOutcome

    would = "would be " if dry_run else ""
    output.info(f"{result.handle}: {result.kind.value.lower()} dataset {would}{result.outcome.value}")
    if result.outcome is AddOutcome.KEPT:
        output.info("  note: the manifest differs from the dataset; --replace applies it:")
    for line in result.changes:
        colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
        output.info(f"    {paint(line, colour, sys.stderr)}")
    for note in result.notes:
        output.info(f"  note: {note}")
