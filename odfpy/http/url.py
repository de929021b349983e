"""Parsing of http and https URLs, and their safe form for messages."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from odfpy.errors import InvalidValue, OdfError
from odfpy.values import dataclass

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9._:%-]+")
_SAFE = "%/:@!$&'()*+,;=~-._"
_USER = re.compile(r"^([^/]*//)(?:[^/]*@|[^/@:\[]*:(?!\d*(?:/|$))[^@]*@)")
"""User and password before the host; also a password with a slash, which looks like an invalid port."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a URL: scheme, host and port (RFC 6454)."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if _DEFAULT_PORTS[self.scheme] == self.port else f":{self.port}")


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL.

    Attributes:
        origin: origin to connect to.
        path: path and query, quoted.
        authorization: value of the `Authorization` header, if the URL contains a user name.
        label: name for messages, if path or query may contain secrets.
        redirected: whether it is the target of a redirect; its query is then often a temporary signature.
    """

    origin: Origin
    path: str
    authorization: str | None = None
    label: str | None = None
    redirected: bool = False

    def __str__(self) -> str:
        """Return the URL without user and password."""
        return f"{self.origin}{self.path}"

    @property
    def shown(self) -> str:
        """Return the name for messages."""
        if self.label:
            return f"{self.label} (after a redirect)" if self.redirected else self.label
        return shown_url(str(self)) if self.redirected else str(self)


def split_url(text: str) -> SplitResult:
    """Split a URL into its parts.

    Raises:
        InvalidValue: the text is not a URL.
    """
    try:
        return urlsplit(text)
    except ValueError as error:
        raise InvalidValue(f"Not a URL: {without_user(text)!r} ({error})") from error


def parse_url(url: str, error: type[OdfError], label: str | None = None) -> Target:
    """Parse an http or https URL.

    Args:
        url: the text.
        error: class of the error to raise.
        label: name for messages; the text by default.

    Raises:
        error: the URL is invalid.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
    except ValueError:
        host, port = "", None
    if not _HOST.fullmatch(host) or parts.scheme not in _DEFAULT_PORTS:
        raise error(f"Not an http or https URL: {label or without_user(url)!r}")
    path = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE + '?')}" if parts.query else "")
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Target(Origin(parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme]), path, authorization, label)


def follow(target: Target, location: str, error: type[OdfError]) -> Target:
    """Return the target of a redirect.

    Args:
        target: the requested URL.
        location: the header, as decoded by the standard library.
        error: class of the error to raise.

    Raises:
        error: the redirect must not be followed.
    """
    quoted = quote(location.encode("latin-1", "replace"), safe=_SAFE + "?#[]")
    try:
        joined = urljoin(str(target), quoted)
    except ValueError:
        joined = quoted
    scheme = joined.partition(":")[0]
    if scheme not in _DEFAULT_PORTS:
        raise error(f"{target.shown}: redirected to {scheme[:20]!r}, and only http and https are followed")
    new = replace(parse_url(joined, error, target.label), redirected=True)
    if (target.origin.scheme, new.origin.scheme) == ("https", "http"):
        raise error(f"{target.shown}: redirected from https to {new.origin}, which is not safe")
    return new


def without_user(url: str) -> str:
    """Return the URL without user and password, safe for messages and storage."""
    return _USER.sub(r"\1", url)


def shown_url(url: str) -> str:
    """Return the URL without user and query, which may be secret."""
    return without_user(url).partition("?")[0]
