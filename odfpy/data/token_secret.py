"""Secrets of tokens: made here, shown once, and kept nowhere but as a hash.

A secret has 256 random bits, so that a plain hash of it tells nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from odfpy.data.duration import Duration
from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.errors import InvalidValue

PREFIX: Final = "odf_"
"""What tokens begin with, so that programs which look for leaked secrets know them."""


def new_secret() -> str:
    """Return a new secret, of 43 characters that need no quoting in a URL."""
    return secrets.token_urlsafe(32)


def new_token() -> str:
    """Return the text of a new bearer token."""
    return PREFIX + new_secret()


def is_token(text: str) -> bool:
    """Return whether a text can be one of our tokens."""
    return text.startswith(PREFIX)


def hash_of(secret: str) -> str:
    """Return the hash that a secret is known by: SHA-256, in hexadecimal digits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def end_after(now: Timestamp, lifetime: Duration) -> Timestamp:
    """Return the end of what begins now.

    Raises:
        InvalidValue: it would end at once.
    """
    if lifetime.seconds <= 0:
        raise InvalidValue("The lifetime must be longer than zero", hint="Write a duration such as 90d.")
    return Timestamp(now.nanos + lifetime.seconds * NANOS_PER_SECOND)
