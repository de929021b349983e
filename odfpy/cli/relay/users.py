"""`odf relay user`: named users of the relay, besides those in documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.grammar import Form, command, group, session_of
from odfpy.cli.relay.opening import relay_of, who
from odfpy.cli.sharing.opening import attributes_of

if TYPE_CHECKING:
    from odfpy.federation.model.relay_objects import RelayObjects

users = group("Users of the relay: their attributes, certificates and permissions.")

Name = Annotated[str, typer.Argument(help="Name of the user.", metavar="NAME")]
Attribute = Annotated[
    list[str] | None,
    typer.Option(help="Attribute for row conditions, such as country=DE; repeatable.", metavar="NAME=VALUE"),
]


@command(users, "odf relay user add ann --attribute country=DE", name="add")
def add(context: typer.Context, name: Name, attribute: Attribute = None) -> None:
    """Add a user, with the default permission; documents grant more."""
    from odfpy.errors import AlreadyExists, InvalidValue
    from odfpy.federation.model.documents import User
    from odfpy.federation.model.steps import addition
    from odfpy.sharing.names import check_name

    check_name("user", name, dots=True)
    with relay_of(context) as relay:
        state = relay.store.applies.state()
        if any(name.lower() == one.lower() for one in (*state.web.users, *state.web.peers)):
            raise AlreadyExists(f"The user or peer {name!r} already exists", hint="`odf relay user list` shows them.")
        try:
            user = User(name=name, attributes=attributes_of(attribute) or {})
        except ValueError as error:
            raise InvalidValue("An attribute has control characters, or is empty") from error
        relay.store.applies.apply([addition(user)], based_on=state.revision, who=who(), action="user add")
    session_of(context).output.info(f"Added {name}; `odf relay cert new {name}` issues a certificate")


@command(users, "odf relay user list", name="list")
def list_(context: typer.Context, form: Form = None) -> None:
    """List the users, and their numbers of valid certificates."""
    from odfpy.data.timestamp import Timestamp

    output = session_of(context).output_as(form)
    with relay_of(context) as relay:
        web, known = relay.store.applies.state().web, relay.store.certificates.all()
    if not web.users and output.for_people:
        output.info("No users; add one with `odf relay user add NAME`, or declare some.")
        return
    now = Timestamp.now()
    records = [
        {
            "name": user.name,
            "attributes": dict(user.attributes),
            "certificates": sum(
                cert.owner == (user.KIND, user.name.lower()) and cert.is_good_at(now) for cert in known
            ),
            "permissions": len(user.permissions),
        }
        for user in web.users.values()
    ]
    columns = {"Name": "name", "Attributes": "attributes", "Certificates": "certificates", "Permissions": "permissions"}
    output.records(records, columns)


@command(users, "odf relay user show ann", name="show")
def show(context: typer.Context, name: Name, form: Form = None) -> None:
    """Show a user or peer: certificates, and permissions for every data source."""
    with relay_of(context) as relay:
        web, one = relay.store.applies.state().web, relay.known(name)
        found = relay.store.certificates.all((one.KIND, one.name.lower()))
    tree = {
        "name": one.name,
        "kind": one.KIND,
        "attributes": dict(one.attributes),
        "certificates": [cert.facts.fingerprint for cert in found],
        "sees": _seen(web, one),
    }
    session_of(context).output_as(form).tree(tree)


@command(users, "odf relay user remove ann", name="remove")
def remove(context: typer.Context, name: Name) -> None:
    """Remove a user with their grants and certificates. Revoke their certificates first if they are to lose access."""
    from odfpy.federation.errors import WebObjectNotFound
    from odfpy.federation.model.documents import User
    from odfpy.federation.model.steps import removal

    with relay_of(context) as relay:
        state, one = relay.store.applies.state(), relay.known(name)
        if not isinstance(one, User):
            raise WebObjectNotFound(f"{one.name} is a peer", hint="Remove its document, and apply with --prune.")
        relay.store.applies.apply([removal(one)], based_on=state.revision, who=who(), action="user remove")
    session_of(context).output.info(f"Removed {one.name}")


def _seen(web: RelayObjects, one: Any) -> list[dict[str, Any]]:
    from odfpy.federation.model.permissions import view_of

    found = []
    for data in web.local_data.values():
        for source in data.data_sources:
            view = view_of(web, one, data.name, source.name)
            pairs = [
                {"columns": "*" if part.columns is None else list(part.columns), "rows": part.rows or "true"}
                for part in (view.parts if view else ())
            ]
            found.append({"source": f"{data.name}/{source.name}", "pairs": pairs})
    return found
