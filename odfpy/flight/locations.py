"""Locations: where a server is, and where it says that the rows of an endpoint are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odfpy.errors import InvalidValue

_SCHEMES: Final = ("grpc", "grpc+tcp", "grpc+tls", "grpc+unix")
_ENCRYPTED: Final = "grpc+tls"
_SAME: Final = "arrow-flight-reuse-connection:"


def checked(location: str) -> str:
    """The URI of a server, as a person has written it.

    Raises:
        InvalidValue: it is not of Flight.
    """
    scheme, separator, rest = location.partition("://")
    if not separator or scheme.lower() not in _SCHEMES or not rest:
        raise InvalidValue(
            f"Not the location of a Flight server: {location!r}", hint="Write grpc://HOST:PORT or grpc+tls://HOST:PORT."
        )
    return f"{scheme.lower()}://{rest.rstrip('/')}"


def locations_of(named: Sequence[str], server: str) -> tuple[list[str], list[str]]:
    """Locations to be tried in turn, and what speaks against the others.

    No location, or `arrow-flight-reuse-connection://?`, is the server that has been asked. Who was asked in secret is
    not sent to places where the credentials would travel openly.

    Args:
        named: URIs of an endpoint.
        server: who has named them.
    """
    usable, others = [], []
    for one in named or (_SAME,):
        scheme = one.partition(":")[0].lower()
        if one.lower().startswith(_SAME):
            usable.append(server)
        elif scheme not in _SCHEMES:
            others.append(f"{one}: Flight does not go there")
        elif scheme != _ENCRYPTED and server.startswith(_ENCRYPTED):
            others.append(f"{one}: it is not encrypted, as {server} is")
        else:
            usable.append(one)
    return list(dict.fromkeys(usable)), others
