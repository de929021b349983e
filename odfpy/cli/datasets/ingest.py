"""`odf pull` and `odf ingest`: bring data in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from odfpy.cli.grammar import (
    All,
    AllowFuture,
    Files,
    Form,
    Name,
    Recursive,
    Wait,
    command,
    complete_sources,
    group,
    session_of,
)
from odfpy.cli.screen.plans import print_plans
from odfpy.cli.screen.profile import measure
from odfpy.cli.screen.results import NO_DATASETS, report
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.cli.screen.output import Output
    from odfpy.cli.screen.profile import CommandProfile
    from odfpy.cli.session import Session
    from odfpy.coordinator.requests import PullRequest

commands = group("Ingest.")

Branch = Annotated[
    str | None,
    typer.Option("--branch", "-b", help="Stage new data on this branch; see `odf diff`.", metavar="BRANCH"),
]


Profile = Annotated[bool, typer.Option("--profile", help="Also print a profile of the time, stage by stage.")]
AllowRetractions = Annotated[
    bool, typer.Option("--allow-retractions", help="Let a snapshot retract any number of rows.")
]


@command(
    commands,
    "odf pull com.example.rates",
    "odf pull --all",
    "odf pull --all --dry-run",
    "odf pull mirror/com.example.rates --as com.example.copy",
    "odf pull https://data.example.com/com.example.rates --follow",
    "odf pull com.example.rates --set-watermark 2024-03-01",
)
def pull(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names, ids, patterns, repository/name (or a pattern) or URLs.",
            metavar="NAME",
            autocompletion=complete_sources,
        ),
    ] = None,
    all_: All = False,
    recursive: Recursive = False,
    force: Annotated[bool, typer.Option("--force", help="Fetch again; overwrite copies that have diverged.")] = False,
    fetch_uncacheable: Annotated[
        bool,
        typer.Option("--fetch-uncacheable", help="Also re-fetch sources that report no ETag or modification time."),
    ] = False,
    as_name: Annotated[str | None, typer.Option("--as", help="Local name of a copy.", metavar="NAME")] = None,
    reset_derivatives: Annotated[
        bool,
        typer.Option(
            "--reset-derivatives-on-diverged-input",
            help="Recompute derivatives whose inputs were compacted, reset or overwritten.",
        ),
    ] = False,
    set_watermark: Annotated[
        str | None, typer.Option(help="Declare that no more rows at or before this time will arrive.", metavar="TIME")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be fetched.")] = False,
    branch: Branch = None,
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="For copies, also this tag; repeatable.", metavar="TAG")
    ] = None,
    allow_retractions: AllowRetractions = False,
    allow_future: AllowFuture = False,
    files: Files = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Keep running, and pull copies whenever their origin has new blocks, until Ctrl-C."
        ),
    ] = False,
    profile: Profile = False,
    wait: Wait = None,
    form: Form = None,
) -> int:
    """Bring datasets up to date from their sources, inputs or origins."""
    session = session_of(context)
    measured = measure(context, session.began) if profile else None
    session.wait_for_locks(wait)
    output = session.output_as(form)
    workspace = session.workspace
    given = {
        "--follow": follow,
        "--profile": profile,
        "--tag": bool(tags),
        "--branch": branch is not None,
        "--set-watermark": set_watermark is not None,
        "--dry-run": dry_run,
        "--as": bool(as_name),
        "--all": all_,
        "--recursive": recursive,
        "--force": force,
        "--fetch-uncacheable": fetch_uncacheable,
        "--reset-derivatives-on-diverged-input": reset_derivatives,
        "--allow-retractions": allow_retractions,
        "--allow-future": allow_future,
        "not one dataset": len(names or ()) != 1,
    }
    _check_options({option for option, is_given in given.items() if is_given})
    if set_watermark is None:
        from odfpy.coordinator.requests import PullRequest

        request = PullRequest.of(
            names or (),
            all=all_,
            recursive=recursive,
            force=force,
            fetch_uncacheable=fetch_uncacheable,
            as_name=as_name,
            reset_derivatives=reset_derivatives,
            branch=branch,
            files=files,
            tags=tags or (),
            allow_retractions=allow_retractions,
            allow_future=allow_future,
        )
        if dry_run:
            return print_plans(workspace.updates.plan_pull(request, session.progress), output, session.progress)
        if follow:
            return _follow(session, request, output, measured)
        results = workspace.updates.pull(request, session.progress)
        if output.for_people and not all_ and sys.stdin.isatty():
            from odfpy.cli.workspace.source import asking

            results = asking(session, results, request)
        return report(results, output, session.progress, if_none=NO_DATASETS, profile=measured)
    from odfpy.data.timestamp import Timestamp

    [name] = list(names or [])
    return report([workspace.updates.set_watermark(name, Timestamp.parse(set_watermark))], output, session.progress)


_EXCLUDING: Final = (
    ("--follow cannot be combined with --dry-run or --set-watermark", "--follow", ("--dry-run", "--set-watermark")),
    ("--profile cannot be combined with --dry-run or --set-watermark", "--profile", ("--dry-run", "--set-watermark")),
    (
        "--tag cannot be combined with --dry-run, --follow or --set-watermark",
        "--tag",
        ("--dry-run", "--follow", "--set-watermark"),
    ),
    (
        "--branch cannot be combined with --dry-run, --follow, --as or --set-watermark",
        "--branch",
        ("--dry-run", "--follow", "--as", "--set-watermark"),
    ),
    (
        "--set-watermark takes exactly one dataset, and no other option",
        "--set-watermark",
        (
            "not one dataset",
            "--all",
            "--recursive",
            "--force",
            "--fetch-uncacheable",
            "--as",
            "--reset-derivatives-on-diverged-input",
            "--dry-run",
            "--allow-retractions",
            "--allow-future",
        ),
    ),
)
"""Messages for options of `odf pull` that exclude each other; the first match is used."""


def _check_options(given: set[str]) -> None:
    """Check that no mutually exclusive options of `odf pull` are given.

    Raises:
        UsageError: mutually exclusive options are given.
    """
    for message, option, excluded in _EXCLUDING:
        if option in given and not given.isdisjoint(excluded):
            raise UsageError(message)


def _follow(session: Session, request: PullRequest, output: Output, measured: CommandProfile | None) -> int:
    following = session.workspace.updates.follow(request, progress=session.progress)
    output.info("Following; Ctrl-C ends it")
    code = report(following.run(), output, session.progress, profile=measured)
    output.info("No longer following")
    return code


@command(
    commands,
    "odf ingest com.example.rates monday.csv tuesday.csv",
    "odf ingest com.example.rates --watch inbox/",
    "curl https://example.com/rates.ndjson | odf ingest com.example.rates --stdin --input-format ndjson",
)
def ingest(
    context: typer.Context,
    name: Name,
    files: Annotated[list[str] | None, typer.Argument(help="Files, one commit each.", metavar="FILE")] = None,
    stdin: Annotated[bool, typer.Option("--stdin", help="Read from standard input.")] = False,
    watch: Annotated[
        str | None,
        typer.Option(
            help="Ingest files of this folder as they arrive, until Ctrl-C; also 'FOLDER/*.csv', in quotes.",
            metavar="FOLDER",
        ),
    ] = None,
    source_name: Annotated[
        str | None, typer.Option(help="The push source, if there are several.", metavar="NAME")
    ] = None,
    event_time: Annotated[str | None, typer.Option(help="Event time of rows without one.", metavar="TIME")] = None,
    input_format: Annotated[
        str | None,
        typer.Option(
            help="Format of the files, if not that of the source.",
            metavar="csv|json|ndjson|geojson|ndgeojson|esrishapefile|parquet",
            autocompletion=lambda: ["csv", "json", "ndjson", "geojson", "ndgeojson", "esrishapefile", "parquet"],
        ),
    ] = None,
    branch: Branch = None,
    allow_retractions: AllowRetractions = False,
    profile: Profile = False,
    wait: Wait = None,
    form: Form = None,
) -> int:
    """Ingest files or standard input into a dataset."""
    from odfpy.coordinator.ingest.ingest_request import IngestRequest
    from odfpy.data.timestamp import Timestamp

    session = session_of(context)
    measured = measure(context, session.began) if profile else None
    session.wait_for_locks(wait)
    output = session.output_as(form)
    request = IngestRequest.of(
        name,
        files or (),
        stdin=sys.stdin.buffer if stdin else None,
        source_name=source_name,
        event_time=Timestamp.parse(event_time) if event_time else None,
        input_format=input_format,
        branch=branch,
        allow_retractions=allow_retractions,
    )
    if watch is None:
        results = session.workspace.updates.ingest(request, session.progress)
        return report(results, output, session.progress, profile=measured)
    if files or stdin or branch:
        raise UsageError(
            "--watch cannot be combined with files, --stdin or --branch", hint="odf ingest NAME --watch FOLDER"
        )
    folder, pattern = _folder_and_pattern(watch)
    results = session.workspace.updates.watch(request, folder, pattern=pattern, progress=session.progress)
    output.info(f"Watching {watch} for {name}; Ctrl-C ends it")
    code = report(results, output, session.progress, profile=measured)
    output.info("No longer watching")
    return code


def _folder_and_pattern(place: str) -> tuple[Path, str]:
    path = Path(place)
    return (path.parent, path.name) if set(path.name) & set("*?[") and not path.is_dir() else (path, "*")
