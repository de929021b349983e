"""Signatures of blocks by their authors, and of heads; they are stored beside the chain, not in it.

    info/signatures/<block>   a document with the signatures of that block
    refs/head.sig             the same for the head; if it is absent, nothing in this repository is signed

A signature covers the canonical JSON (RFC 8785) of dataset id, block hash, sequence number and time, together with the
kind of the signed object, so that a signature of a block is never valid for anything else. Since blocks are linked by
their hashes, the signature of a block covers all blocks before it.

The dataset's id is the public key of its owner, so verifying `ActorId.owner_of(dataset_id)` needs no authority.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from odfpy.chain.block import HashedBlock
from odfpy.chain.stores.side_files import SideFiles
from odfpy.codec.canonical_json import canonical_json
from odfpy.codec.exact_json import AmbiguousJson, load_exact
from odfpy.codec.tree import TreeError, from_tree, to_tree
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import U64
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import ActorId, DatasetId, KeyPair
from odfpy.dataset.proof import Proof
from odfpy.errors import IntegrityError, InvalidValue, MalformedData
from odfpy.values import dataclass

BLOCK_SIGNATURES: Final = "BlockSignatures"
HEAD_SIGNATURES: Final = "HeadSignatures"
HEAD_PATH: Final = "refs/head.sig"
FOLDER: Final = "info/signatures"

MAX_SIZE: Final = 16 * 1024
"""Maximum bytes of a file of signatures."""
MAX_SIGNATURES: Final = 16

_VERSION: Final = 1
_WEB_PAGE: Final = re.compile(rb"(\xef\xbb\xbf)?\s*<(!doctype html|html|head|\?xml|!--)", re.IGNORECASE)


class ForgedSignature(IntegrityError, code="E650"):
    """A signature was not made by its stated signer, or belongs to another object."""


class MalformedSignature(MalformedData, code="E651"):
    """A file of signatures cannot be read."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature of a block.

    Attributes:
        time: time of the signature, according to its signer.
        proof: the signature itself.
    """

    time: Timestamp
    proof: Proof

    @property
    def signer(self) -> ActorId:
        """The stated signer.

        Raises:
            InvalidValue: it is not a valid key.
        """
        return self.proof.signer


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedBlock:
    """The content of a file of signatures: a block and its signatures."""

    dataset_id: DatasetId
    block_hash: Multihash
    sequence_number: U64
    signatures: tuple[Signature, ...] = ()

    def message(self, kind: str, time: Timestamp) -> bytes:
        """Return the message that a signature with a given time covers."""
        return canonical_json(
            {
                "blockHash": str(self.block_hash),
                "datasetId": str(self.dataset_id),
                "kind": kind,
                "sequenceNumber": self.sequence_number,
                "time": str(time),
            }
        )

    def signed_by(self, keys: Iterable[KeyPair], kind: str, time: Timestamp) -> SignedBlock:
        """Return the document with signatures by the given keys.

        Args:
            keys: the key pairs.
            kind: the kind of document.
            time: the time of the signatures.
        """
        message = self.message(kind, time)
        new_signatures = tuple(Signature(time, Proof.made_by(pair, message)) for pair in keys)
        return replace(self, signatures=new_signatures)

    @property
    def signers(self) -> tuple[ActorId, ...]:
        """The stated signers; `check` verifies them."""
        return tuple(signature.signer for signature in self.signatures)

    def check(self, kind: str, dataset_id: DatasetId, block: Multihash, number: int, where: str) -> None:
        """Check that the document is about a block, and that every signature is valid.

        Args:
            kind: the kind of document.
            dataset_id: id of the dataset.
            block: hash of the block.
            number: sequence number of the block.
            where: the file, for messages.

        Raises:
            ForgedSignature: the document is about another block, or a signature is invalid; the message names both.
        """
        if (self.dataset_id, self.block_hash, self.sequence_number) != (dataset_id, block, number):
            raise _forged(
                f"{where} is of block {self.sequence_number} ({self.block_hash}) of the dataset {self.dataset_id}, but"
                f" lies beside block {number} ({block}) of {dataset_id}"
            )
        messages = {time: self.message(kind, time) for time in {signature.time for signature in self.signatures}}
        for signature in self.signatures:
            if not signature.proof.is_of(messages[signature.time]):
                raise _forged(
                    f"Block {number} ({block}) is not signed by {signature.proof.verification_method}, as {where} says"
                )


def _forged(what: str) -> ForgedSignature:
    return ForgedSignature(
        f"Forged signature: {what}",
        hint="Do not trust this copy; ask the owner of the dataset. Without the file, the block is unsigned.",
    )


# --- Files -----------------------------------------------------------------------------------------------------------


def path_of(block: Multihash) -> str:
    """Return the path of the signatures of a block."""
    return f"{FOLDER}/{block}"


def signed_block_of(path: str) -> Multihash | None:
    """Return the block that a file of signatures is about, by its path; None for other files."""
    with suppress(InvalidValue):
        block = Multihash.parse(path.rpartition("/")[2])
        return block if path == path_of(block) else None
    return None


def encode(signed: SignedBlock, kind: str) -> bytes:
    """Return the content of a file of signatures."""
    tree = {"kind": kind, "version": _VERSION, "content": to_tree(signed)}
    return (json.dumps(tree, indent=1) + "\n").encode()


def decode(data: bytes, kind: str, where: str) -> SignedBlock:
    """Parse a file of signatures, without verifying them.

    Args:
        data: the bytes of the file.
        kind: the kind of document.
        where: the file, for messages.

    Raises:
        MalformedSignature: the file is invalid; the message names it.
    """
    if len(data) > MAX_SIZE:
        raise _malformed(where, f"more than {MAX_SIZE} bytes")
    try:
        tree = load_exact(data)
        if not _is_document(tree, kind):
            raise _malformed(where, f"not {kind} of version {_VERSION}")
        signed: SignedBlock = from_tree(SignedBlock, tree["content"], ("content",))
    except AmbiguousJson as error:
        raise _malformed(where, str(error)) from error
    except (ValueError, KeyError, RecursionError) as error:
        raise _malformed(where, "not JSON") from error
    except (TreeError, InvalidValue) as error:
        raise _malformed(where, error.message) from error
    if len(signed.signatures) > MAX_SIGNATURES:
        raise _malformed(where, f"more than {MAX_SIGNATURES} signatures")
    return signed


def _is_document(tree: Any, kind: str) -> bool:
    """Return whether a tree has exactly the members of a document; `true` does not count as the number 1."""
    return (
        isinstance(tree, dict)
        and tree.keys() == {"kind", "version", "content"}
        and tree["kind"] == kind
        and type(tree["version"]) is int
        and tree["version"] == _VERSION
    )


def _malformed(where: str, problem: str) -> MalformedSignature:
    return MalformedSignature(
        f"Signatures cannot be read: {where}: {problem}",
        hint="`odf verify --repair` fetches signatures of a workspace again. Without the file, the block is unsigned.",
    )


# --- In a dataset ----------------------------------------------------------------------------------------------------


def has_signatures(side: SideFiles) -> bool:
    """Return whether a repository has signatures, with a single request, so that unsigned ones cost no more.

    A web page in place of the file means no signatures: some servers answer so for missing files.

    Raises:
        MalformedSignature: the file has other content, so that this cannot be determined.
    """
    data = side.read(HEAD_PATH, MAX_SIZE)
    if data is None or _WEB_PAGE.match(data):
        return False
    if HEAD_SIGNATURES.encode() not in data:
        raise _malformed(side.describe(HEAD_PATH), f"not {HEAD_SIGNATURES}")
    return True


def read_signatures(side: SideFiles | None, dataset_id: DatasetId, hashed: HashedBlock) -> SignedBlock | None:
    """Return the verified signatures of a block; None if there are none.

    Args:
        side: side files of the dataset, None for none.
        dataset_id: id of the dataset.
        hashed: the block.

    Raises:
        ForgedSignature, MalformedSignature: a signature or file is invalid; the message names block and file.
    """
    return None if side is None else read_all_signatures(side, dataset_id, [hashed])[0]


def read_all_signatures(
    side: SideFiles, dataset_id: DatasetId, blocks: Sequence[HashedBlock]
) -> list[SignedBlock | None]:
    """Return the verified signatures of several blocks, as `read_signatures`.

    Args:
        side: side files of the dataset.
        dataset_id: id of the dataset.
        blocks: the blocks.
    """
    files = side.read_all([path_of(hashed.hash) for hashed in blocks], MAX_SIZE)
    return [_checked(side, dataset_id, hashed, files.get(path_of(hashed.hash))) for hashed in blocks]


def _checked(side: SideFiles, dataset_id: DatasetId, hashed: HashedBlock, data: bytes | None) -> SignedBlock | None:
    if data is None:
        return None
    where = side.describe(path_of(hashed.hash))
    signed = decode(data, BLOCK_SIGNATURES, where)
    signed.check(BLOCK_SIGNATURES, dataset_id, hashed.hash, hashed.block.sequence_number, where)
    return signed


def read_head_signatures(side: SideFiles | None, dataset_id: DatasetId, head: HashedBlock) -> SignedBlock | None:
    """Return the verified signatures of the head; None if there are none, or they belong to an earlier head.

    Args:
        side: side files of the dataset, None for none.
        dataset_id: id of the dataset.
        head: the block of the head.

    Raises:
        ForgedSignature, MalformedSignature: a signature or file is invalid; the message names block and file.
    """
    signed = _read(side, HEAD_PATH, HEAD_SIGNATURES)
    if side is None or signed is None or signed.block_hash != head.hash:
        return None  # the head may have been moved since without a signature
    signed.check(HEAD_SIGNATURES, dataset_id, head.hash, head.block.sequence_number, side.describe(HEAD_PATH))
    return signed


def _read(side: SideFiles | None, path: str, kind: str) -> SignedBlock | None:
    data = None if side is None else side.read(path, MAX_SIZE)
    return None if side is None or data is None else decode(data, kind, side.describe(path))


# --- Report of signers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SignatureReport:
    """The signers of a range of blocks.

    Attributes:
        signed: number of signed blocks.
        unsigned: number of unsigned blocks.
        signers: the signers, those of the newest block first.
    """

    signed: int = 0
    unsigned: int = 0
    signers: tuple[ActorId, ...] = ()

    @classmethod
    def of(cls, blocks: Sequence[SignedBlock | None]) -> SignatureReport:
        """Return the report on blocks, oldest first; None stands for an unsigned block."""
        signed = [block for block in blocks if block is not None and block.signatures]
        signers = dict.fromkeys(signer for block in reversed(signed) for signer in block.signers)
        return cls(len(signed), len(blocks) - len(signed), tuple(signers))
