"""`odf search`: search repositories for datasets."""

from __future__ import annotations

from typing import Annotated

import typer

from odfpy.cli.grammar import Form, command, complete_repositories, group, session_of

commands = group("What repositories have.")


@command(
    commands,
    "odf search rates",
    "odf search --repo mirror",
    "odf search weather --repo s3://public-data --output json",
)
def search(
    context: typer.Context,
    text: Annotated[
        str | None,
        typer.Argument(help="Words that must all be in the name, description or keywords.", metavar="TEXT"),
    ] = None,
    repo: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this repository: name, path or URL; repeatable.",
            metavar="REPOSITORY",
            autocompletion=complete_repositories,
        ),
    ] = None,
    form: Form = None,
) -> int:
    """Search repositories for datasets; without TEXT, list all."""
    session = session_of(context)
    output = session.output_as(form)
    found, problems = session.workspace.remotes.search(text or "", repo or ())
    records = [
        {
            "ref": item.ref,
            "url": item.public_url,
            "kind": item.dataset.kind,
            "head": item.dataset.head,
            "num_blocks": item.dataset.num_blocks,
            "num_records": item.dataset.num_records,
            "watermark": item.dataset.watermark,
            "description": item.dataset.description,
            "keywords": list(item.dataset.keywords),
        }
        for item in found
    ]
    columns = {"Dataset": "ref", "Kind": "kind", "Blocks": "num_blocks", "Records": "num_records"}
    if records or not output.for_people:
        output.records(records, {**columns, "Watermark": "watermark"})
    elif not problems:
        output.info(
            f"No dataset has {text!r} in its name, description or keywords."
            if text
            else "The repository has no datasets."
        )
    for problem in problems:
        output.error(problem.message, problem.hint, problem.code)
    return 1 if problems else 0
