"""Sealed texts: opaque tokens that a server issues and receives back, as page tokens, in file URLs, or as tickets.

They can only be read and changed with the key. By default the key is random, and tokens become invalid when the server
stops.
"""

from __future__ import annotations

import base64
import json
import os
from binascii import Error as NotBase64
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12
_MAX_LENGTH = 8192


class Seal:
    """Seals JSON trees, and opens sealed texts."""

    def __init__(self, key: bytes | None = None, *, longest: int = _MAX_LENGTH) -> None:
        """
        Args:
            key: 32 bytes, shared by servers that open each other's tokens; random by default.
            longest: maximum length of a sealed text; longer ones are rejected.
        """
        self._longest = longest
        self._cipher = AESGCM(key or AESGCM.generate_key(256))

    def close(self, tree: Any, use: str) -> str:
        """Seal a tree.

        Args:
            tree: JSON tree.
            use: purpose, such as a path; the text can only be opened for the same purpose.
        """
        nonce = os.urandom(_NONCE)
        body = self._cipher.encrypt(nonce, json.dumps(tree, separators=(",", ":")).encode(), use.encode())
        return _text_of(nonce + body)

    def open(self, text: str, use: str) -> Any | None:
        """Return the tree that was sealed for a purpose, None for other texts."""
        if len(text) > self._longest:
            return None
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            if _text_of(data) != text:  # base64 ignores invalid characters, but a token must have a single form
                return None
            return json.loads(self._cipher.decrypt(data[:_NONCE], data[_NONCE:], use.encode()))
        except (NotBase64, InvalidTag, ValueError):
            return None


def _text_of(data: bytes) -> str:
    """Encode bytes in base64 without padding: clients differ in whether they escape "="."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
