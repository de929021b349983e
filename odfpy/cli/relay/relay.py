"""`odf relay`: the relay of this workspace, and the documents that configure it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.grammar import Form, command, group, session_of, whole_number
from odfpy.cli.relay.certificates import certificates
from odfpy.cli.relay.demo import demo
from odfpy.cli.relay.opening import OpenedRelay, relay_of, who
from odfpy.cli.relay.serve import serve
from odfpy.cli.relay.users import users
from odfpy.data.amounts import count_of
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.federation.model.documents import LocalData

app = group("A relay: answers queries over your data and that of peers.")
app.add_typer(certificates, name="cert", epilog="odf relay cert list")
app.add_typer(users, name="user", epilog="odf relay user list")
command(app, "odf relay serve", "odf relay serve --host 0.0.0.0 --public na.example.com:50051")(serve)
command(app, "odf relay demo", "odf relay demo --folder web-demo --port-base 0")(demo)


@command(app, "odf relay init na", "odf relay init na --host na.example.com --folder relay")
def init(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the relay for its peers.", metavar="NAME")],
    folder: Annotated[str, typer.Option(help="Folder for initial documents.", metavar="PATH")] = "web",
    host: Annotated[
        list[str] | None, typer.Option(help="Host name or address at which others reach the relay; repeatable.")
    ] = None,
    cert: Annotated[
        str | None, typer.Option(help="Certificate of the relay (PEM), if another authority issues it.", metavar="FILE")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Private key of the certificate (PEM).", metavar="FILE")] = None,
    ca: Annotated[
        str | None,
        typer.Option(help="Certificate authorities that the relay trusts in this case (PEM).", metavar="FILE"),
    ] = None,
) -> None:
    """Create the relay of this workspace: keys, certificates, and initial documents."""
    from odfpy.federation.examples import write_examples
    from odfpy.federation.identity import RelayIdentity

    session = session_of(context)
    odf = session.workspace.odf
    if len({one is None for one in (cert, key, ca)}) > 1:
        raise UsageError("--cert, --key and --ca need each other", hint="Give all of them, or none.")
    if cert is not None and key is not None and ca is not None:
        identity = RelayIdentity.given(odf, name, Path(cert), Path(key), Path(ca))
    else:
        identity = RelayIdentity.make(odf, name, host or ())
    written = write_examples(Path(folder))
    session.output.info(f"The relay {identity.name} has the fingerprint {identity.fingerprint}")
    if written:
        session.output.info(f"Initial documents are in {folder}: `odf relay apply -f {folder}`")


@command(app, "odf relay apply -f web --dry-run", "odf relay apply -f web --prune")
def apply(
    context: typer.Context,
    file: Annotated[
        list[str], typer.Option("--file", "-f", help="File or folder of documents; repeatable.", metavar="PATH")
    ],
    prune: Annotated[bool, typer.Option("--prune", help="Also remove what no document declares.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the difference.")] = False,
) -> None:
    """Apply the configuration that documents declare: all of it, or nothing."""
    from odfpy.federation.applying import prepare

    output = session_of(context).output
    with relay_of(context) as relay:
        prepared = prepare(relay.store, map(Path, file), relay.workspace.odf, prune=prune)
        if prepared.steps and not dry_run:
            relay.store.applies.apply(prepared.steps, based_on=prepared.revision, who=who())
    for step in prepared.steps:
        output.text(str(step))
    if not prepared.steps:
        output.info(f"Everything is as {', '.join(file)} declares it")
    elif dry_run:
        output.info(f"{count_of(len(prepared.steps), 'change')}; nothing was changed")


@command(app, "odf relay status", "odf relay status --check")
def status(
    context: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Also check every source and its columns.")] = False,
    form: Form = None,
) -> None:
    """Show the relay: certificate and objects; with --check, also check its sources."""
    from odfpy.federation.model.certificates import CertificateFacts

    with relay_of(context) as relay:
        state = relay.store.applies.state()
        web = state.web
        found = [_checked(relay, one) for one in web.local_data.values()] if check else []
        tree: dict[str, Any] = {
            "name": relay.identity.name,
            "fingerprint": relay.identity.fingerprint,
            "certificateExpires": relay.identity.expires,
            "trusts": [CertificateFacts.of(one).subject for one in relay.identity.trusted],
            "revision": state.revision,
            "entities": list(web.entities),
            "localData": list(web.local_data),
            "peers": list(web.peers),
            "users": len(web.users),
            **({"sources": found} if check else {}),
        }
        session_of(context).output_as(form).tree(tree)
    if any(one["trouble"] for one in found):
        raise typer.Exit(1)


@command(app, "odf relay log", "odf relay log -n 50 -o json")
def log(
    context: typer.Context,
    num: Annotated[str, typer.Option("--num", "-n", help="Maximum number of changes.", metavar="N")] = "20",
    form: Form = None,
) -> None:
    """Show the changes of the relay, newest first; the dataset odf.web has all of them."""
    output = session_of(context).output_as(form)
    with relay_of(context) as relay:
        found = relay.store.applies.log(whole_number(num, "--num") or 0)
    if not found and output.for_people:
        output.info("No changes yet; `odf relay apply -f web` applies documents.")
        return
    records = [
        {
            "revision": one.revision,
            "at": str(one.at),
            "who": one.who,
            "action": one.action,
            "steps": list(one.steps),
        }
        for one in found
    ]
    columns = {"Revision": "revision", "When": "at", "Who": "who", "Action": "action", "Steps": "steps"}
    output.records(records, columns)


def _checked(relay: OpenedRelay, data: LocalData) -> dict[str, Any]:
    """Check the fields named in documents against the source of local data; return the failures."""
    from odfpy.errors import OdfError
    from odfpy.federation.errors import SourceFailed
    from odfpy.federation.model.relations import relation_sql
    from odfpy.federation.sources.opening import SourceContext, open_source

    troubles = []
    try:
        source = open_source(data, SourceContext(relay.workspace.queries.service, relay.workspace.odf))
        for data_source in data.data_sources:
            try:
                source.schema(relation_sql(data, data_source))
            except OdfError as error:
                words = error.detail if isinstance(error, SourceFailed) else error.message
                troubles.append(f"{data_source.name}: {words}")
        source.close()
    except SourceFailed as error:
        troubles.append(error.detail or error.message)
    return {"data": data.name, "kind": data.connection.kind, "trouble": troubles}
