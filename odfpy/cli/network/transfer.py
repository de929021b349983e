"""`odf clone` and `odf push`: copy datasets from and to other locations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odfpy.cli.grammar import (
    All,
    AllowFuture,
    Files,
    Form,
    Names,
    Recursive,
    command,
    complete_repositories,
    group,
    session_of,
)
from odfpy.cli.screen.results import NO_DATASETS, report

commands = group("Transfers.")


@command(
    commands,
    "odf clone https://example.com/odf/com.example.rates",
    "odf clone s3://public-data/com.example.daily rates --recursive",
    "odf clone https://example.com/odf/com.example.logs --files what=syslog",
)
def clone(
    context: typer.Context,
    place: Annotated[str, typer.Argument(help="URL or path of a dataset, or repository/name.", metavar="REMOTE")],
    folder: Annotated[
        str | None,
        typer.Argument(help="Folder of the new workspace; by default the name of the dataset.", metavar="FOLDER"),
    ] = None,
    as_: Annotated[str | None, typer.Option("--as", help="Local name of the dataset.", metavar="NAME")] = None,
    recursive: Annotated[
        bool,
        typer.Option(
            "--recursive", "-r", help="Also copy the datasets that it is derived from, from the same repository."
        ),
    ] = False,
    allow_future: AllowFuture = False,
    files: Files = None,
    form: Form = None,
) -> int:
    """Copy a dataset into a new workspace."""
    from odfpy.coordinator.clone import clone, dataset_url, resume_command
    from odfpy.coordinator.requests import PullRequest

    session = session_of(context)
    output = session.output_as(form)
    url = dataset_url(place, Path(session.folder))
    target = Path(folder or url.rpartition("/")[2])
    request = PullRequest.of([url], as_name=as_, recursive=recursive, allow_future=allow_future, files=files)
    results = clone(request, target, progress=session.progress)
    code = report(results, output, session.progress)
    if code == 0:
        output.info(f"Created the workspace {target}")
    elif target.joinpath(".odf").exists():
        output.info(f"Received data is kept; to continue: {resume_command(url, target)}")
    return code


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
            help="Repository, repository/name, path or URL; remembered for the next push.",
            metavar="REPOSITORY",
            autocompletion=complete_repositories,
        ),
    ] = None,
    all_: All = False,
    recursive: Recursive = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a copy that has diverged.")] = False,
    public: Annotated[
        bool, typer.Option("--public", help="Make new datasets on a node (odf+http, odf+https) public.")
    ] = False,
    branches: Annotated[
        list[str] | None, typer.Option("--branch", "-b", help="Also this branch; repeatable.", metavar="BRANCH")
    ] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Also this tag; repeatable.", metavar="TAG")] = None,
    files: Files = None,
    form: Form = None,
) -> int:
    """Copy datasets to a repository. A path or URL that ends with a slash is a repository."""
    from odfpy.coordinator.requests import PushRequest

    session = session_of(context)
    output = session.output_as(form)
    workspace = session.workspace
    request = PushRequest(
        refs=tuple(names or ()),
        to=to,
        all=all_,
        recursive=recursive,
        force=force,
        public=public,
        branches=tuple(branches or ()),
        tags=tuple(tags or ()),
        files=files,
    )
    results = workspace.remotes.push(request, session.progress)
    return report(results, output, session.progress, if_none=NO_DATASETS)
