"""`odf token`: access tokens for the datasets of this workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of

app = group("Access tokens for the datasets of this workspace in `odf serve`.")


@command(app, "odf token new ci --scope write --expires 90d", "odf token new alice")
def new(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the token; also appears in logs.", metavar="NAME")],
    scope: Annotated[
        str,
        typer.Option(
            help="read: pull. write: also push. admin: also overwrite diverged datasets, and administer.",
            metavar="read|write|admin",
            autocompletion=lambda: ["read", "write", "admin"],
        ),
    ] = "read",
    expires: Annotated[
        str | None, typer.Option(help="How long it is valid, such as 12h or 90d.", metavar="DURATION")
    ] = None,
) -> None:
    """Create a token and print it once; only its hash is stored."""
    from odfpy.data.duration import Duration
    from odfpy.serving.callers.tokens import Scope, Tokens

    session = session_of(context)
    lifetime = Duration.parse(expires) if expires is not None else None
    text = Tokens(session.workspace.odf).new(name, Scope.parse(scope), lifetime)
    session.output.info("Anyone who has this token can use it; it cannot be shown again:")
    session.output.text(text)


@command(app, "odf token list", name="list")
def list_(context: typer.Context, form: Form = None) -> None:
    """List the tokens: names, scopes and times."""
    from odfpy.data.timestamp import Timestamp
    from odfpy.serving.callers.tokens import Tokens

    session = session_of(context)
    output = session.output_as(form)
    tokens, now = Tokens(session.workspace.odf).list(), Timestamp.now()
    if not tokens and output.for_people:
        output.info("No tokens; create one with `odf token new NAME`.")
        return
    records = [
        {
            "name": token.name,
            "scope": token.scope.value,
            "createdAt": str(token.created_at),
            "expiresAt": str(token.expires_at) if token.expires_at else None,
            "expired": token.is_over(now),
        }
        for token in tokens
    ]
    columns = {"Name": "name", "Scope": "scope", "Created": "createdAt", "Expires": "expiresAt", "Expired": "expired"}
    output.records(records, columns)


@command(app, "odf token revoke ci")
def revoke(
    context: typer.Context, name: Annotated[str, typer.Argument(help="Name of the token.", metavar="NAME")]
) -> None:
    """Revoke a token; servers refuse it from the next request on."""
    from odfpy.serving.callers.tokens import Tokens

    session = session_of(context)
    token = Tokens(session.workspace.odf).revoke(name)
    session.output.info(f"Revoked {token.name}")
