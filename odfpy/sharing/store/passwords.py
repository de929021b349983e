"""Passwords of users: set, checked, removed. Only hashes are kept, of argon2id with what its library recommends."""

from __future__ import annotations

import secrets
import unicodedata
from contextlib import suppress
from functools import lru_cache
from typing import Final

import sqlalchemy as sa

from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue, OdfError
from odfpy.extras import needs_extra
from odfpy.sharing.errors import SharedObjectNotFound
from odfpy.sharing.model import Principal, PrincipalKind
from odfpy.sharing.names import folded
from odfpy.sharing.store.database import Database
from odfpy.sharing.store.principals import Principals, PrincipalToken
from odfpy.sharing.store.tables import PRINCIPALS, TOKENS

with needs_extra("serve", "Passwords", OdfError):
    import argon2
    from argon2.exceptions import InvalidHashError, VerificationError

MIN_LENGTH: Final = 8
MAX_LENGTH: Final = 1000

_HASHER: Final = argon2.PasswordHasher()


def check_password(name: str, password: str) -> None:
    """Check that a text can be the password of a user. Messages never show it.

    Raises:
        InvalidValue: it is too short, too long, cannot be typed, or is the user's name.
    """
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise InvalidValue(
            f"A password has {MIN_LENGTH} to {MAX_LENGTH} characters, and this one has {len(password)}",
            hint="A few words are easier to remember than signs.",
        )
    if not password.isprintable():
        raise InvalidValue("The password has characters that nobody can type", hint="Is it text, in one line?")
    if folded(password) == folded(name):
        raise InvalidValue("The password is the user's name, which is the first guess", hint="Take another one.")


class Passwords:
    """The passwords of a database; recipients and groups have none."""

    def __init__(self, database: Database, principals: Principals) -> None:
        self._database = database
        self._principals = principals

    def set(self, name: str, password: str) -> Principal:
        """Give a user a password, in place of the one from before; tokens that came of that one end.

        Raises:
            SharedObjectNotFound: there is no such user.
            InvalidValue: it cannot be a password.
        """
        user = self._principals.get(name, PrincipalKind.USER)
        check_password(user.name, password)
        self._keep(user, _HASHER.hash(_bytes(password)))
        return user

    def remove(self, name: str) -> Principal:
        """Take a user's password away, and with it the tokens that came of it.

        Raises:
            SharedObjectNotFound: there is no such user.
        """
        user = self._principals.get(name, PrincipalKind.USER)
        self._keep(user, None)
        return user

    def has_one(self, user: Principal) -> bool:
        """Return whether a user has a password."""
        return self._hash_of(user.id) is not None

    def check(self, name: str, password: str) -> Principal | None:
        """The user of a name and password; None for a wrong one, an unknown name, or somebody who is disabled.

        It takes the same time, whichever it is.
        """
        found = self._checked(name, password)
        return found and found[0]

    def log_in(self, name: str, password: str, lifetime: Duration) -> tuple[Principal, str, PrincipalToken] | None:
        """A user and a new token of theirs, for name and password; None as `check`.

        Args:
            name: of the user.
            password: as it was typed.
            lifetime: how long the token is good for.
        """
        found = self._checked(name, password)
        if found is None:
            return None
        user, known = found
        with suppress(SharedObjectNotFound):  # they are removed meanwhile
            text, token = self._principals.new_token(user.name, lifetime, is_login=True)
            if self._hash_of(user.id) == known:
                return user, text, token
            # Another password was set meanwhile, which has ended the tokens that there were by then.
            self._principals.revoke(user.name, token.id)
        return None

    def _checked(self, name: str, password: str) -> tuple[Principal, str] | None:
        """The user, and the hash that is kept now."""
        sought = folded(name) if name.isprintable() else ""  # no database takes half of a surrogate pair
        query = sa.select(PRINCIPALS.c.name, PRINCIPALS.c.password_hash).where(
            PRINCIPALS.c.folded == sought,
            PRINCIPALS.c.kind == PrincipalKind.USER.value,
            sa.not_(PRINCIPALS.c.is_disabled),
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        nobodys = _nobodys_hash()  # also made where it is not needed: the first one asked about shows no difference
        known = nobodys if row is None or row.password_hash is None else row.password_hash
        is_right = _fits(known, password[:MAX_LENGTH]) and len(password) <= MAX_LENGTH
        if row is None or known is nobodys or not is_right:
            return None
        try:
            user = self._principals.get(row.name, PrincipalKind.USER)
        except SharedObjectNotFound:  # removed meanwhile
            return None
        if _HASHER.check_needs_rehash(known):
            fresh = _HASHER.hash(_bytes(password))
            same = sa.update(PRINCIPALS).where(PRINCIPALS.c.id == user.id, PRINCIPALS.c.password_hash == known)
            with self._database.writing() as connection:
                connection.execute(same.values(password_hash=fresh))
            known = fresh
        return user, known

    def _hash_of(self, number: int) -> str | None:
        query = sa.select(PRINCIPALS.c.password_hash).where(PRINCIPALS.c.id == number)
        with self._database.reading() as connection:
            found: str | None = connection.scalar(query)
            return found

    def _keep(self, user: Principal, hashed: str | None) -> None:
        with self._database.writing() as connection:
            changed = sa.update(PRINCIPALS).where(PRINCIPALS.c.id == user.id)
            connection.execute(changed.values(password_hash=hashed))
            now = Timestamp.now().nanos
            good = sa.or_(TOKENS.c.revoked_at.is_(None), TOKENS.c.revoked_at > now)
            theirs = sa.update(TOKENS).where(TOKENS.c.principal_id == user.id, TOKENS.c.is_login, good)
            connection.execute(theirs.values(revoked_at=now))


@lru_cache(maxsize=1)
def _nobodys_hash() -> str:
    """A hash to try the passwords of unknown names on; no password has it."""
    return _HASHER.hash(secrets.token_bytes(32))


def _fits(hashed: str, password: str) -> bool:
    try:
        return _HASHER.verify(hashed, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False


def _bytes(password: str) -> bytes:
    """The bytes of a password; keyboards write the same letter in several ways (RFC 8265)."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
