"""The user's access tokens for dataset servers, sent as `Authorization: Bearer`.

The environment variable `ODF_TOKEN` takes precedence over the file that `odf login` writes:

    $XDG_CONFIG_HOME/odf/credentials.yaml      mode 0600 (by default in ~/.config)

A token is only sent to the server that it was issued for, not to another one after a redirect.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from odfpy.errors import InvalidValue, MalformedManifest
from odfpy.files import configuration_folder, locked_for_change
from odfpy.http.url import Origin, parse_url
from odfpy.repository.documents import load_document, save_document
from odfpy.values import dataclass

VARIABLE = "ODF_TOKEN"
_SMART = re.compile(r"(?i)odf\+(https?://)")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,8192}")  # characters allowed in a header (RFC 6750)


@dataclass(frozen=True, slots=True)
class _Server:
    url: str
    token: str


@dataclass(frozen=True, slots=True)
class _CredentialsDocument:
    servers: tuple[_Server, ...]


def server_of(url: str) -> str:
    """Return the server of a URL, as `scheme://host:port`; `odf+https://` is equivalent to `https://`.

    Raises:
        InvalidValue: the URL is not an http or https URL.
    """
    return _key(parse_url(_SMART.sub(r"\1", url), InvalidValue).origin)


def authorization(url_or_origin: str | Origin) -> str | None:
    """Return the value of the `Authorization` header for a server, None if there is no token.

    Raises:
        InvalidValue: `ODF_TOKEN` is not a valid token.
        MalformedManifest: the file is damaged.
    """
    token = token_for(url_or_origin)
    return None if token is None else f"Bearer {token}"


def token_for(url_or_origin: str | Origin) -> str | None:
    """Return the token for a server, None if there is none.

    Args:
        url_or_origin: any URL on the server, or its origin.

    Raises:
        InvalidValue: `ODF_TOKEN` is not a valid token, or the argument is not a URL.
        MalformedManifest: the file is damaged.
    """
    server = server_of(url_or_origin) if isinstance(url_or_origin, str) else _key(url_or_origin)
    given = os.environ.get(VARIABLE)
    return check_token(given, VARIABLE) if given else Credentials().get(server)


def advice(url: str) -> str:
    """Return a hint for a rejected request, depending on whether a token was sent."""
    if os.environ.get(VARIABLE):
        return f"It refuses the token in {VARIABLE} for this: it may be incomplete, expired, or lack the scope."
    if authorization(url) is not None:
        return "It refuses the token of `odf login` for this: it may be expired or revoked, or lack the scope."
    return f"Get a token from the operator of the server, then run `odf login URL`, or set {VARIABLE}."


def check_token(text: str, what: str) -> str:
    """Validate a token, and return it without surrounding space. Error messages never contain it.

    Raises:
        InvalidValue: the text is not a valid token.
    """
    text = text.strip()
    if not _TOKEN.fullmatch(text):
        raise InvalidValue(
            f"{what} does not contain an access token", hint="A token has no spaces; `odf token new` creates one."
        )
    return text


class Credentials:
    """The file of access tokens."""

    def __init__(self) -> None:
        self.path = configuration_folder() / "credentials.yaml"

    def servers(self) -> tuple[str, ...]:
        """Return the servers that have tokens."""
        return tuple(sorted(self._load()))

    def get(self, server: str) -> str | None:
        """Return the token for a server, as named by `server_of`.

        Raises:
            MalformedManifest: the file is damaged.
        """
        return self._load().get(server)

    def save(self, server: str, token: str) -> None:
        """Store a token."""
        self._change(lambda known: {**known, server: token})

    def forget(self, server: str) -> bool:
        """Delete the token for a server; return whether there was one."""
        found = self.get(server) is not None
        if found:
            self._change(lambda known: {name: token for name, token in known.items() if name != server})
        return found

    def _change(self, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
        with locked_for_change(self.path):  # prevents lost updates
            servers = tuple(_Server(url, token) for url, token in sorted(change(self._load()).items()))
            save_document(self.path, "Credentials", _CredentialsDocument(servers))

    def _load(self) -> dict[str, str]:
        try:
            document = load_document(self.path, "Credentials", _CredentialsDocument)
        except MalformedManifest:  # its message may quote the invalid line with a token
            raise MalformedManifest(
                f"{self.path} cannot be read: it is not in the format that odf writes",
                hint="Remove the file, and run `odf login` again.",
            ) from None
        return {item.url: item.token for item in document.servers} if document else {}


def _key(origin: Origin) -> str:
    host = f"[{origin.host}]" if ":" in origin.host else origin.host.lower()
    return f"{origin.scheme}://{host}:{origin.port}"
