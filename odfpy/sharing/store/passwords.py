"""Passwords of users: set, verified, removed.

Only argon2id hashes are stored, with the library's recommended parameters.
"""

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
    """Check that a text is acceptable as a user's password. Messages never contain it.

    Raises:
        InvalidValue: the text is too short, too long, cannot be typed, or equals the user's name.
    """
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise InvalidValue(
            f"A password has {MIN_LENGTH} to {MAX_LENGTH} characters, and this one has {len(password)}",
            hint="A few words are easy to remember.",
        )
    if not password.isprintable():
        raise InvalidValue("The password has characters that cannot be typed", hint="Use text in one line.")
    if folded(password) == folded(name):
        raise InvalidValue("The password equals the user name", hint="Choose another one.")


class Passwords:
    """The passwords in a database; recipients and groups have none."""

    def __init__(self, database: Database, principals: Principals) -> None:
        self._database = database
        self._principals = principals

    def set(self, name: str, password: str) -> Principal:
        """Set or replace a user's password; tokens issued for the previous one are revoked.

        Raises:
            SharedObjectNotFound: the user does not exist.
            InvalidValue: the password is not acceptable.
        """
        user = self._principals.get(name, PrincipalKind.USER)
        check_password(user.name, password)
        self._keep(user, _HASHER.hash(_bytes(password)))
        return user

    def remove(self, name: str) -> Principal:
        """Remove a user's password, and revoke the tokens issued for it.

        Raises:
            SharedObjectNotFound: the user does not exist.
        """
        user = self._principals.get(name, PrincipalKind.USER)
        self._keep(user, None)
        return user

    def has_one(self, user: Principal) -> bool:
        """Return whether a user has a password."""
        return self._hash_of(user.id) is not None

    def check(self, name: str, password: str) -> Principal | None:
        """Return the user for a name and password; None if the password is wrong, or the user is unknown or disabled.

        All cases take the same time.
        """
        found = self._checked(name, password)
        return found and found[0]

    def log_in(self, name: str, password: str, lifetime: Duration) -> tuple[Principal, str, PrincipalToken] | None:
        """Log a user in: return the user and a new token, or None as in `check`.

        Args:
            name: name of the user.
            password: password as entered.
            lifetime: lifetime of the token.
        """
        found = self._checked(name, password)
        if found is None:
            return None
        user, known = found
        with suppress(SharedObjectNotFound):  # the user was removed in the meantime
            text, token = self._principals.new_token(user.name, lifetime, is_login=True)
            if self._hash_of(user.id) == known:
                return user, text, token
            # The password was changed in the meantime, which has revoked the tokens of the old one.
            self._principals.revoke(user.name, token.id)
        return None

    def _checked(self, name: str, password: str) -> tuple[Principal, str] | None:
        """Return the user and the stored hash of the password; None as in `check`."""
        sought = folded(name) if name.isprintable() else ""  # databases do not accept lone surrogates
        query = sa.select(PRINCIPALS.c.name, PRINCIPALS.c.password_hash).where(
            PRINCIPALS.c.folded == sought,
            PRINCIPALS.c.kind == PrincipalKind.USER.value,
            sa.not_(PRINCIPALS.c.is_disabled),
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        nobodys = _nobodys_hash()  # computed even if unused: the first request must not take longer than others
        known = nobodys if row is None or row.password_hash is None else row.password_hash
        is_right = _fits(known, password[:MAX_LENGTH]) and len(password) <= MAX_LENGTH
        if row is None or known is nobodys or not is_right:
            return None
        try:
            user = self._principals.get(row.name, PrincipalKind.USER)
        except SharedObjectNotFound:  # removed in the meantime
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
    """Return a hash to verify passwords of unknown users against; no password matches it."""
    return _HASHER.hash(secrets.token_bytes(32))


def _fits(hashed: str, password: str) -> bool:
    try:
        return _HASHER.verify(hashed, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False


def _bytes(password: str) -> bytes:
    """Return the bytes of a password, normalized: keyboards encode the same letter in several ways (RFC 8265)."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
