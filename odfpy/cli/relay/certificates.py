"""`odf relay cert`: certificates of users and peers, issued by the relay's own authority."""

from __future__ import annotations

from typing import Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of, whole_number
from odfpy.cli.relay.opening import relay_of, who, written
from odfpy.errors import UsageError

certificates = group("Certificates of users and peers: issue, list, revoke, rotate.")

Name = Annotated[str, typer.Argument(help="Name of the user or peer.", metavar="NAME")]
Days = Annotated[str, typer.Option(help="How many days the certificate is valid.", metavar="N")]
Field = Annotated[
    list[str] | None,
    typer.Option(help="Further field of the subject, such as O=Acme; repeatable.", metavar="NAME=VALUE"),
]
Host = Annotated[list[str] | None, typer.Option(help="Name or address of a peer, which is a server; repeatable.")]
To = Annotated[
    str | None, typer.Option(help="Folder for certificate and key; the current one by default.", metavar="PATH")
]


@command(certificates, "odf relay cert new ann", "odf relay cert new ann --days 90 --field O=Acme", name="new")
def new(
    context: typer.Context, name: Name, days: Days = "365", field: Field = None, host: Host = None, to: To = None
) -> None:
    """Issue another certificate to a user or peer."""
    with relay_of(context) as relay:
        owner = relay.known(name)
        issued = relay.identity.authority.issue(owner.name, _days(days), fields=_fields(field), hosts=host or ())
        with written(issued, owner.name, to) as path:
            relay.store.certificates.add(issued.facts, (owner.KIND, owner.name.lower()), who(), "cert new")
    session_of(context).output.info(f"Wrote {path} and its key: anyone who has both can act as {owner.name}")


@command(certificates, "odf relay cert trust ca.pem", name="trust")
def trust(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="Authority of another relay (PEM).", metavar="FILE")],
) -> None:
    """Trust another authority: holders of its certificates may connect, with the default permission."""
    from pathlib import Path

    output = session_of(context).output
    with relay_of(context) as relay:
        new = relay.identity.trust(Path(file))
        lines = [f"+ authority {one.fingerprint[:16]} ({one.subject})" for one in new]
        if lines:
            relay.store.applies.remark(lines, who=who(), action="cert trust")
    for line in lines:
        output.text(line)
    output.info("A running relay trusts it after a restart" if new else f"{file} is already trusted")


@command(certificates, "odf relay cert list", "odf relay cert list ann", name="list")
def list_(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Only those of this user or peer.", metavar="NAME")] = None,
    form: Form = None,
) -> None:
    """List the certificates of users and peers."""
    from odfpy.data.timestamp import Timestamp

    output = session_of(context).output_as(form)
    with relay_of(context) as relay:
        owner = None if name is None else relay.known(name)
        found = relay.store.certificates.all(None if owner is None else (owner.KIND, owner.name.lower()))
    if not found and output.for_people:
        output.info("No certificates; issue one with `odf relay cert new NAME`.")
        return
    now = Timestamp.now()
    records = [
        {
            "name": one.owner[1],
            "fingerprint": one.facts.fingerprint,
            "subject": one.facts.subject,
            "expiresAt": str(one.facts.not_after),
            "revokedAt": None if one.revoked_at is None else str(one.revoked_at),
            "declared": one.is_declared,
            "good": one.is_good_at(now),
        }
        for one in found
    ]
    columns = {
        "Name": "name",
        "Fingerprint": "fingerprint",
        "Expires": "expiresAt",
        "Revoked": "revokedAt",
        "Good": "good",
    }
    output.records(records, columns)


@command(certificates, "odf relay cert revoke 3f2a91c0 --reason 'laptop lost'", name="revoke")
def revoke(
    context: typer.Context,
    fingerprint: Annotated[
        str, typer.Argument(help="Fingerprint of the certificate, or its beginning.", metavar="FINGERPRINT")
    ],
    reason: Annotated[str, typer.Option(help="The reason, as free text.", metavar="TEXT")] = "",
) -> None:
    """Revoke a certificate permanently, from the next request on."""
    with relay_of(context) as relay:
        found = relay.store.certificates.beginning(fingerprint)
        relay.store.certificates.revoke([found.facts.fingerprint], who(), reason=reason)
    session_of(context).output.info(f"Revoked {found.facts.fingerprint[:16]} of {found.owner[1]}")


@command(certificates, "odf relay cert rotate ann --overlap 7d", name="rotate")
def rotate(
    context: typer.Context,
    name: Name,
    overlap: Annotated[str, typer.Option(help="How long earlier certificates stay valid.", metavar="DURATION")] = "7d",
    days: Days = "365",
    field: Field = None,
    host: Host = None,
    to: To = None,
) -> None:
    """Issue a new certificate; earlier ones expire after an overlap. Grants stay."""
    from odfpy.data.duration import Duration
    from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp

    now = Timestamp.now()
    end = Timestamp(now.nanos + Duration.parse(overlap).seconds * NANOS_PER_SECOND)
    with relay_of(context) as relay:
        owner = relay.known(name)
        key = (owner.KIND, owner.name.lower())
        old = [one.facts.fingerprint for one in relay.store.certificates.all(key) if one.is_good_at(now)]
        issued = relay.identity.authority.issue(owner.name, _days(days), fields=_fields(field), hosts=host or ())
        with written(issued, owner.name, to) as path:
            relay.store.certificates.add(issued.facts, key, who(), "cert rotate", revoking=old, from_when=end)
    count = f"{len(old)} from before {'ends' if len(old) == 1 else 'end'} at {end}"
    session_of(context).output.info(f"Wrote {path} and its key; {count}")


def _days(text: str) -> int:
    found = whole_number(text, "--days")
    if not found or found > 36_500:
        raise UsageError(f"Not a number of days: {text}", hint="Give 1 to 36500.")
    return found


def _fields(given: list[str] | None) -> dict[str, str]:
    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not name or not equals or not value:
            raise UsageError(f"Not a field of a subject: {text!r}", hint="Write --field O=Acme, OU=Sales or C=DE.")
        found[name] = value
    return found
