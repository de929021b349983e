"""Access tokens of a workspace: who may do what with its datasets over the network.

    .odf/tokens/<sha256 of the token>.yaml      name, scope, when it was made and when it ends; mode 0600

The token itself is shown once, when it is made, and kept nowhere: it has 256 random bits, so that a plain hash of it
tells nothing. Whoever asks with a token leads to a file by its hash; a token that is revoked has no file any more.
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
    """No access token goes by that name."""


@total_ordering
class Scope(Enum):
    """The scope of a token; each includes those before it.

    read: pull datasets, also private ones. write: push to them, and make new ones. admin: overwrite what has diverged,
    make datasets public or private.
    """

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    @classmethod
    def parse(cls, text: str) -> Scope:
        """The scope of that name.

        Raises:
            InvalidValue: with a suggestion.
        """
        return member_named(cls, "scope", text)

    def __lt__(self, other: Scope) -> bool:
        order = list(Scope)
        return order.index(self) < order.index(other)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """An access token, without its secret.

    Attributes:
        name: what people call it; also stands in logs.
        scope: what it is good for.
        created_at: when it was made.
        expires_at: when it ends, None for never.
    """

    name: str
    scope: Scope
    created_at: Timestamp
    expires_at: Timestamp | None = None

    def is_over(self, now: Timestamp) -> bool:
        """Return whether it has ended."""
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
        """Make a token; gives its text, which cannot be had again.

        Args:
            name: name of the token.
            scope: what it is good for.
            lifetime: how long it is valid, None for ever.

        Raises:
            InvalidValue: not a name, or no time to live.
            AlreadyExists: there is one of that name.
        """
        if not _NAME.fullmatch(name):
            raise InvalidValue(
                f"Not a name of a token: {name!r}", hint="Letters, digits and . _ @ -, at most 100 of them."
            )
        text, now = new_token(), Timestamp.now()
        made = AccessToken(name, scope, now, None if lifetime is None else end_after(now, lifetime))
        try:
            make_folder(self._folder)
            self._folder.chmod(0o700)
            with locked_folder(self._folder):  # of two at once with the same name, one is made
                self._require_new(name)
                save_document(self._path(text), "AccessToken", made)
        except OSError as error:
            raise OdfError(f"Cannot write {self._folder}: {error.strerror}") from error
        return text

    def _require_new(self, name: str) -> None:
        if any(known.name == name for known in self.list()):
            raise AlreadyExists(
                f"An access token {name!r} already exists", hint=f"First run `odf token revoke {name}`."
            )

    def list(self) -> list[AccessToken]:
        """All tokens, by name, also those that are over."""
        return sorted((token for _, token in self._all()), key=lambda token: token.name)

    def find(self, text: str) -> AccessToken | None:
        """Return what is known of a token, None if there is no such token, or it is over."""
        if not is_token(text):
            return None
        path = self._path(text)
        try:
            stamp = path.stat()
        except OSError:
            return None
        token = _load(path, stamp.st_ino, stamp.st_mtime_ns)  # parsing takes longer than a small answer
        return None if token is None or token.is_over(Timestamp.now()) else token

    def revoke(self, name: str) -> AccessToken:
        """End a token, from the next request on.

        Raises:
            TokenNotFound: with a suggestion.
        """
        found = list(self._all())
        for path, token in found:
            if token.name == name:
                path.unlink(missing_ok=True)
                return token
        names = [token.name for _, token in found]
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
