"""`odf ui`: show the pages of this workspace in the browser, on this machine only."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Final

import typer

from odfpy.cli.grammar import command, group, port_number, session_of

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

commands = group("Web interface.")

_PREFIX: Final = "ui-"
_LIFETIME: Final = 24 * 60 * 60


@command(commands, "odf ui", "odf ui --no-browser --port 8090")
def ui(
    context: typer.Context,
    port: Annotated[str, typer.Option(help="Port to listen at; by default a free one.", metavar="PORT")] = "0",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link.")] = False,
) -> None:
    """Open the workspace in the browser: start a server on this machine, and sign in. Ctrl-C stops it."""
    from odfpy.extras import needs_extra

    session = session_of(context)
    number = port_number(port, "--port")
    with needs_extra("serve", "Servers"):
        from odfpy.serving.callers.sessions import SignInTickets
        from odfpy.serving.http.listen_address import ListenAddress
        from odfpy.serving.server import serve
        from odfpy.serving.settings import ServeSettings
    output, tickets = session.output, SignInTickets()
    with _token(session.workspace) as token:

        def print_link(url: str, _flight: str | None) -> None:
            output.text(f"{url}/ui/open?ticket={tickets.issue(token)}")
            output.info(
                "The link works once, within a minute, and signs you in. Ctrl-C stops the server and the session."
            )
            output.flush()
            if not no_browser:
                _open_browser(f"{url}/ui/open?ticket={tickets.issue(token)}")

        serve(
            [session.workspace],
            ListenAddress("127.0.0.1", number),
            ServeSettings.configured(session.workspace.config, grace=2),
            quiet=True,
            tickets=tickets,
            on_listening=print_link,
        )


@contextmanager
def _token(workspace: Workspace) -> Iterator[str]:
    """Create an access token with all rights while the server runs. It expires after a day if the process is killed."""
    from odfpy.data.duration import Duration
    from odfpy.data.timestamp import Timestamp
    from odfpy.errors import OdfError
    from odfpy.serving.callers.tokens import Scope, Tokens

    tokens, now = Tokens(workspace.odf), Timestamp.now()
    for left in tokens.list():
        if left.name.startswith(_PREFIX) and left.is_over(now):
            tokens.revoke(left.name)
    name = f"{_PREFIX}{secrets.token_hex(4)}"
    text = tokens.new(name, Scope.ADMIN, Duration(_LIFETIME))
    try:
        yield text
    finally:
        with suppress(OdfError):
            tokens.revoke(name)


def _open_browser(url: str) -> None:
    """Ask the desktop to open its browser. If there is none, users can open the printed link."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
