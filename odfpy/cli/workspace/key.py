"""`odf key`: your signing key, and the named keys of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import Form, Yes, command, complete_names, group, session_of
from odfpy.errors import InvalidValue, UsageError, WorkspaceNotFound, member_named

if TYPE_CHECKING:
    from odfpy.chain.revocations import Reason
    from odfpy.cli.session import Session
    from odfpy.coordinator.revoke import Revoked
    from odfpy.coordinator.storage.keys import UserKeys
    from odfpy.data.timestamp import Timestamp

app = group("Keys: your own key, which signs commits, and trusted keys of others.")


def complete_keys() -> Iterable[tuple[str, str]]:
    """Return names of trusted keys, for completion."""
    from odfpy.coordinator.storage.keys import UserKeys

    return [(item.name, str(item.key)) for item in UserKeys().trusted]


SomeKey = Annotated[
    str,
    typer.Argument(help="me (the default), a name, a key, or owner.", metavar="NAME", autocompletion=complete_keys),
]
OfDataset = Annotated[
    str | None,
    typer.Option("--dataset", help="In this dataset only.", metavar="NAME", autocompletion=complete_names),
]

KnownName = Annotated[str, typer.Argument(help="Name of the key.", metavar="NAME", autocompletion=complete_keys)]


@command(app, "odf key show", "odf key show alice")
def show(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(help="Name of the key; yours by default.", metavar="NAME", autocompletion=complete_keys),
    ] = "me",
    form: Form = None,
) -> None:
    """Print a public key; yours is created when it is first needed."""
    from odfpy.coordinator.storage.keys import UserKeys

    output = session_of(context).output_as(form)
    key = str(UserKeys().find(name))
    if output.for_people:
        output.text(key)
    else:
        output.tree({"name": name, "key": key})


@command(app, "odf key list", "odf key list -o json", name="list")
def list_(context: typer.Context, form: Form = None) -> None:
    """List your key and those that you trust."""
    from odfpy.coordinator.storage.keys import ME, UserKeys

    keys = UserKeys()
    own = keys.known()
    records = [{"name": ME, "key": str(own.actor)}] if own else []
    records += [{"name": item.name, "key": str(item.key)} for item in keys.trusted]
    records = [{**record, **_end_of(record["key"], keys)} for record in records]
    output = session_of(context).output_as(form)
    if not records and output.for_people:
        output.info("No keys; yours is created with the first commit, or by `odf key show`.")
        return
    output.records(records, {"Name": "name", "Key": "key", **({"Ended": _ended} if any(map(_ended, records)) else {})})


@command(app, "odf key trust alice did:key:z6MkgHWiJpznKC2gCvnXRapRQcEBUMV1zo3YnA7pVMia4bnc")
def trust(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Local name of the key.", metavar="NAME")],
    key: Annotated[str, typer.Argument(help="The key, as its holder's `odf key show` prints it.", metavar="KEY")],
) -> None:
    """Trust a key under a name, which `signatures.require` accepts."""
    from odfpy.coordinator.storage.keys import UserKeys
    from odfpy.dataset.identity import ActorId

    item = UserKeys().trust(name, ActorId.parse(key))
    session_of(context).output.info(f"{item.name} is {item.key}")


@command(app, "odf key untrust alice")
def untrust(context: typer.Context, name: KnownName) -> None:
    """Remove a trusted key."""
    from odfpy.coordinator.storage.keys import UserKeys

    item = UserKeys().untrust(name)
    session_of(context).output.info(f"Forgot {item.name} ({item.key})")


def _end_of(key: str, keys: UserKeys) -> dict[str, str]:
    """Return the time when a key becomes invalid, and the reason; empty if no end is known here."""
    said = [one for one in (*keys.revoked.made, *keys.revoked.learnt) if one.key == key and one.since is None]
    if not said:
        return {}
    first = min(said, key=lambda one: one.end)
    return {"ends": str(first.end), "reason": "expires" if first.expires is not None else first.reason.value}


def _ended(record: Mapping[str, str]) -> str:
    return f"{record['reason']} {record['ends']}" if "ends" in record else ""


@command(app, "odf key revoke --reason superseded", "odf key revoke alice --reason compromised")
def revoke(
    context: typer.Context,
    name: SomeKey = "me",
    reason: Annotated[
        str | None,
        typer.Option(
            "--reason",
            help="compromised, superseded or retired.",
            metavar="WORD",
            autocompletion=lambda: ["compromised", "superseded", "retired"],
        ),
    ] = None,
    dataset: OfDataset = None,
    yes: Yes = False,
) -> None:
    """Revoke a key: later signatures are invalid; of a compromised key, all are."""
    from odfpy.chain.revocations import Reason

    words = "compromised (stolen or leaked), superseded (replaced) or retired"
    if reason is None:
        raise UsageError("Missing option --reason", hint=f"--reason {words}.")
    why = member_named(Reason, "reason", reason, otherwise=f"One of: {words}.", error=UsageError)
    session = session_of(context)
    effect = (
        "all of its signatures become invalid" if why is Reason.COMPROMISED else "signatures from now on are refused"
    )
    if not session.confirm(f"Revoke the key {name} permanently: {effect}?", yes=yes):
        return
    done = _say(session, name, why, dataset, None)
    session.output.info(f"Revoked {done.key} ({why.value})")
    _print_where(session, done)


@command(app, "odf key expire --on 2027-01-01", "odf key expire alice --on 2026-06-30T12:00:00Z")
def expire(
    context: typer.Context,
    on: Annotated[str, typer.Option("--on", help="A date or a time.", metavar="TIME")],
    name: SomeKey = "me",
    dataset: OfDataset = None,
    yes: Yes = False,
) -> None:
    """Set when a key expires; you can only move this to an earlier time."""
    from odfpy.chain.revocations import Reason
    from odfpy.data.timestamp import Timestamp

    end = _time(on)
    if end <= Timestamp.now():
        raise UsageError(f"{end} is in the past", hint="`odf key revoke` revokes a key immediately.")
    session = session_of(context)
    if not session.confirm(f"Let the key {name} expire at {end}? This cannot be postponed later.", yes=yes):
        return
    done = _say(session, name, Reason.RETIRED, dataset, end)
    session.output.info(f"{done.key} expires at {end}")
    _print_where(session, done)


def _time(text: str) -> Timestamp:
    from odfpy.data.timestamp import Timestamp

    try:
        return Timestamp.parse(f"{text}T00:00:00Z" if "T" not in text.upper() else text)
    except InvalidValue as error:
        raise UsageError(
            f"--on must be a date or a time, not {text!r}", hint="Such as 2027-01-01 or 2027-01-01T12:00:00Z."
        ) from error


def _say(session: Session, name: str, reason: Reason, dataset: str | None, expires: Timestamp | None) -> Revoked:
    from odfpy.coordinator.revoke import revoke_key
    from odfpy.coordinator.storage.keys import ME, OWNER, UserKeys
    from odfpy.dataset.identity import ActorId

    keys = UserKeys()
    only = None if dataset is None else [session.workspace.storage.get(dataset)]
    if name.lower() == OWNER:
        if only is None:
            raise UsageError("Each dataset has its own owner", hint="Name the dataset: --dataset NAME.")
        key = ActorId.owner_of(only[0].handle.id)
        holder = only[0].workspace_folder.keys.get(only[0].handle.id)
        if holder is None:
            raise UsageError(f"The own key of {dataset} is not in this workspace, so it cannot be revoked")
    else:
        key = keys.find(name)
        holder = keys.pair_of(key)
    try:
        storage = session.workspace.storage
    except WorkspaceNotFound:
        storage = None
    me = keys.own()
    done = revoke_key(storage, key, reason, holder=holder, me=me, expires=expires, only=only)
    if expires is None and only is None and key == me.actor:
        keys.put_away()
        session.output.info(f"`{ME}` is a new key from now on: {keys.own().actor}")
    return done


def _print_where(session: Session, done: Revoked) -> None:
    output = session.output
    if done.datasets:
        names = ", ".join(str(dataset.handle) for dataset in done.datasets)
        output.info(f"Written beside {names}; `odf push` publishes it")
    if not done.by_itself:
        output.info("The key itself has not signed this: others accept it only for datasets whose own key is here")
