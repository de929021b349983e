"""Signed webhook calls according to Standard Webhooks (standardwebhooks.com).

A call has the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`: `v1,` and the HMAC-SHA256 of
`<id>.<timestamp>.<body>` in base64. Caller and receiver share a secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Final

from odfpy.errors import MalformedManifest

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the prefix of secrets, not a secret
_SECRET_SIZE = 32


def new_secret() -> str:
    """Return a new secret, in the form that receivers expect."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_SIZE)).decode()


def signed_headers(secret: str, id_: str, timestamp: int, body: bytes, *, receiver: str) -> dict[str, str]:
    """Return the headers of a call.

    Args:
        secret: shared secret of the receiver.
        id_: id of the call; repeated calls have the same id, so that receivers can drop duplicates.
        timestamp: time of the call, in seconds since the epoch.
        body: the JSON body.
        receiver: name of the receiver in messages.

    Raises:
        MalformedManifest: the secret is damaged.
    """
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        raise MalformedManifest(f"The secret of the webhook at {receiver} is damaged") from None
    digest = hmac.new(key, f"{id_}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "webhook-id": id_,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
