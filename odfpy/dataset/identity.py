"""Dataset identity: an id is the public key of the dataset's own key pair (ODF specification, "Dataset Identity")."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.data.multihash import decode_multibase, encode_multibase
from odfpy.errors import InvalidValue

DID_ODF_PREFIX = "did:odf:"
DID_KEY_PREFIX = "did:key:"
_ED25519_PUB = b"\xed\x01"
_KEY_SIZE = 32


@dataclass(frozen=True, order=True, slots=True)
class DatasetId:
    """`did:odf:` with an ed25519 public key.

    Attributes:
        public_key: the 32 bytes of the key.
    """

    public_key: bytes

    def __post_init__(self) -> None:
        if len(self.public_key) != _KEY_SIZE:
            raise InvalidValue(f"Not a dataset id: a key has {_KEY_SIZE} bytes, not {len(self.public_key)}")

    @classmethod
    def parse(cls, text: str) -> DatasetId:
        """Read `did:odf:<multibase>`.

        Raises:
            InvalidValue: not an id of a dataset.
        """
        if not text.startswith(DID_ODF_PREFIX):
            raise InvalidValue(f"Not a dataset id: {text!r}", hint="Ids of datasets begin with did:odf:")
        try:
            return cls.from_bytes(decode_multibase(text[len(DID_ODF_PREFIX) :]))
        except InvalidValue as error:
            raise InvalidValue(f"Not a dataset id: {text!r} ({error.message})") from error

    @classmethod
    def from_bytes(cls, data: bytes) -> DatasetId:
        """Read the wire form: the multicodec prefix of ed25519 public keys, then the key."""
        if data[:2] != _ED25519_PUB:
            raise InvalidValue("Not a dataset id: it does not begin with the code of an ed25519 public key")
        return cls(bytes(data[2:]))

    def to_bytes(self) -> bytes:
        """The wire form."""
        return _ED25519_PUB + self.public_key

    def __str__(self) -> str:
        return DID_ODF_PREFIX + encode_multibase(self.to_bytes())


@dataclass(frozen=True, slots=True, repr=False)
class KeyPair:
    """An ed25519 key pair. The private half never goes into a dataset, a log or a `repr`.

    Attributes:
        private_key: the 32 bytes of the seed.
    """

    private_key: bytes

    def __post_init__(self) -> None:
        if len(self.private_key) != _KEY_SIZE:
            raise InvalidValue(f"Not a private key: it must have {_KEY_SIZE} bytes, not {len(self.private_key)}")

    @classmethod
    def generate(cls) -> KeyPair:
        """A new random pair."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @property
    def dataset_id(self) -> DatasetId:
        """The id whose owner holds this pair."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return DatasetId(Ed25519PrivateKey.from_private_bytes(self.private_key).public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """An ed25519 signature of 64 bytes."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.private_key).sign(message)

    def __repr__(self) -> str:
        return f"KeyPair({self.dataset_id})"
