"""`odf login`, `odf logout`: manage the tokens sent to servers."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from odfpy.cli.grammar import command, group, session_of
from odfpy.errors import UsageError

commands = group("Access to servers of datasets.")


@command(
    commands,
    "odf login https://data.example.com",
    "odf login https://data.example.com --user ann",
    "odf login https://data.example.com < token.txt",
)
def login(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="The server, or any URL on it.", metavar="URL")],
    token: Annotated[
        str | None,
        typer.Option(
            help="The token; by default ODF_TOKEN, or a prompt. Other users can see it in the process list.",
            metavar="TOKEN",
        ),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Log in as this user, with a password.", metavar="NAME")] = None,
) -> None:
    """Test a token for a server, and store it in a file that only you can read."""
    from odfpy.repository.credentials import VARIABLE, Credentials, check_token, server_of
    from odfpy.repository.login import token_for_password, try_token

    if token is not None and user is not None:
        raise UsageError("--token cannot be combined with --user")
    session = session_of(context)
    server = server_of(url)
    if user is not None:
        text = check_token(token_for_password(server, user, _ask_password(user, server)), f"The answer of {server}")
    elif token is not None:
        text = check_token(token, "--token")
    elif os.environ.get(VARIABLE):
        text = check_token(os.environ[VARIABLE], VARIABLE)
    else:
        text = check_token(_ask(server), "What was typed")
    known = try_token(server, text)
    credentials = Credentials()
    credentials.save(server, text)
    what = f", as {known.name} with the scope {known.scope}" if known else "; the server did not confirm it"
    session.output.info(f"The token for {server} is in {credentials.path}{what}")
    if server.startswith("http://"):
        session.output.info(
            "warning: over http, others on the network can read it; use https if the server supports it"
        )


@command(commands, "odf logout https://data.example.com", "odf logout --all")
def logout(
    context: typer.Context,
    url: Annotated[str | None, typer.Argument(help="The server, or any URL on it.", metavar="URL")] = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="All servers.")] = False,
) -> None:
    """Delete the stored token for a server; it stays valid there until it is revoked."""
    from odfpy.repository.credentials import Credentials, server_of

    if (url is None) == (not all_):
        raise UsageError("No server given", hint="Name one server, or give --all.")
    session = session_of(context)
    credentials = Credentials()
    servers = credentials.servers() if url is None else (server_of(url),)
    for server in servers:
        if not credentials.forget(server):
            raise UsageError(f"No token is kept for {server}", hint=_describe_token(credentials.servers()))
        session.output.info(f"Deleted the token for {server}")
    if not servers:
        session.output.info("No tokens are kept.")


def _describe_token(servers: tuple[str, ...]) -> str:
    return f"Tokens are kept for {', '.join(servers)}." if servers else "No tokens are kept."


def _ask_password(user: str, server: str) -> str:
    from odfpy.cli.passwords import piped_password, typed_password

    return typed_password(f"Password of {user} at {server}: ") if sys.stdin.isatty() else piped_password()


def _ask(server: str) -> str:
    """Read the token from the terminal or from a pipe."""
    if not sys.stdin.isatty():
        from odfpy.cli.stdin import line_of_stdin

        return line_of_stdin()
    from getpass import getpass

    return getpass(f"Token for {server}: ", sys.stderr)
