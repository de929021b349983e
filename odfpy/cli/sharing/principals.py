"""`odf recipient`, `odf user` and `odf group`: principals of grants, and their tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of, split_words
from odfpy.cli.passwords import piped_password, typed_password
from odfpy.cli.sharing.opening import attributes_of, sharing_of
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.data.duration import Duration
    from odfpy.sharing.model import PrincipalKind

recipient = group("Recipients: external users who may read shares, their profile files and tokens.")
user = group("Users: people of your organization who may read shares.")
groups = group("Groups of users and recipients, for common grants.")

Name = Annotated[str, typer.Argument(help="Name of the recipient or user.", metavar="NAME")]
UserName = Annotated[str, typer.Argument(help="Name of the user.", metavar="NAME")]
GroupName = Annotated[str, typer.Argument(help="Name of the group.", metavar="GROUP")]
Attribute = Annotated[
    list[str] | None,
    typer.Option(help="Attribute for row conditions of grants, such as country=DE; repeatable.", metavar="NAME=VALUE"),
]
Expires = Annotated[
    str | None,
    typer.Option(help="How long the token is valid, such as 90d; unlimited by default.", metavar="DURATION"),
]
Url = Annotated[str | None, typer.Option(help="URL of the server for recipients; the setting sharing.url by default.")]
To = Annotated[
    str | None, typer.Option(help="File to write; NAME.share by default, - for standard output.", metavar="FILE")
]
Version = Annotated[
    str,
    typer.Option(
        "--profile-version", help="Version of the profile file: 1, which all clients support, or 2.", metavar="N"
    ),
]


@command(recipient, "odf recipient add acme", "odf recipient add acme --attribute country=DE --expires 90d", name="add")
@command(user, "odf user add ann", name="add")
def add(
    context: typer.Context,
    name: Name,
    attribute: Attribute = None,
    expires: Expires = None,
    url: Url = None,
    to: To = None,
    profile_version: Version = "1",
) -> None:
    """Add a recipient or user, and write the profile file that gives access to granted tables."""
    wanted = _ProfileRequest.of(context, name, expires, url, to, profile_version)
    principals = sharing_of(context).principals
    principals.add(_kind_of(context), name, attributes_of(attribute))
    try:
        wanted.write(context)
    except BaseException:
        principals.remove(name)  # so that the command can be repeated
        raise


@command(user, "odf user password ann", "odf user password ann --stdin < password.txt", name="password")
def set_password(
    context: typer.Context,
    name: UserName,
    stdin: Annotated[bool, typer.Option("--stdin", help="Read it from the first line of standard input.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the password.")] = False,
) -> None:
    """Set the password of a user; tokens from logins with the old one are revoked."""
    if stdin and remove:
        raise UsageError("--stdin cannot be combined with --remove")
    passwords, output = sharing_of(context).passwords, session_of(context).output
    if remove:
        output.info(f"{passwords.remove(name).name} no longer has a password")
        return
    found = sharing_of(context).principals.get(name, _kind_of(context))
    password = piped_password() if stdin else typed_password(f"New password for {found.name}: ", again=True)
    output.info(f"{passwords.set(name, password).name} has a new password")


@command(user, "odf user admin ann on", name="admin")
def set_admin(
    context: typer.Context, name: UserName, state: Annotated[str, typer.Argument(help="on or off.", metavar="on|off")]
) -> None:
    """Allow a user to administer the workspace over the network, or not."""
    if state not in {"on", "off"}:
        raise UsageError(f"Must be on or off, not {state!r}", hint=f"`odf user admin {name} on`, or off.")
    found = sharing_of(context).principals.change(name, _kind_of(context), is_admin=state == "on")
    session_of(context).output.info(f"{found.name} is {'an admin' if found.is_admin else 'no admin'}")


@command(recipient, "odf recipient list", name="list")
@command(user, "odf user list", name="list")
def list_(context: typer.Context, form: Form = None) -> None:
    """List the recipients, or the users."""
    kind = _kind_of(context)
    sharing, output = sharing_of(context), session_of(context).output_as(form)
    found = sharing.principals.all(kind)
    if not found and output.for_people:
        output.info(f"No {kind.value}s; add one with `odf {kind.value} add NAME`.")
        return
    records = [
        {
            "name": one.name,
            "attributes": dict(one.attributes),
            "disabled": one.is_disabled,
            "createdAt": str(one.created_at),
        }
        for one in found
    ]
    output.records(records, {"Name": "name", "Attributes": "attributes", "Disabled": "disabled", "Added": "createdAt"})


@command(recipient, "odf recipient show acme", name="show")
@command(user, "odf user show ann", name="show")
def show(context: typer.Context, name: Name, form: Form = None) -> None:
    """Show a recipient or user: attributes, tokens and grants."""
    sharing = sharing_of(context)
    found = sharing.principals.get(name, _kind_of(context))
    is_user = found.kind.value == "user"
    tree = {
        "name": found.name,
        "attributes": dict(found.attributes),
        "disabled": found.is_disabled,
        **({"admin": found.is_admin, "password": sharing.passwords.has_one(found)} if is_user else {}),
        "tokens": [
            {
                "number": token.id,
                "createdAt": str(token.created_at),
                "expiresAt": str(token.expires_at) if token.expires_at else None,
                "revokedAt": str(token.revoked_at) if token.revoked_at else None,
            }
            for token in sharing.principals.tokens(name)
        ],
        "grants": [
            {"number": one.id, "path": str(one.path), "columns": one.columns and list(one.columns), "rows": one.rows}
            for one in sharing.grants.all(name)
        ],
    }
    session_of(context).output_as(form).tree(tree)


@command(recipient, "odf recipient rotate acme --overlap 7d", name="rotate")
def rotate_recipient(
    context: typer.Context,
    name: Name,
    overlap: Annotated[str, typer.Option(help="How long earlier tokens stay valid.", metavar="DURATION")] = "7d",
    expires: Expires = None,
    url: Url = None,
    to: To = None,
    profile_version: Version = "1",
) -> None:
    """Write a new profile file; earlier ones expire after an overlap."""
    from odfpy.data.duration import Duration

    wanted = _ProfileRequest.of(context, name, expires, url, to, profile_version)
    wanted.write(context, overlap=Duration.parse(overlap))


@command(recipient, "odf recipient link acme", "odf recipient link acme --good-for 1d --expires 90d", name="link")
def link_recipient(
    context: typer.Context,
    name: Name,
    good_for: Annotated[str, typer.Option(help="How long the link is valid.", metavar="DURATION")] = "3d",
    expires: Expires = None,
    url: Url = None,
) -> None:
    """Print a one-time link to download the profile file of a recipient or user."""
    from odfpy.data.duration import Duration

    endpoint = _endpoint(context, url)
    lifetime = Duration.parse(expires) if expires is not None else None
    secret = sharing_of(context).principals.new_activation(name, Duration.parse(good_for), lifetime)
    output = session_of(context).output
    output.info(f"The first person who opens this link gets the profile file of {name}:")
    output.text(f"{endpoint}/activate/{secret}")


@command(recipient, "odf recipient revoke acme", name="revoke")
def revoke_recipient(
    context: typer.Context,
    name: Name,
    token: Annotated[str | None, typer.Option(help="Number of one token; all by default.", metavar="N")] = None,
) -> None:
    """Revoke tokens, from the next request on; URLs of their files become invalid, too."""
    from odfpy.cli.grammar import whole_number

    count = sharing_of(context).principals.revoke(name, whole_number(token, "--token"))
    session_of(context).output.info(f"{name}: revoked {count} token{'' if count == 1 else 's'}")


@command(recipient, "odf recipient disable acme", name="disable")
def disable(context: typer.Context, name: Name) -> None:
    """Disable a recipient or user, from the next request on; `enable` undoes it."""
    sharing_of(context).principals.change(name, is_disabled=True)
    session_of(context).output.info(f"{name} is disabled")


@command(recipient, "odf recipient enable acme", name="enable")
def enable(context: typer.Context, name: Name) -> None:
    """Enable a user or recipient who was disabled."""
    sharing_of(context).principals.change(name, is_disabled=False)
    session_of(context).output.info(f"{name} is enabled")


@command(recipient, "odf recipient set acme --attribute country=FR", name="set")
def set_attributes(context: typer.Context, name: Name, attribute: Attribute = None) -> None:
    """Replace the attributes of a recipient or user."""
    sharing_of(context).principals.change(name, attributes=attributes_of(attribute) or {})
    session_of(context).output.info(f"{name} has {len(attribute or [])} attributes")


@command(recipient, "odf recipient remove acme", name="remove")
def remove_recipient(context: typer.Context, name: Name) -> None:
    """Remove a recipient or user with tokens and grants."""
    found = sharing_of(context).principals.remove(name)
    session_of(context).output.info(f"Removed the {found.kind.value} {found.name}")


@command(groups, "odf group add partners", name="add")
def add_group(context: typer.Context, name: GroupName, members: Annotated[
    str | None, typer.Option(help="Names of recipients and users, comma-separated.", metavar="NAMES")
] = None) -> None:  # fmt: skip
    """Create a group, or add members to it."""
    from odfpy.sharing.errors import SharedObjectNotFound
    from odfpy.sharing.model import PrincipalKind

    sharing = sharing_of(context)
    wanted = split_words(members)
    for member in wanted:
        sharing.principals.get(member)
    try:
        sharing.principals.get(name, PrincipalKind.GROUP)
    except SharedObjectNotFound:
        sharing.principals.add(PrincipalKind.GROUP, name)
    for member in wanted:
        sharing.principals.join(name, member)
    session_of(context).output.info(f"{name}: {', '.join(sharing.principals.members(name)) or 'nobody'}")


@command(groups, "odf group list", name="list")
def list_groups(context: typer.Context, form: Form = None) -> None:
    """List the groups and their members."""
    from odfpy.sharing.model import PrincipalKind

    sharing, output = sharing_of(context), session_of(context).output_as(form)
    found = sharing.principals.all(PrincipalKind.GROUP)
    if not found and output.for_people:
        output.info("No groups; add one with `odf group add NAME`.")
        return
    records = [{"name": one.name, "members": sharing.principals.members(one.name)} for one in found]
    output.records(records, {"Group": "name", "Members": "members"})


@command(groups, "odf group remove partners", "odf group remove partners --members acme", name="remove")
def remove_group(context: typer.Context, name: GroupName, members: Annotated[
    str | None, typer.Option(help="Remove only these members.", metavar="NAMES")
] = None) -> None:  # fmt: skip
    """Remove a group with its grants, or members from it; the members themselves stay."""
    from odfpy.sharing.model import PrincipalKind

    principals = sharing_of(context).principals
    for member in split_words(members):
        principals.leave(name, member)
    if members is None:
        principals.remove(name, PrincipalKind.GROUP)
    session_of(context).output.info(f"Removed {members or name}")


# --- Shared by all principals ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ProfileRequest:
    """A requested profile file. All options are validated before anything changes."""

    name: str
    endpoint: str
    lifetime: Duration | None
    to: Path | None
    version: int

    @classmethod
    def of(
        cls, context: typer.Context, name: str, expires: str | None, url: str | None, to: str | None, version: str
    ) -> _ProfileRequest:
        """Validate the options of a command.

        Args:
            context: context of the command.
            name: name of the principal.
            expires: lifetime of the token.
            url: URL of the server.
            to: target path of the file.
            version: version of the file format.

        Raises:
            UsageError: an option is invalid.
        """
        from odfpy.cli.grammar import whole_number
        from odfpy.data.duration import Duration
        from odfpy.sharing.profile import check_version

        lifetime = Duration.parse(expires) if expires is not None else None
        number = check_version(whole_number(version, "--profile-version") or 0)
        return cls(name, _endpoint(context, url), lifetime, None if to == "-" else Path(to or f"{name}.share"), number)

    def write(self, context: typer.Context, *, overlap: Duration | None = None) -> None:
        """Create a token and write the file. If writing fails, the token is revoked and older ones stay valid.

        Args:
            context: context of the command.
            overlap: how long older tokens stay valid; None leaves them unchanged.
        """
        from odfpy.files import replace_file
        from odfpy.sharing.profile import profile

        principals, output = sharing_of(context).principals, session_of(context).output
        text, token = principals.new_token(self.name, self.lifetime)
        try:
            data = profile(self.endpoint, text, token.expires_at, version=self.version)
            if self.to is None:
                output.text(data.decode().rstrip("\n"))
            else:
                replace_file(self.to, data, mode=0o600)
        except BaseException:
            principals.revoke(self.name, token.id)
            raise
        if overlap is not None:
            principals.end_older(self.name, token.id, overlap)
        if self.to is not None:
            output.info(
                f"Wrote {self.to}: anyone who has it can read what {self.name} is granted. It cannot be created again."
            )


def _endpoint(context: typer.Context, url: str | None) -> str:
    from odfpy.serving.settings import checked_url
    from odfpy.settings.sections import SharingSection

    found = url or session_of(context).workspace.config.section(SharingSection).url
    if found is None:
        raise UsageError(
            "The profile file needs the URL of the server",
            hint="`odf config set sharing.url https://data.example.com`, or --url URL.",
        )
    found = checked_url(found)
    return found if found.endswith("/delta-sharing") else f"{found}/delta-sharing"


def _kind_of(context: typer.Context) -> PrincipalKind:
    """Return the kind of principal of a command's group: `recipient` or `user`."""
    from odfpy.sharing.model import PrincipalKind

    assert context.parent is not None  # noqa: S101  it is the group
    return PrincipalKind(context.parent.info_name)
