"""`odf key`: the key that signs what you commit, and the keys of others under names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of

app = group("Keys: yours, which signs what you commit, and those of others under names.")


def complete_keys() -> Iterable[tuple[str, str]]:
    """Names of trusted keys, for the shell's completion."""
    from odfpy.coordinator.keys import UserKeys

    return [(item.name, str(item.key)) for item in UserKeys().trusted]


KnownName = Annotated[
    str, typer.Argument(help="The name that the key has here.", metavar="NAME", autocompletion=complete_keys)
]


@command(app, "odf key show", "odf key show alice")
def show(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(help="Whose; yours if not given.", metavar="NAME", autocompletion=complete_keys),
    ] = "me",
    form: Form = None,
) -> None:
    """Print a public key, to give it to others; yours is made when it is first needed."""
    from odfpy.coordinator.keys import UserKeys

    output = session_of(context).output_as(form)
    key = str(UserKeys().find(name))
    if output.for_people:
        output.text(key)
    else:
        output.tree({"name": name, "key": key})


@command(app, "odf key list", "odf key list -o json", name="list")
def list_(context: typer.Context, form: Form = None) -> None:
    """List your key and those that you trust."""
    from odfpy.coordinator.keys import ME, UserKeys

    keys = UserKeys()
    own = keys.known()
    records = [{"name": ME, "key": str(own.actor)}] if own else []
    records += [{"name": item.name, "key": str(item.key)} for item in keys.trusted]
    output = session_of(context).output_as(form)
    if not records and output.for_people:
        output.say("No keys; yours is made with the first commit, or by `odf key show`.")
        return
    output.records(records, {"Name": "name", "Key": "key"})


@command(app, "odf key trust alice did:key:z6MkgHWiJpznKC2gCvnXRapRQcEBUMV1zo3YnA7pVMia4bnc")
def trust(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What to call it here.", metavar="NAME")],
    key: Annotated[str, typer.Argument(help="The key, as its holder's `odf key show` prints it.", metavar="KEY")],
) -> None:
    """Give somebody's key a name, by which `signatures.require` can ask for it."""
    from odfpy.coordinator.keys import UserKeys
    from odfpy.dataset.identity import ActorId

    item = UserKeys().trust(name, ActorId.parse(key))
    session_of(context).output.say(f"{item.name} is {item.key}")


@command(app, "odf key untrust alice")
def untrust(context: typer.Context, name: KnownName) -> None:
    """Forget somebody's key."""
    from odfpy.coordinator.keys import UserKeys

    item = UserKeys().untrust(name)
    session_of(context).output.say(f"Forgot {item.name} ({item.key})")
