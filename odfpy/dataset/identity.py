"""Identities, which are ed25519 public keys (ODF specification, "Dataset Identity").

The id of a dataset is the public key of its own key pair, `did:odf:...`; a committer is identified by a key, too,
`did:key:...`.
"""

from __future__ import annotations

from odfpy.data import base58
from odfpy.data.multihash import decode_multibase, encode_multibase
from odfpy.errors import InvalidValue
from odfpy.values import dataclass

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
        """Parse `did:odf:<multibase>`.

        Raises:
            InvalidValue: the text is not an id of a dataset.
        """
        if not text.startswith(DID_ODF_PREFIX):
            raise InvalidValue(f"Not a dataset id: {text!r}", hint="Ids of datasets begin with did:odf:")
        try:
            return cls.from_bytes(decode_multibase(text[len(DID_ODF_PREFIX) :]))
        except InvalidValue as error:
            raise InvalidValue(f"Not a dataset id: {text!r} ({error.message})") from error

    @classmethod
    def from_bytes(cls, data: bytes) -> DatasetId:
        """Decode the wire form: the multicodec prefix of ed25519 public keys, then the key."""
        if data[:2] != _ED25519_PUB:
            raise InvalidValue("Not a dataset id: it does not begin with the code of an ed25519 public key")
        return cls(bytes(data[2:]))

    def to_bytes(self) -> bytes:
        """Return the wire form."""
        return _ED25519_PUB + self.public_key

    @property
    def multibase(self) -> str:
        """The id without `did:odf:`, which is valid as a file name."""
        return encode_multibase(self.to_bytes())

    def __str__(self) -> str:
        return DID_ODF_PREFIX + self.multibase


@dataclass(frozen=True, order=True, slots=True)
class ActorId:
    """`did:key:` with an ed25519 public key: the identity of a signer. The owner of a dataset is the actor with its
    key.

    Attributes:
        public_key: the 32 bytes of the key.
    """

    public_key: bytes

    def __post_init__(self) -> None:
        if len(self.public_key) != _KEY_SIZE:
            raise InvalidValue(f"Not a key: ed25519 keys have {_KEY_SIZE} bytes, not {len(self.public_key)}")

    @classmethod
    def parse(cls, text: str) -> ActorId:
        """Parse `did:key:<multibase>`.

        Raises:
            InvalidValue: the text is not an ed25519 key.
        """
        if not text.startswith(DID_KEY_PREFIX):
            hint = "Keys begin with did:key:z6Mk; `odf key show` prints yours."
            raise InvalidValue(f"Not a key: {text!r}", hint=hint)
        encoded = text[len(DID_KEY_PREFIX) :]
        try:
            data = base58.decode(encoded[1:]) if encoded[:1] == "z" else decode_multibase(encoded)
        except InvalidValue as error:
            raise InvalidValue(f"Not a key: {text!r} ({error.message})") from error
        if data[:2] != _ED25519_PUB:
            raise InvalidValue(f"Not an ed25519 key: {text!r}", hint="Those begin with did:key:z6Mk.")
        return cls(data[2:])

    @classmethod
    def owner_of(cls, dataset_id: DatasetId) -> ActorId:
        """Return the actor with the key pair of a dataset."""
        return cls(dataset_id.public_key)

    def has_signed(self, message: bytes, signature: bytes) -> bool:
        """Return whether a signature of a message was made with this key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public_key).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    def __str__(self) -> str:
        return f"{DID_KEY_PREFIX}z{base58.encode(_ED25519_PUB + self.public_key)}"


@dataclass(frozen=True, slots=True, repr=False)
class KeyPair:
    """An ed25519 key pair. The private key is never part of a dataset, a log or a `repr`.

    Attributes:
        private_key: the 32 bytes of the seed.
    """

    private_key: bytes

    def __post_init__(self) -> None:
        if len(self.private_key) != _KEY_SIZE:
            raise InvalidValue(f"Not a private key: it must have {_KEY_SIZE} bytes, not {len(self.private_key)}")

    @classmethod
    def generate(cls) -> KeyPair:
        """Generate a random key pair."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @property
    def dataset_id(self) -> DatasetId:
        """The id of the dataset whose owner has this pair."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return DatasetId(Ed25519PrivateKey.from_private_bytes(self.private_key).public_key().public_bytes_raw())

    @property
    def actor(self) -> ActorId:
        """The actor with this pair."""
        return ActorId.owner_of(self.dataset_id)

    def sign(self, message: bytes) -> bytes:
        """Sign bytes; return the ed25519 signature of 64 bytes."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.private_key).sign(message)

    def __repr__(self) -> str:
        return f"KeyPair({self.dataset_id})"
