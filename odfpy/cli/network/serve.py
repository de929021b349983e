"""`odf serve`: serve datasets over HTTP. `odf set-visibility`: choose which of them need no token."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import command, complete_names, group, port_number, session_of, whole_number
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.cli.session import Session
    from odfpy.coordinator.workspace import Workspace
    from odfpy.serving.http.mounted_apps import MountedAppFactory

commands = group("Datasets for others.")

_LOCAL = ("127.0.0.1", "localhost", "::1")


@command(
    commands,
    "odf serve",
    "odf serve --host 0.0.0.0 --port 443 --tls-cert chain.pem --tls-key key.pem",
    "odf serve --also /srv/other-workspace",
    "odf serve --flight-port 50050",
    "odf serve --mcp",
    "odf serve --run",
)
def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Name or address to listen at.", metavar="HOST")] = "127.0.0.1",
    port: Annotated[str, typer.Option(help="Port to listen at; 0 for a free one.", metavar="PORT")] = "8080",
    also: Annotated[
        list[str] | None,
        typer.Option(help="Also serve the datasets of another workspace; repeatable.", metavar="FOLDER"),
    ] = None,
    tls_cert: Annotated[
        str | None, typer.Option(help="Certificate chain (PEM); enables HTTPS.", metavar="FILE")
    ] = None,
    tls_key: Annotated[str | None, typer.Option(help="Key of the certificate (PEM).", metavar="FILE")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="URL that clients use, if a proxy is in front of the server.", metavar="URL")
    ] = None,
    flight_port: Annotated[
        str | None,
        typer.Option(help="Also answer queries over Flight SQL, at this port; 0 for a free one.", metavar="PORT"),
    ] = None,
    with_mcp: Annotated[
        bool, typer.Option("--mcp", help="Also serve agents over the Model Context Protocol, at /mcp.")
    ] = False,
    scheduled: Annotated[bool, typer.Option("--run", help="Also run the scheduler, like `odf run`.")] = False,
    max_connections: Annotated[
        str, typer.Option(help="Maximum number of simultaneous connections.", metavar="N")
    ] = "2000",
    grace: Annotated[
        str, typer.Option(help="How many seconds requests may take to finish when the server stops.", metavar="SECONDS")
    ] = "30",
) -> None:
    """Serve the datasets of this workspace over HTTP. Private ones need a token, see `odf token`."""
    if (tls_cert is None) != (tls_key is None):
        raise UsageError("A certificate needs its key", hint="Give both --tls-cert and --tls-key.")
    number = port_number(port, "--port")
    flight = None if flight_port is None else port_number(flight_port, "--flight-port")
    from odfpy.extras import needs_extra

    session = session_of(context)
    workspaces = _workspaces(session, also or [])
    with needs_extra("serve", "Servers"):
        from odfpy.serving.callers.engines import warning
        from odfpy.serving.http.listen_address import ListenAddress
        from odfpy.serving.http.tls import Tls
        from odfpy.serving.notifications.runs import logged_runs
        from odfpy.serving.server import serve as run
        from odfpy.serving.settings import ServeSettings, checked_url
    mounted_apps = _agents(workspaces) if with_mcp else {}
    settings = ServeSettings.configured(
        session.workspace.config,
        base_url=base_url and checked_url(base_url),
        max_connections=whole_number(max_connections, "--max-connections", at_least=1) or 1,
        grace=whole_number(grace, "--grace") or 0,
    )
    tls = Tls(Path(tls_cert), Path(tls_key)) if tls_cert and tls_key else None
    output = session.output
    unconfined = warning(workspaces[0])

    def print_urls(url: str, flight_url: str | None) -> None:
        output.text(f"Serving {_counted(workspaces)} at {url}")
        if flight_url is not None:
            output.text(f"Flight SQL at {flight_url}")
        for path in mounted_apps:
            output.text(f"Agents at {url}{path}")
        if tls is None and host not in _LOCAL:
            output.warn("without --tls-cert and --tls-key, others on the network can read tokens and data")
        if unconfined is not None:
            output.warn(unconfined)
        output.info(f"Web interface: {url}/ui, API: {url}/docs. Ctrl-C stops the server.")
        output.flush()

    quiet = output.verbosity.value < 0
    run(
        workspaces,
        ListenAddress(host, number, tls),
        settings,
        flight_port=flight,
        quiet=quiet,
        mounted_apps=mounted_apps,
        listener=logged_runs() if scheduled else None,
        on_listening=print_urls,
    )


def _workspaces(session: Session, others: list[str]) -> list[Workspace]:
    from odfpy.coordinator.workspace import Workspace

    found = [session.workspace, *map(Workspace.open, others)]
    return list({workspace.root: workspace for workspace in found}.values())


def _agents(workspaces: list[Workspace]) -> dict[str, MountedAppFactory]:
    from odfpy.extras import needs_extra

    with needs_extra("mcp", "Servers for agents"):
        from odfpy.agents.http import PATH, McpApp
    return {PATH: lambda app: McpApp(app, workspaces)}


def _counted(workspaces: list[Workspace]) -> str:
    from odfpy.serving.callers.visibility import Visibility, visibility_of

    datasets = [dataset for workspace in workspaces for dataset in workspace.storage.datasets()]
    public = sum(visibility_of(dataset.folder) is Visibility.PUBLIC for dataset in datasets)
    return f"{len(datasets)} dataset{'s' * (len(datasets) != 1)}, {public} of them public,"


@command(
    commands,
    "odf set-visibility com.example.rates public",
    "odf set-visibility com.example.% private",
    name="set-visibility",
)
def set_visibility(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(help="Name, id or pattern (com.example.%).", metavar="NAME", autocompletion=complete_names),
    ],
    visibility: Annotated[
        str,
        typer.Argument(
            help="public: anyone may read it. private: only with a token.",
            metavar="public|private",
            autocompletion=lambda: ["public", "private"],
        ),
    ],
) -> None:
    """Make datasets of `odf serve` public or private; by default, they are private."""
    from odfpy.serving.callers.visibility import Visibility
    from odfpy.serving.callers.visibility import set_visibility as decide

    session = session_of(context)
    wanted = Visibility.parse(visibility)
    for dataset in session.workspace.storage.match([name]):
        decide(dataset.folder, wanted)
        session.output.info(f"{dataset.handle} is {wanted.value}")
