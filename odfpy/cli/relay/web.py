"""`odf web`: questions to a web of relays."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of, whole_number
from odfpy.extras import needs_extra

if TYPE_CHECKING:
    from odfpy.federation.client import Web

app = group("A web of relays: one question over the data of all of them.")

Relay = Annotated[str, typer.Option(envvar="ODF_WEB_RELAY", help="The relay that is asked.", metavar="URL")]
Cert = Annotated[str, typer.Option(envvar="ODF_WEB_CERT", help="One's certificate, PEM.", metavar="FILE")]
Key = Annotated[str, typer.Option(envvar="ODF_WEB_KEY", help="The key of that, PEM.", metavar="FILE")]
Authorities = Annotated[
    str, typer.Option("--ca", envvar="ODF_WEB_CA", help="The authorities of the relays, PEM.", metavar="FILE")
]
Timeout = Annotated[str, typer.Option(help="Seconds for all of it.", metavar="SECONDS")]


@command(
    app,
    "odf web sql 'select count(*) from lineitem' --relay grpc+tls://na:50051 --cert ann.pem --key ann.key --ca ca.pem",
    "odf web sql 'select 1 as one' -o csv --relay grpc+tls://na:50051 --cert a.pem --key a.key --ca ca.pem",
)
def sql(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="SQL over the entities of the relay.", metavar="SQL")],
    relay: Relay,
    cert: Cert,
    key: Key,
    ca: Authorities,
    require_complete: Annotated[
        bool, typer.Option("--require-complete", help="Fail if the rows of a relay are missing.")
    ] = False,
    timeout: Timeout = "60",
    form: Form = None,
) -> None:
    """Ask a query; relays whose rows are missing are told."""
    output = session_of(context).output_as(form)
    seconds = whole_number(timeout, "--timeout", at_least=1) or 1
    with closing(_connected(relay, cert, key, ca)) as web:
        with web.sql(query, require_complete=require_complete, seconds=seconds) as answer:
            table = answer.to_arrow()
        output.arrow(table)
        for one in answer.missing:
            output.warn(f"the rows of {one.relay} are missing: {one.why}")
        output.detail(f"rows of {len(answer.relays)} sources: {', '.join(sorted(set(answer.relays)))}")


@command(app, "odf web entities --relay grpc+tls://na:50051 --cert ann.pem --key ann.key --ca ca.pem")
def entities(context: typer.Context, relay: Relay, cert: Cert, key: Key, ca: Authorities, form: Form = None) -> None:
    """List the entities of a relay, and their columns."""
    output = session_of(context).output_as(form)
    with closing(_connected(relay, cert, key, ca)) as web:
        found = [
            {"entity": name, "column": field.name, "type": str(field.type)}
            for name, schema in sorted(web.entities().items())
            for field in schema
        ]
    output.records(found, {"Entity": "entity", "Column": "column", "Type": "type"})


def _connected(relay: str, cert: str, key: str, ca: str) -> Web:
    with needs_extra("federation", "A web of relays"):
        from odfpy.federation.client import connect
    return connect(relay, cert, key, ca)
