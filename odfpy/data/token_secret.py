"""Secrets of tokens: generated here, shown once, and stored only as a hash.

A secret has 256 random bits, so that a plain hash reveals nothing about it.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from odfpy.data.duration import Duration
from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.errors import InvalidValue

PREFIX: Final = "odf_"
"""Prefix of tokens, by which scanners for leaked secrets recognize them."""


def new_secret() -> str:
    """Return a new secret: 43 characters that are valid in URLs."""
    return secrets.token_urlsafe(32)


def new_token() -> str:
    """Return a new bearer token."""
    return PREFIX + new_secret()


def is_token(text: str) -> bool:
    """Return whether a text has the form of our tokens."""
    return text.startswith(PREFIX)


def hash_of(secret: str) -> str:
    """Return the hash by which a secret is stored: SHA-256, in hexadecimal digits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def end_after(now: Timestamp, lifetime: Duration) -> Timestamp:
    """Return the end of a lifetime that begins now.

    Raises:
        InvalidValue: the lifetime is zero.
    """
    if lifetime.seconds <= 0:
        raise InvalidValue("The lifetime must be longer than zero", hint="Write a duration such as 90d.")
    return Timestamp(now.nanos + lifetime.seconds * NANOS_PER_SECOND)
