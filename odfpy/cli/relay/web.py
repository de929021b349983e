"""`odf web`: query a web of relays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from odfpy.cli.grammar import Form, command, group, session_of, whole_number
from odfpy.cli.relay.verify import print_kept, verify
from odfpy.errors import ResultTooLarge, UsageError
from odfpy.extras import needs_extra

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.cli.screen.output import Output
    from odfpy.federation.client import Web
    from odfpy.federation.execution.answer import WebAnswer
    from odfpy.federation.relay.question import MissingRelay

app = group("A web of relays: one query over the data of all of them.")
command(app, "odf web verify lineitem --ca ca.pem", "odf web verify lineitem --ca ca.pem -o json")(verify)

Relay = Annotated[str, typer.Option(envvar="ODF_WEB_RELAY", help="URL of the relay to connect to.", metavar="URL")]
Cert = Annotated[str, typer.Option(envvar="ODF_WEB_CERT", help="Your client certificate (PEM).", metavar="FILE")]
Key = Annotated[str, typer.Option(envvar="ODF_WEB_KEY", help="Private key of the certificate (PEM).", metavar="FILE")]
Authorities = Annotated[
    str, typer.Option("--ca", envvar="ODF_WEB_CA", help="Authorities of the relays (PEM).", metavar="FILE")
]
RequireComplete = Annotated[bool, typer.Option("--require-complete", help="Fail if the rows of a relay are missing.")]
Into = Annotated[
    str | None,
    typer.Option(help="Store the answer as a dataset, with the signatures of the relays.", metavar="NAME"),
]
_MAX_TABLE_SIZE: Final = 32 << 20
"""Maximum bytes of Arrow data in a table. As text, they need about thirty times as much memory."""

Timeout = Annotated[str, typer.Option(help="Maximum time for the whole query, in seconds.", metavar="SECONDS")]


@command(
    app,
    "odf web sql 'select count(*) from lineitem' --relay grpc+tls://na:50051 --cert ann.pem --key ann.key --ca ca.pem",
    "odf web sql 'explain analyze select count(*) from lineitem' --relay grpc+tls://na:50051 --cert a.pem --key a.key"
    " --ca ca.pem",
    "odf web sql 'select * from part' --into part --relay grpc+tls://na:50051 --cert a.pem --key a.key --ca ca.pem",
    "odf web sql 'select * from lineitem' --later --relay grpc+tls://na:50051 --cert a.pem --key a.key --ca ca.pem",
)
def sql(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="SQL over the entities of the relay.", metavar="SQL")],
    relay: Relay,
    cert: Cert,
    key: Key,
    ca: Authorities,
    require_complete: RequireComplete = False,
    into: Into = None,
    later: Annotated[
        bool, typer.Option("--later", help="Let relays store the rows; `odf web fetch` downloads them.")
    ] = False,
    signed: Annotated[
        bool, typer.Option("--signed", help="With --later: let relays sign the rows, for `odf web fetch --into`.")
    ] = False,
    timeout: Timeout = "60",
    form: Form = None,
) -> None:
    """Run a query, or EXPLAIN [ANALYZE] one; report relays whose rows are missing."""
    from odfpy.federation.execution.options import QueryOptions

    session = session_of(context)
    output = session.output_as(form)
    if later and into is not None:
        raise UsageError(
            "--into cannot be combined with --later", hint="--later --signed, then `odf web fetch --into`."
        )
    if signed and not later:
        raise UsageError("--signed needs --later", hint="--into always requests signatures.")
    seconds = whole_number(timeout, "--timeout", at_least=1) or 1
    options = QueryOptions(require_complete, seconds, signed=signed)
    with closing(_connected(relay, cert, key, ca)) as web:
        if later:
            begun = web.later.start(query, options)
            output.text(begun.query)
            _warn(output, begun.asked.missing)
            output.info(f"Parts to fetch until {begun.expires}: {len(begun.parts)}. See: odf web status {begun.query}")
            return
        if into is not None:
            print_kept(output, web.sql_into(query, session.workspace, into, options))
            return
        with web.sql(query, require_complete=require_complete, seconds=seconds) as answer:
            _show(output, answer)


@command(
    app,
    "odf web status --relay grpc+tls://na:50051 --cert ann.pem --key ann.key --ca ca.pem",
    "odf web status 5f2c8a9e --relay grpc+tls://na:50051 --cert ann.pem --key ann.key --ca ca.pem",
)
def status(
    context: typer.Context,
    relay: Relay,
    cert: Cert,
    key: Key,
    ca: Authorities,
    query: Annotated[str | None, typer.Argument(help="Id of a query; all by default.", metavar="[ID]")] = None,
    form: Form = None,
) -> None:
    """Show queries of `--later`, or the parts of one."""
    output = session_of(context).output_as(form)
    with closing(_connected(relay, cert, key, ca)) as web:
        if query is None:
            records = [
                {"query": one.query, "at": one.at, "expires": one.expires, "sql": one.asked.sql}
                for one in web.later.all()
            ]
            if not records and output.for_people:
                output.info("The relay has no stored queries of yours; `odf web sql SQL --later` creates one.")
                return
            output.records(records, {"Query": "query", "When": "at", "Until": "expires", "SQL": "sql"})
            return
        found = web.later.find(query)
    parts = [
        {
            "fragment": part.fragment,
            "relay": part.relay,
            "state": part.state,
            "rows": part.rows,
            "bytes": part.bytes,
            "files": len(part.files),
            "why": part.why,
        }
        for part in found.parts
    ]
    columns = {"Part": "fragment", "Relay": "relay", "State": "state", "Rows": "rows", "Bytes": "bytes", "Why": "why"}
    output.records(parts, columns)
    _warn(output, found.asked.missing)
    output.info(f"{found.state}: {found.asked.sql}")


@command(app, "odf web fetch 5f2c8a9e -o csv --relay grpc+tls://na:50051 --cert ann.pem --key ann.key --ca ca.pem")
def fetch(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="Id of the query.", metavar="ID")],
    relay: Relay,
    cert: Cert,
    key: Key,
    ca: Authorities,
    folder: Annotated[
        str | None, typer.Option(help="Keep the downloaded parts in this folder.", metavar="PATH")
    ] = None,
    into: Into = None,
    require_complete: RequireComplete = False,
    timeout: Timeout = "600",
    form: Form = None,
) -> None:
    """Fetch the rows of a query when they are ready; an interrupted fetch resumes."""
    from odfpy.federation.execution.options import QueryOptions

    session = session_of(context)
    output = session.output_as(form)
    options = QueryOptions(require_complete, whole_number(timeout, "--timeout", at_least=1) or 1)
    target = None if folder is None else Path(folder)
    with closing(_connected(relay, cert, key, ca)) as web:
        if into is not None:
            web.check_free(session.workspace, into)
        with web.later.fetch(query, options, folder=target) as answer:
            if into is None:
                _show(output, answer)
            else:
                print_kept(output, web.keep(answer, session.workspace, into, options))
        if target is None:
            web.later.forget_files(query)


@command(app, "odf web cancel 5f2c8a9e --relay grpc+tls://na:50051 --cert ann.pem --key ann.key --ca ca.pem")
def cancel(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="Id of the query.", metavar="ID")],
    relay: Relay,
    cert: Cert,
    key: Key,
    ca: Authorities,
) -> None:
    """Cancel a query; parts that are complete stay until they expire."""
    output = session_of(context).output
    with closing(_connected(relay, cert, key, ca)) as web:
        found = web.later.cancel(query)
    stopped = sum(part.state == "cancelled" for part in found.parts)
    output.info(f"Cancelled {stopped} of {len(found.parts)} parts; the others had already ended")


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


def _show(output: Output, answer: WebAnswer) -> None:
    """Print the rows of an answer and the missing relays; rows are streamed where the form allows it.

    Raises:
        ResultTooLarge: the answer is too large for the form.
    """
    if output.is_streamed:
        output.flow(answer.schema.names, _plain_rows(answer))
    else:
        output.arrow(_table(answer))
    _warn(output, answer.missing)
    output.detail(f"rows of {len(answer.relays)} sources: {', '.join(sorted(set(answer.relays)))}")


def _plain_rows(answer: WebAnswer) -> Iterator[tuple[Any, ...]]:
    import pyarrow as pa

    from odfpy.data.rows.plain_values import columns_of

    for batch in answer:
        yield from zip(*columns_of(pa.Table.from_batches([batch])), strict=True)


def _table(answer: WebAnswer) -> pa.Table:
    """Return all rows at once, since column widths depend on all of them."""
    import pyarrow as pa

    from odfpy.data.memory import bytes_of

    batches, size = [], 0
    for batch in answer:
        batches.append(batch)
        size += bytes_of(batch)
        if size > _MAX_TABLE_SIZE:
            raise ResultTooLarge(
                f"The answer has more than {_MAX_TABLE_SIZE >> 20} MiB, too much for a table",
                hint="`-o csv`, `-o ndjson` and `-o json` print rows as they come. Or ask for less: LIMIT.",
            )
    return pa.Table.from_batches(batches, answer.schema)


def _warn(output: Output, missing: Sequence[MissingRelay]) -> None:
    for one in missing:
        output.warn(f"the rows of {one.relay} are missing: {one.why}")


def _connected(relay: str, cert: str, key: str, ca: str) -> Web:
    with needs_extra("federation", "A web of relays"):
        from odfpy.federation.client import connect
    return connect(relay, cert, key, ca)
