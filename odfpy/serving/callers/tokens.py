"""Access tokens of a workspace: permissions on its datasets over the network.

    .odf/tokens/<sha256 of the token>.yaml      name, scope, creation and expiry; mode 0600

The token itself is shown once, when it is created, and not stored: it has 256 random bits, so that a plain hash is safe
to store. The hash of a presented token is the name of its file; a revoked token has no file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, total_ordering
from pathlib import Path

from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.data.token_secret import end_after, hash_of, is_token, new_token
from odfpy.errors import AlreadyExists, InvalidValue, NotFound, OdfError, did_you_mean, member_named
from odfpy.files import locked_folder, make_folder
from odfpy.repository.documents import load_document, save_document

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")


class TokenNotFound(NotFound, code="E630"):
    """No access token has that name."""


@total_ordering
class Scope(Enum):
    """The scope of a token; each includes the previous ones.

    read: pull datasets, including private ones. write: push to them, and create new ones. admin: overwrite diverged
    histories, change the visibility of datasets.
    """

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Return the scope of a name.

        Raises:
            InvalidValue: unknown name; the message suggests a valid one.
        """
        return member_named(cls, "scope", text)

    def __lt__(self, other: Scope) -> bool:
        order = list(Scope)
        return order.index(self) < order.index(other)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """An access token, without its secret.

    Attributes:
        name: its name for people; also appears in logs.
        scope: what it permits.
        created_at: time of creation.
        expires_at: when it expires, None if it never does.
    """

    name: str
    scope: Scope
    created_at: Timestamp
    expires_at: Timestamp | None = None

    def is_over(self, now: Timestamp) -> bool:
        """Return whether it has expired."""
        return self.expires_at is not None and self.expires_at <= now


class Tokens:
    """The tokens of a workspace."""

    def __init__(self, odf: Path) -> None:
        """
        Args:
            odf: the folder `.odf` of the workspace.
        """
        self._folder = odf / "tokens"

    def new(self, name: str, scope: Scope, lifetime: Duration | None = None) -> str:
        """Create a token; returns its text, which cannot be retrieved again.

        Args:
            name: name of the token.
            scope: what it permits.
            lifetime: how long it is valid, None if it never expires.

        Raises:
            InvalidValue: the name is invalid, or the lifetime is not positive.
            AlreadyExists: the name is taken.
        """
        if not _NAME.fullmatch(name):
            raise InvalidValue(
                f"Not a name of a token: {name!r}", hint="Letters, digits and . _ @ -, at most 100 of them."
            )
        text, now = new_token(), Timestamp.now()
        token = AccessToken(name, scope, now, None if lifetime is None else end_after(now, lifetime))
        try:
            make_folder(self._folder)
            self._folder.chmod(0o700)
            with locked_folder(self._folder):  # of two concurrent calls with the same name, one succeeds
                self._require_new(name)
                save_document(self._path(text), "AccessToken", token)
        except OSError as error:
            raise OdfError(f"Cannot write {self._folder}: {error.strerror}") from error
        return text

    def _require_new(self, name: str) -> None:
        if any(known.name == name for known in self.list()):
            raise AlreadyExists(
                f"An access token {name!r} already exists", hint=f"First run `odf token revoke {name}`."
            )

    def list(self) -> list[AccessToken]:
        """Return all tokens by name, including expired ones."""
        return sorted((token for _, token in self._all()), key=lambda token: token.name)

    def find(self, text: str) -> AccessToken | None:
        """Return a token without its secret, None if it is unknown or has expired."""
        if not is_token(text):
            return None
        path = self._path(text)
        try:
            stamp = path.stat()
        except OSError:
            return None
        token = _load(path, stamp.st_ino, stamp.st_mtime_ns)  # parsing takes longer than a small response
        return None if token is None or token.is_over(Timestamp.now()) else token

    def revoke(self, name: str) -> AccessToken:
        """Revoke a token, effective from the next request.

        Raises:
            TokenNotFound: it does not exist; the message suggests a similar name.
        """
        stored = list(self._all())
        for path, token in stored:
            if token.name == name:
                path.unlink(missing_ok=True)
                return token
        names = [token.name for _, token in stored]
        raise TokenNotFound(
            f"No access token is called {name!r}",
            hint=did_you_mean(name, names, otherwise="`odf token list` shows them."),
        )

    def _all(self) -> Iterator[tuple[Path, AccessToken]]:
        paths = sorted(self._folder.glob("[!.]*.yaml"))
        loaded = ((path, load_document(path, "AccessToken", AccessToken)) for path in paths)
        return ((path, token) for path, token in loaded if token is not None)

    def _path(self, text: str) -> Path:
        return self._folder / f"{hash_of(text)}.yaml"


@lru_cache(maxsize=1000)
def _load(path: Path, *_stamp: int) -> AccessToken | None:
    return load_document(path, "AccessToken", AccessToken)
