"""Users, recipients and groups, and their tokens.

Of a token only the hash is kept, as of all access tokens (`odfpy.data.token_secret`). Passwords have fewer
bits, so that theirs is argon2.
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
        created_at: when it was made.
        expires_at: when it ends, None for never.
        revoked_at: from when on it is refused, None if it is not.
    """

    id: int
    created_at: Timestamp
    expires_at: Timestamp | None
    revoked_at: Timestamp | None

    def is_over(self, now: Timestamp) -> bool:
        """Return whether it has ended, or was revoked."""
        return any(end is not None and end <= now for end in (self.expires_at, self.revoked_at))


class Principals:
    """The principals of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- Principals ---

    def add(self, kind: PrincipalKind, name: str, attributes: Mapping[str, str] | None = None) -> Principal:
        """Add a principal, who has no token and no grant yet.

        Args:
            kind: what they are.
            name: how they are called.
            attributes: what conditions on rows may name.

        Raises:
            InvalidValue: not a name.
            AlreadyExists: there is one of that name.
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
        """The principal of a name.

        Args:
            name: the name, in small letters or large.
            kinds: what it may be; anything if empty.

        Raises:
            SharedObjectNotFound: with a suggestion.
        """
        with self._database.reading() as connection:
            return self._get(connection, name, kinds)

    def all(self, *kinds: PrincipalKind) -> list[Principal]:
        """All principals of some kinds, or of all, by name."""
        with self._database.reading() as connection:
            return list(self._all(connection, kinds))

    def remove(self, name: str, *kinds: PrincipalKind) -> Principal:
        """Remove a principal, with tokens and grants. Raises as `get`."""
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
        """Change what is given.

        Args:
            name: of the principal.
            kinds: what it may be; anything if empty.
            attributes: take the place of all that there were.
            is_disabled: whether their tokens are refused, from the next request on.
            is_admin: whether they may administer the workspace over the network.

        Raises:
            SharedObjectNotFound: with a suggestion.
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
        """Put a user or recipient into a group; groups have no groups in them.

        Raises:
            SharedObjectNotFound: with a suggestion.
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
        """Take a member out of a group.

        Raises:
            SharedObjectNotFound: there is no such group, or nobody of that name in it.
        """
        with self._database.writing() as connection:
            into, who = self._get(connection, group, (PrincipalKind.GROUP,)), self._get(connection, member)
            found = sa.delete(MEMBERS).where(MEMBERS.c.group_id == into.id, MEMBERS.c.member_id == who.id)
            if not connection.execute(found).rowcount:
                raise SharedObjectNotFound(
                    f"{who.name} is not in the group {into.name}", hint="`odf group list` shows who is in it."
                )

    def members(self, group: str) -> list[str]:
        """Names of the members of a group. Raises as `get`."""
        with self._database.reading() as connection:
            into = self._get(connection, group, (PrincipalKind.GROUP,))
            query = sa.select(PRINCIPALS.c.name).join(MEMBERS, MEMBERS.c.member_id == PRINCIPALS.c.id)
            return sorted(connection.scalars(query.where(MEMBERS.c.group_id == into.id)))

    def groups_of(self, member: str) -> list[str]:
        """Names of the groups that a principal is in. Raises as `get`."""
        with self._database.reading() as connection:
            who = self._get(connection, member)
            query = sa.select(PRINCIPALS.c.name).join(MEMBERS, MEMBERS.c.group_id == PRINCIPALS.c.id)
            return sorted(connection.scalars(query.where(MEMBERS.c.member_id == who.id)))

    # --- Tokens ---

    def new_token(
        self, name: str, lifetime: Duration | None = None, *, is_login: bool = False
    ) -> tuple[str, PrincipalToken]:
        """Make a token; gives its text, which cannot be had again, and what is known of it.

        Args:
            name: whose it is.
            lifetime: how long it is good for, None for ever.
            is_login: whether it ends with the password that it is given for.

        Raises:
            SharedObjectNotFound: with a suggestion.
            UsageError: groups have no tokens.
            InvalidValue: no time to live.
        """
        with self._database.writing() as connection:
            who = self._get(connection, name)
            if who.kind is PrincipalKind.GROUP:
                raise UsageError(f"{who.name} is a group, and groups have no tokens", hint="Its members have.")
            return self._new_token(connection, who.id, lifetime, is_login=is_login)

    def end_older(self, name: str, token: int, overlap: Duration) -> None:
        """Let the tokens from before another one end after a while, those that end sooner as they are.

        Args:
            name: whose they are.
            token: number of that one.
            overlap: how long the others go on to be good.

        Raises:
            SharedObjectNotFound: with a suggestion.
            InvalidValue: it is too long for any clock.
        """
        last = Timestamp(Timestamp.now().nanos + overlap.seconds * NANOS_PER_SECOND).nanos
        with self._database.writing() as connection:
            who = self._get(connection, name)
            sooner = sa.or_(TOKENS.c.revoked_at.is_(None), TOKENS.c.revoked_at > last)
            older = sa.update(TOKENS).where(TOKENS.c.principal_id == who.id, TOKENS.c.id < token, sooner)
            connection.execute(older.values(revoked_at=last))

    def tokens(self, name: str) -> list[PrincipalToken]:
        """The tokens of a principal, the oldest first, also those that are over. Raises as `get`."""
        with self._database.reading() as connection:
            who = self._get(connection, name)
            rows = connection.execute(sa.select(TOKENS).where(TOKENS.c.principal_id == who.id).order_by(TOKENS.c.id))
            return [_token(row) for row in rows]

    def revoke(self, name: str, token: int | None = None) -> int:
        """End tokens from the next request on; gives how many.

        Args:
            name: whose they are.
            token: number of one; all by default.

        Raises:
            SharedObjectNotFound: with a suggestion.
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
        """Return whose token it is; None if it is nobody's, or over, or its owner is disabled."""
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
        """Make the secret of a link that gives a token once.

        Args:
            name: who gets the token.
            link_lifetime: how long the link is good for.
            token_lifetime: how long the token will be good for, None for ever.

        Raises:
            SharedObjectNotFound: with a suggestion.
            InvalidValue: no time to live.
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
        """Use a link: whose it is, and their new token; None if it was used, is over, or never was."""
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
            # The condition is said again: of two who come at the same time, one changes the row.
            used = sa.update(ACTIVATIONS).where(ACTIVATIONS.c.id == row.id, ACTIVATIONS.c.used_at.is_(None))
            if not connection.execute(used.values(used_at=now.nanos)).rowcount:
                return None
            who = self._by_id(connection, row.principal_id)
            if who.is_disabled:
                return None
            lifetime = Duration(row.token_lifetime) if row.token_lifetime else None
            return who, *self._new_token(connection, who.id, lifetime)

    # --- Inside of a transaction ---

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
            known = [one.name for one in self._all(connection, kinds)]
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
