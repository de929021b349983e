"""Sealed texts: what a server gives away to have it back, as a token of a page, in the url of a file, or as a ticket.

Nobody else can read or change them. A key that is made here lives as long as the server does, and what is sealed with
it ends then.
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
    """Seals trees of JSON, and opens what it has sealed."""

    def __init__(self, key: bytes | None = None, *, longest: int = _MAX_LENGTH) -> None:
        """
        Args:
            key: 32 bytes, where several servers open each other's; random by default.
            longest: characters that a sealed text has at most; longer ones are not looked at.
        """
        self._longest = longest
        self._cipher = AESGCM(key or AESGCM.generate_key(256))

    def close(self, tree: Any, use: str) -> str:
        """Seal a tree.

        Args:
            tree: of JSON.
            use: what it is for, such as a path; it opens for nothing else.
        """
        nonce = os.urandom(_NONCE)
        body = self._cipher.encrypt(nonce, json.dumps(tree, separators=(",", ":")).encode(), use.encode())
        return _text_of(nonce + body)

    def open(self, text: str, use: str) -> Any | None:
        """Return what was sealed for a use, None for any other text."""
        if len(text) > self._longest:
            return None
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            if _text_of(data) != text:  # base64 skips foreign characters: what is good once must not have other texts
                return None
            return json.loads(self._cipher.decrypt(data[:_NONCE], data[_NONCE:], use.encode()))
        except (NotBase64, InvalidTag, ValueError):
            return None


def _text_of(data: bytes) -> str:
    """Bytes in base64, without padding: some clients pass "=" on as it is, others as %3D."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
