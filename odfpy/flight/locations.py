"""Locations of servers, and of the servers that endpoints name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odfpy.errors import InvalidValue

_SCHEMES: Final = ("grpc", "grpc+tcp", "grpc+tls", "grpc+unix")
_ENCRYPTED: Final = "grpc+tls"
_SAME: Final = "arrow-flight-reuse-connection:"


def checked(location: str) -> str:
    """Return the URI of a server, as entered by a user, after validation.

    Raises:
        InvalidValue: the text is not a Flight URI.
    """
    scheme, separator, rest = location.partition("://")
    if not separator or scheme.lower() not in _SCHEMES or not rest:
        raise InvalidValue(
            f"Not the location of a Flight server: {location!r}", hint="Write grpc://HOST:PORT or grpc+tls://HOST:PORT."
        )
    return f"{scheme.lower()}://{rest.rstrip('/')}"


def locations_of(named: Sequence[str], server: str) -> tuple[list[str], list[str]]:
    """Return the locations to try in turn, and the reasons for excluding others.

    No location, or `arrow-flight-reuse-connection://?`, means the same server. If that was reached over TLS, locations
    without TLS are excluded, since credentials would be sent unencrypted.

    Args:
        named: URIs in an endpoint.
        server: the server that has named them.
    """
    usable, others = [], []
    for one in named or (_SAME,):
        scheme = one.partition(":")[0].lower()
        if one.lower().startswith(_SAME):
            usable.append(server)
        elif scheme not in _SCHEMES:
            others.append(f"{one}: unsupported location")
        elif scheme != _ENCRYPTED and server.startswith(_ENCRYPTED):
            others.append(f"{one}: it is not encrypted, as {server} is")
        else:
            usable.append(one)
    return list(dict.fromkeys(usable)), others
