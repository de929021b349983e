"""Users, recipients and groups, and their tokens.

Only hashes of tokens are stored, as for all access tokens (`odfpy.data.token_secret`). Passwords have less entropy, so
they are hashed with argon2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from odfpy.data.duration import Duration
from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.data.token_secret import end_after, hash_of, is_token, new_secret, new_token
from odfpy.errors import AlreadyExists, UsageError, did_you_mean
from odfpy.sharing.errors import SharedObjectNotFound
from odfpy.sharing.model import Principal, PrincipalKind
from odfpy.sharing.names import check_name, folded
from odfpy.sharing.store.database import Database
from odfpy.sharing.store.tables import ACTIVATIONS, MEMBERS, PRINCIPALS, TOKENS

_COLUMNS: Final = (
    PRINCIPALS.c.id,
    PRINCIPALS.c.kind,
    PRINCIPALS.c.name,
    PRINCIPALS.c.attributes,
    PRINCIPALS.c.is_admin,
    PRINCIPALS.c.is_disabled,
    PRINCIPALS.c.created_at,
)


@dataclass(frozen=True, slots=True)
class PrincipalToken:
    """A token of a principal, without its secret.

    Attributes:
        id: number of the token.
        created_at: time of creation.
        expires_at: time of expiry, None if it never expires.
        revoked_at: time of revocation, None if it is not revoked.
    """

    id: int
    created_at: Timestamp
    expires_at: Timestamp | None
    revoked_at: Timestamp | None

    def is_over(self, now: Timestamp) -> bool:
        """Return whether it has expired or was revoked."""
        return any(end is not None and end <= now for end in (self.expires_at, self.revoked_at))


class Principals:
    """The principals in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- Principals ---

    def add(self, kind: PrincipalKind, name: str, attributes: Mapping[str, str] | None = None) -> Principal:
        """Add a principal, without tokens and grants.

        Args:
            kind: kind of the principal.
            name: name of the principal.
            attributes: attributes that row conditions can use.

        Raises:
            InvalidValue: the name is invalid.
            AlreadyExists: the name is taken.
        """
        check_name(kind.value, name, dots=True)
        row = {
            "kind": kind.value,
            "name": name,
            "folded": folded(name),
            "attributes": dict(attributes or {}),
            "is_admin": False,
            "is_disabled": False,
            "created_at": Timestamp.now().nanos,
        }
        with self._database.writing() as connection:
            old = connection.execute(sa.select(*_COLUMNS).where(PRINCIPALS.c.folded == folded(name))).first()
            if old is not None:
                more = f" `odf recipient rotate {old.name}` gives a new token." if old.kind == "recipient" else ""
                raise AlreadyExists(f"There is a {old.kind} {old.name!r} already", hint=f"Choose another name.{more}")
            key = connection.execute(sa.insert(PRINCIPALS).values(row)).inserted_primary_key
            assert key is not None  # noqa: S101  there is one for one row
            return self._by_id(connection, key[0])

    def get(self, name: str, *kinds: PrincipalKind) -> Principal:
        """Return the principal with a name.

        Args:
            name: the name, case-insensitive.
            kinds: accepted kinds; any if empty.

        Raises:
            SharedObjectNotFound: no principal has that name; the message suggests a similar one.
        """
        with self._database.reading() as connection:
            return self._get(connection, name, kinds)

    def all(self, *kinds: PrincipalKind) -> list[Principal]:
        """Return all principals, or those of the given kinds, sorted by name."""
        with self._database.reading() as connection:
            return list(self._all(connection, kinds))

    def remove(self, name: str, *kinds: PrincipalKind) -> Principal:
        """Remove a principal, with its tokens and grants. Raises as `get`."""
        with self._database.writing() as connection:
            found = self._get(connection, name, kinds)
            connection.execute(sa.delete(PRINCIPALS).where(PRINCIPALS.c.id == found.id))
        return found

    def change(
        self,
        name: str,
        *kinds: PrincipalKind,
        attributes: Mapping[str, str] | None = None,
        is_disabled: bool | None = None,
        is_admin: bool | None = None,
    ) -> Principal:
        """Change the given attributes of a principal.

        Args:
            name: name of the principal.
            kinds: accepted kinds; any if empty.
            attributes: new attributes, which replace all previous ones.
            is_disabled: whether to reject its tokens, from the next request on.
            is_admin: whether the user may administer the workspace over the network.

        Raises:
            SharedObjectNotFound: no principal has that name; the message suggests a similar one.
        """
        new: dict[str, Any] = {}
        if attributes is not None:
            new["attributes"] = dict(attributes)
        if is_disabled is not None:
            new["is_disabled"] = is_disabled
        if is_admin is not None:
            new["is_admin"] = is_admin
        with self._database.writing() as connection:
            found = self._get(connection, name, kinds)
            if new:
                connection.execute(sa.update(PRINCIPALS).where(PRINCIPALS.c.id == found.id).values(new))
            return self._by_id(connection, found.id)

    # --- Groups ---

    def join(self, group: str, member: str) -> None:
        """Add a user or recipient to a group; groups cannot be nested.

        Raises:
            SharedObjectNotFound: no principal has that name; the message suggests a similar one.
            UsageError: the member is a group.
        """
        with self._database.writing() as connection:
            into, who = self._get(connection, group, (PrincipalKind.GROUP,)), self._get(connection, member)
            if who.kind is PrincipalKind.GROUP:
                raise UsageError(f"{who.name} is a group, and groups have no groups in them", hint="Add its members.")
            row = {"group_id": into.id, "member_id": who.id}
            known = sa.select(MEMBERS).where(MEMBERS.c.group_id == into.id, MEMBERS.c.member_id == who.id)
            if connection.execute(known).first() is None:
                connection.execute(sa.insert(MEMBERS).values(row))

    def leave(self, group: str, member: str) -> None:
        """Remove a member from a group.

        Raises:
            SharedObjectNotFound: the group does not exist, or has no such member.
        """
        with self._database.writing() as connection:
            into, who = self._get(connection, group, (PrincipalKind.GROUP,)), self._get(connection, member)
            found = sa.delete(MEMBERS).where(MEMBERS.c.group_id == into.id, MEMBERS.c.member_id == who.id)
            if not connection.execute(found).rowcount:
                raise SharedObjectNotFound(
                    f"{who.name} is not in the group {into.name}", hint="`odf group list` shows who is in it."
                )

    def members(self, group: str) -> list[str]:
        """Return the names of a group's members. Raises as `get`."""
        with self._database.reading() as connection:
            into = self._get(connection, group, (PrincipalKind.GROUP,))
            query = sa.select(PRINCIPALS.c.name).join(MEMBERS, MEMBERS.c.member_id == PRINCIPALS.c.id)
            return sorted(connection.scalars(query.where(MEMBERS.c.group_id == into.id)))

    def groups_of(self, member: str) -> list[str]:
        """Return the names of a principal's groups. Raises as `get`."""
        with self._database.reading() as connection:
            who = self._get(connection, member)
            query = sa.select(PRINCIPALS.c.name).join(MEMBERS, MEMBERS.c.group_id == PRINCIPALS.c.id)
            return sorted(connection.scalars(query.where(MEMBERS.c.member_id == who.id)))

    # --- Tokens ---

    def new_token(
        self, name: str, lifetime: Duration | None = None, *, is_login: bool = False
    ) -> tuple[str, PrincipalToken]:
        """Create a token; return its text, which cannot be retrieved again, and its metadata.

        Args:
            name: name of the owner.
            lifetime: lifetime of the token, None if it never expires.
            is_login: whether it is revoked together with the owner's password.

        Raises:
            SharedObjectNotFound: no principal has that name; the message suggests a similar one.
            UsageError: groups have no tokens.
            InvalidValue: the lifetime is not positive.
        """
        with self._database.writing() as connection:
            who = self._get(connection, name)
            if who.kind is PrincipalKind.GROUP:
                raise UsageError(f"{who.name} is a group, and groups have no tokens", hint="Its members have.")
            return self._new_token(connection, who.id, lifetime, is_login=is_login)

    def end_older(self, name: str, token: int, overlap: Duration) -> None:
        """Let tokens older than a given one expire after a while, unless they expire sooner.

        Args:
            name: name of the owner.
            token: number of the given token.
            overlap: time for which the older ones remain valid.

        Raises:
            SharedObjectNotFound: no principal has that name; the message suggests a similar one.
            InvalidValue: the time is too long to be represented.
        """
        last = Timestamp(Timestamp.now().nanos + overlap.seconds * NANOS_PER_SECOND).nanos
        with self._database.writing() as connection:
            who = self._get(connection, name)
            sooner = sa.or_(TOKENS.c.revoked_at.is_(None), TOKENS.c.revoked_at > last)
            older = sa.update(TOKENS).where(TOKENS.c.principal_id == who.id, TOKENS.c.id < token, sooner)
            connection.execute(older.values(revoked_at=last))

    def tokens(self, name: str) -> list[PrincipalToken]:
        """Return the tokens of a principal, oldest first, including expired and revoked ones. Raises as `get`."""
        with self._database.reading() as connection:
            who = self._get(connection, name)
            rows = connection.execute(sa.select(TOKENS).where(TOKENS.c.principal_id == who.id).order_by(TOKENS.c.id))
            return [_token(row) for row in rows]

    def revoke(self, name: str, token: int | None = None) -> int:
        """Revoke tokens, effective from the next request; return their number.

        Args:
            name: name of the owner.
            token: number of a token; all by default.

        Raises:
            SharedObjectNotFound: no principal has that name; the message suggests a similar one.
        """
        now = Timestamp.now().nanos
        with self._database.writing() as connection:
            who = self._get(connection, name)
            good = sa.or_(TOKENS.c.revoked_at.is_(None), TOKENS.c.revoked_at > now)
            ended = sa.update(TOKENS).where(TOKENS.c.principal_id == who.id, good).values(revoked_at=now)
            if token is not None:
                ended = ended.where(TOKENS.c.id == token)
            count = connection.execute(ended).rowcount
            if token is not None and not count:
                raise SharedObjectNotFound(
                    f"{who.name} has no token {token}, or it is revoked already",
                    hint=f"`odf {who.kind.value} show {who.name}` lists the tokens.",
                )
            return count

    def find(self, text: str) -> Principal | None:
        """Return the owner of a token; None if it is unknown, expired or revoked, or its owner is disabled."""
        if not is_token(text):
            return None
        now = Timestamp.now().nanos
        query = (
            sa.select(*_COLUMNS)
            .join(TOKENS, TOKENS.c.principal_id == PRINCIPALS.c.id)
            .where(
                TOKENS.c.hash == hash_of(text),
                sa.not_(PRINCIPALS.c.is_disabled),
                sa.or_(TOKENS.c.expires_at.is_(None), TOKENS.c.expires_at > now),
                sa.or_(TOKENS.c.revoked_at.is_(None), TOKENS.c.revoked_at > now),
            )
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
            return None if row is None else _principal(row)

    # --- Activation ---

    def new_activation(self, name: str, link_lifetime: Duration, token_lifetime: Duration | None = None) -> str:
        """Create the secret of a link that issues a token once.

        Args:
            name: name of the token's owner.
            link_lifetime: lifetime of the link.
            token_lifetime: lifetime of the token, None if it never expires.

        Raises:
            SharedObjectNotFound: no principal has that name; the message suggests a similar one.
            InvalidValue: a lifetime is not positive.
        """
        text, now = new_secret(), Timestamp.now()
        with self._database.writing() as connection:
            who = self._get(connection, name, (PrincipalKind.RECIPIENT, PrincipalKind.USER))
            row = {
                "principal_id": who.id,
                "hash": hash_of(text),
                "created_at": now.nanos,
                "expires_at": end_after(now, link_lifetime).nanos,
                "token_lifetime": token_lifetime.seconds if token_lifetime else None,
            }
            connection.execute(sa.insert(ACTIVATIONS).values(row))
        return text

    def activate(self, text: str) -> tuple[Principal, str, PrincipalToken] | None:
        """Redeem a link: return its owner and a new token; None if the link is invalid, or the owner is disabled."""
        now = Timestamp.now()
        with self._database.writing() as connection:
            row = connection.execute(
                sa.select(ACTIVATIONS).where(
                    ACTIVATIONS.c.hash == hash_of(text),
                    ACTIVATIONS.c.used_at.is_(None),
                    ACTIVATIONS.c.expires_at > now.nanos,
                )
            ).first()
            if row is None:
                return None
            who = self._by_id(connection, row.principal_id)
            if who.is_disabled:  # the link remains valid in case they are enabled again
                return None
            # The condition is repeated in the update: of two concurrent requests, one changes the row.
            used = sa.update(ACTIVATIONS).where(ACTIVATIONS.c.id == row.id, ACTIVATIONS.c.used_at.is_(None))
            if not connection.execute(used.values(used_at=now.nanos)).rowcount:
                return None
            lifetime = Duration(row.token_lifetime) if row.token_lifetime else None
            return who, *self._new_token(connection, who.id, lifetime)

    # --- Within a transaction ---

    def _new_token(
        self,
        connection: sa.Connection,
        principal_id: int,
        lifetime: Duration | None,
        *,
        is_login: bool = False,
    ) -> tuple[str, PrincipalToken]:
        text, now = new_token(), Timestamp.now()
        end = None if lifetime is None else end_after(now, lifetime)
        row = {
            "principal_id": principal_id,
            "hash": hash_of(text),
            "created_at": now.nanos,
            "expires_at": None if end is None else end.nanos,
            "is_login": is_login,
        }
        key = connection.execute(sa.insert(TOKENS).values(row)).inserted_primary_key
        assert key is not None  # noqa: S101  there is one for one row
        return text, PrincipalToken(key[0], now, end, None)

    def _get(self, connection: sa.Connection, name: str, kinds: tuple[PrincipalKind, ...] = ()) -> Principal:
        row = connection.execute(sa.select(*_COLUMNS).where(PRINCIPALS.c.folded == folded(name))).first()
        found = None if row is None else _principal(row)
        if found is None or (kinds and found.kind not in kinds):
            what = " or ".join(kind.value for kind in kinds) or "user, recipient or group"
            known = [principal.name for principal in self._all(connection, kinds)]
            command = kinds[0].value if len(kinds) == 1 else "recipient"
            raise SharedObjectNotFound(
                f"There is no {what} {name!r}",
                hint=did_you_mean(name, known, otherwise=f"`odf {command} list` shows them."),
            )
        return found

    @staticmethod
    def _by_id(connection: sa.Connection, number: int) -> Principal:
        return _principal(connection.execute(sa.select(*_COLUMNS).where(PRINCIPALS.c.id == number)).one())

    @staticmethod
    def _all(connection: sa.Connection, kinds: tuple[PrincipalKind, ...]) -> Iterator[Principal]:
        query = sa.select(*_COLUMNS).order_by(PRINCIPALS.c.folded)
        if kinds:
            query = query.where(PRINCIPALS.c.kind.in_([kind.value for kind in kinds]))
        return map(_principal, connection.execute(query))


def _principal(row: Any) -> Principal:
    made = Timestamp(row.created_at)
    kind = PrincipalKind(row.kind)
    return Principal(row.id, kind, row.name, row.attributes, row.is_disabled, made, row.is_admin)


def _token(row: Any) -> PrincipalToken:
    end = None if row.expires_at is None else Timestamp(row.expires_at)
    revoked = None if row.revoked_at is None else Timestamp(row.revoked_at)
    return PrincipalToken(row.id, Timestamp(row.created_at), end, revoked)
