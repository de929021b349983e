"""Signatures with their signer, in the format of the specification's commitments; see `identity` for keys."""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import Final

from odfpy.dataset.identity import ActorId, KeyPair
from odfpy.errors import InvalidValue
from odfpy.values import dataclass

ED25519: Final = "Ed25519Signature2020"
_BASE64URL: Final = "u"  # its letter in multibase; there is no padding


@dataclass(frozen=True, slots=True)
class Proof:
    """A signature of a message.

    Attributes:
        type: `Ed25519Signature2020`.
        verification_method: the signer's key, as `did:key`.
        proof_value: the signature, in multibase.
    """

    type: str
    verification_method: str
    proof_value: str

    @classmethod
    def made_by(cls, pair: KeyPair, message: bytes) -> Proof:
        """Sign a message, and return the proof."""
        return cls(ED25519, str(pair.actor), _multibase(pair.sign(message)))

    @property
    def signer(self) -> ActorId:
        """The key that the proof names as its signer.

        Raises:
            InvalidValue: the proof does not name a valid key.
        """
        return _signer(self.verification_method)

    def is_of(self, message: bytes) -> bool:
        """Return whether the signature is valid for a message."""
        if self.type != ED25519 or not self.proof_value.startswith(_BASE64URL):
            return False
        text = self.proof_value[1:]
        try:
            signature = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            # Only the canonical text is accepted: decoders ignore some bits of the last letter.
            return _multibase(signature) == self.proof_value and self.signer.has_signed(message, signature)
        except (binascii.Error, ValueError, InvalidValue):
            return False


def _multibase(signature: bytes) -> str:
    return _BASE64URL + base64.urlsafe_b64encode(signature).decode().rstrip("=")


_signer = lru_cache(maxsize=1000)(ActorId.parse)  # few distinct keys make most signatures
