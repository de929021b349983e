"""Profile files, with the URL and the credentials for a recipient (Delta Sharing protocol, "Profile File Format")."""

from __future__ import annotations

import json
from typing import Any, Final

from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue

VERSIONS: Final = (1, 2)


def check_version(version: int) -> int:
    """Validate the version of profile files, and return it unchanged.

    Raises:
        InvalidValue: the version does not exist.
    """
    if version not in VERSIONS:
        raise InvalidValue(f"There is no version {version} of profile files", hint="1 is known to all clients; or 2.")
    return version


def profile(endpoint: str, token: str, expires_at: Timestamp | None = None, *, version: int = 1) -> bytes:
    """Return the bytes of a profile file.

    Args:
        endpoint: URL of the server, with the prefix of the protocol.
        token: the bearer token.
        expires_at: expiry of the token, None if it never expires.
        version: 1, which all clients support, or 2.

    Raises:
        InvalidValue: the version does not exist.
    """
    check_version(version)
    tree: dict[str, Any] = {"shareCredentialsVersion": version}
    if version > 1:
        tree["type"] = "bearer_token"
    tree |= {"endpoint": f"{endpoint.rstrip('/')}/", "bearerToken": token}
    if expires_at is not None:
        tree["expirationTime"] = str(expires_at)
    return f"{json.dumps(tree, indent=2)}\n".encode()
