"""`odf relay serve`: answer queries over Arrow Flight with mTLS."""

from __future__ import annotations

from typing import Annotated

import typer

from odfpy.cli.grammar import port_number, session_of
from odfpy.cli.relay.opening import relay_of
from odfpy.errors import UsageError
from odfpy.stopping import wait_for_stop_signal

_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - to distinguish them from reachable addresses


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Name or address to listen at.", metavar="HOST")] = "127.0.0.1",
    port: Annotated[str, typer.Option(help="Port to listen at; 0 for a free one.", metavar="PORT")] = "50051",
    public: Annotated[
        str | None,
        typer.Option(
            help="Public address of the relay, if it differs from the address that it listens on.", metavar="HOST:PORT"
        ),
    ] = None,
) -> None:
    """Answer queries of users and peers, who authenticate with certificates, until Ctrl-C or SIGTERM."""
    from odfpy.extras import needs_extra

    number = port_number(port, "--port")
    if host in _EVERYWHERE and public is None:
        raise UsageError("A relay that listens on all addresses needs --public", hint="--public HOST:PORT")
    with needs_extra("federation", "Relays"):
        from odfpy.serving.http.logs import set_up_logging
        from odfpy.serving.relay.running import relay_server
        from odfpy.serving.settings import ServeSettings
    session = session_of(context)
    settings = ServeSettings.configured(session.workspace.config)
    with relay_of(context) as relay:
        running = relay_server(
            relay.workspace, relay.identity, relay.store, settings, host=host, port=number, public=public
        )
        with running as server:
            set_up_logging(quiet=session.output.verbosity.value < 0)
            session.output.text(f"The relay {relay.identity.name} answers at {server.location}")
            session.output.info("Ctrl-C ends it.")
            session.output.flush()
            wait_for_stop_signal(lambda: session.output.detail("ending"))
