"""Revocations: statements by which signatures of a key become invalid. They are stored beside the chain.

    info/revocations/<key>   signed statements about a key

A statement names the last block of a dataset before the revocation of a key: the chain has an order, which no clock and
no holder of a stolen key can change. A statement without a block, or about expiry, is based on time; then the time of
a block is used, which cannot go back in a chain either.

A statement is honoured if it is signed by the key itself, or by the dataset's own key for that dataset, or if the user
of this workspace has made it or has received it before. All statements apply together: no later one restores a key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from odfpy.chain.signatures import MAX_SIZE, MalformedSignature
from odfpy.chain.stores.side_files import SideFiles
from odfpy.codec.canonical_json import canonical_json
from odfpy.codec.exact_json import load_exact
from odfpy.codec.tree import TreeError, from_tree, to_tree
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import U64
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DID_KEY_PREFIX, ActorId, DatasetId, KeyPair
from odfpy.dataset.proof import Proof
from odfpy.errors import IntegrityError, InvalidValue
from odfpy.values import dataclass

FOLDER: Final = "info/revocations"
KIND: Final = "KeyRevocations"
MAX_STATEMENTS: Final = 16  # about one key, in one place

_VERSION: Final = 1
_STATEMENT: Final = "KeyRevocation"


class RevokedKey(IntegrityError, code="E471"):
    """A block is signed with a key that had been revoked before."""


class ExpiredKey(RevokedKey, code="E472"):
    """A block is signed with a key that had expired before."""


class UnentitledRevocation(IntegrityError, code="E473"):
    """A revocation is signed by a key that may not revoke the key in question."""


class Reason(Enum):
    """The reason for a revocation, in the terms of RFC 5280.

    After `COMPROMISED` all signatures of the key are invalid; otherwise earlier ones stay valid.
    """

    COMPROMISED = "compromised"
    SUPERSEDED = "superseded"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class LastBlock:
    """The last block of a dataset that a key may have signed."""

    dataset_id: DatasetId
    block_hash: Multihash
    sequence_number: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRevocation:
    """A statement about a key.

    Attributes:
        key: the key, as `did:key`.
        reason: reason for the end of the key.
        time: time of the statement, according to its signer.
        expires: time of expiry; None if the key has ended with the statement.
        since: last block before the end of the key; the statement does not apply to other datasets.
        proof: signature of the statement.
    """

    key: str
    reason: Reason
    time: Timestamp
    expires: Timestamp | None = None
    since: LastBlock | None = None
    proof: Proof

    @classmethod
    def made_by(
        cls,
        pair: KeyPair,
        key: ActorId,
        reason: Reason,
        time: Timestamp,
        *,
        expires: Timestamp | None = None,
        since: LastBlock | None = None,
    ) -> KeyRevocation:
        """Sign a statement.

        Args:
            pair: the key pair that signs the statement.
            key: the key that it is about.
            reason: why the key ends.
            time: time of the statement.
            expires: time of expiry, None for a revocation.
            since: last block with valid signatures; None if the time decides.
        """
        blank = cls(key=str(key), reason=reason, time=time, expires=expires, since=since, proof=_NO_PROOF)
        return replace(blank, proof=Proof.made_by(pair, blank._message()))

    @property
    def actor(self) -> ActorId:
        """The key that the statement is about."""
        return ActorId.parse(self.key)

    @property
    def end(self) -> Timestamp:
        """The time of the key's end, unless a block determines it."""
        return self.expires or self.time

    @property
    def ends_all(self) -> bool:
        """True if all signatures of the key are invalid, regardless of their time."""
        return self.reason is Reason.COMPROMISED and self.expires is None

    def has_come(self, now: Timestamp) -> bool:
        """Return whether the key has ended at a time: expiry takes effect later, revocation immediately."""
        return self.expires is None or now > self.expires

    def in_words(self, dataset_id: DatasetId | None) -> str:
        """Return a description of the end of the key, with reason and signer."""
        if self.expires is not None:
            return f"expired at {self.expires}"
        since = f", after block {self.since.sequence_number}" if self.since is not None else ""
        names = ({} if dataset_id is None else {str(ActorId.owner_of(dataset_id)): "the owner"}) | {self.key: "itself"}
        by = names.get(self.proof.verification_method, self.proof.verification_method)
        return f"was revoked at {self.time}{since} ({self.reason.value}), by {by}"

    def is_honest(self) -> bool:
        """Return whether the statement is signed by its stated signer."""
        return self.proof.is_of(self._message())

    def is_honoured_in(self, dataset_id: DatasetId) -> bool:
        """Return whether its signer is entitled to make it in a dataset, for any user."""
        with suppress(InvalidValue):
            entitled = (self.actor, ActorId.owner_of(dataset_id))
            about = self.since is None or self.since.dataset_id == dataset_id
            return about and self.proof.signer in entitled and self.is_honest()
        return False

    def _message(self) -> bytes:
        tree = to_tree(self)
        del tree["proof"]
        return canonical_json({"kind": _STATEMENT, **tree})


_NO_PROOF: Final = Proof("", "", "")


@dataclass(frozen=True, slots=True)
class KnownRevocations:
    """The statements about keys that the user of this workspace knows, for copies from anywhere.

    Attributes:
        made: the user's own statements, which count for the user in all datasets.
        learnt: statements by others.
    """

    made: tuple[KeyRevocation, ...] = ()
    learnt: tuple[KeyRevocation, ...] = ()

    def get(self, dataset_id: DatasetId) -> tuple[KeyRevocation, ...]:
        """Return the statements that count in a dataset."""
        own = (
            revocation
            for revocation in self.made
            if revocation.since is None or revocation.since.dataset_id == dataset_id
        )
        return (*own, *(revocation for revocation in self.learnt if revocation.is_honoured_in(dataset_id)))

    def everywhere(self) -> tuple[KeyRevocation, ...]:
        """Return the statements that count for every dataset: those of the user, and of the key itself."""
        own = (revocation for revocation in self.made if revocation.since is None)
        return (
            *own,
            *(revocation for revocation in self.learnt if revocation.proof.verification_method == revocation.key),
        )


# --- Files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Document:
    revocations: tuple[KeyRevocation, ...]


def path_of(key: ActorId) -> str:
    """Return the path of the statements about a key."""
    return f"{FOLDER}/{str(key).removeprefix(DID_KEY_PREFIX)}"


def key_of(path: str) -> ActorId | None:
    """Return the key that a file of statements is about, by its path; None for other files."""
    with suppress(InvalidValue):
        key = ActorId.parse(f"{DID_KEY_PREFIX}{path.rpartition('/')[2]}")
        return key if path == path_of(key) else None
    return None


def encode(statements: Iterable[KeyRevocation]) -> bytes:
    """Return the content of a file of statements about a key."""
    tree = {"kind": KIND, "version": _VERSION, "content": to_tree(_Document(tuple(statements)))}
    return (json.dumps(tree, indent=1) + "\n").encode()


def decode(data: bytes, where: str) -> tuple[KeyRevocation, ...]:
    """Parse a file of statements, without verifying them.

    Raises:
        MalformedSignature: the file is invalid; the message names it.
    """
    try:
        tree: Any = load_exact(data) if len(data) <= MAX_SIZE else None
        if not isinstance(tree, dict) or tree.keys() != {"kind", "version", "content"}:
            raise _malformed(where, f"no document of at most {MAX_SIZE} bytes")
        if tree["kind"] != KIND or type(tree["version"]) is not int or tree["version"] != _VERSION:
            raise _malformed(where, f"not {KIND} of version {_VERSION}")
        document: _Document = from_tree(_Document, tree["content"], ("content",))
    except (ValueError, RecursionError) as error:
        raise _malformed(where, "not JSON") from error
    except (TreeError, InvalidValue) as error:
        raise _malformed(where, error.message) from error
    if len(document.revocations) > MAX_STATEMENTS:
        raise _malformed(where, f"more than {MAX_STATEMENTS} statements")
    return document.revocations


def _malformed(where: str, problem: str) -> MalformedSignature:
    return MalformedSignature(
        f"Revocations cannot be read: {where}: {problem}",
        hint="Copy the file from another copy of the dataset, or delete it.",
    )


def honoured_in(side: SideFiles | None, dataset_id: DatasetId, keys: Iterable[ActorId]) -> tuple[KeyRevocation, ...]:
    """Return the honoured statements about keys in a dataset; forged, damaged and unentitled ones are ignored.

    Args:
        side: side files of the dataset, None for none.
        dataset_id: id of the dataset.
        keys: the keys.

    Raises:
        OdfError: a file cannot be read.
    """
    if side is None:
        return ()
    paths = {path_of(key): str(key) for key in keys}
    honoured: list[KeyRevocation] = []
    for path, data in side.read_all(sorted(paths), MAX_SIZE).items() if paths else ():
        with suppress(MalformedSignature):
            honoured += (
                revocation
                for revocation in decode(data, path)
                if revocation.key == paths[path] and revocation.is_honoured_in(dataset_id)
            )
    return tuple(honoured)


def require_entitled(statements: Iterable[KeyRevocation], key: ActorId, dataset_id: DatasetId, where: str) -> None:
    """Check that statements about a key are made by entitled signers.

    Args:
        statements: the statements.
        key: the key.
        dataset_id: id of the dataset.
        where: their file, for messages.

    Raises:
        UnentitledRevocation: a signer is not entitled.
    """
    for statement in statements:
        if statement.key != str(key) or not statement.is_honoured_in(dataset_id):
            raise UnentitledRevocation(
                f"{where}: {statement.proof.verification_method[:100]} cannot revoke the key"
                f" {statement.key[:100]} here",
                hint="Only the key itself and the dataset's own key can. `odf key revoke` revokes it only for you.",
            )


def add(side: SideFiles, statements: Iterable[KeyRevocation]) -> bool:
    """Add statements to the side files; return whether any was new.

    At most `MAX_STATEMENTS` about a key are stored. If there are more, the strongest are retained: the holder of a
    stolen key can sign any number of harmless ones, which must not displace those that end it.

    Raises:
        OdfError: the statements cannot be written.
    """
    by_key: dict[str, list[KeyRevocation]] = {}
    for statement in statements:
        by_key.setdefault(statement.key, []).append(statement)
    files = {}
    for new in by_key.values():
        path = path_of(new[0].actor)
        data = side.read(path, MAX_SIZE)
        existing: tuple[KeyRevocation, ...] = ()
        with suppress(MalformedSignature):
            existing = decode(data, path) if data is not None else ()
        together = _strongest(tuple(dict.fromkeys((*existing, *new))))
        if together != existing:
            files[path] = encode(together)
    side.write_all(files)
    return bool(files)


def _strongest(statements: tuple[KeyRevocation, ...]) -> tuple[KeyRevocation, ...]:
    """Return the statements to retain, in order."""

    def weakness(revocation: KeyRevocation) -> tuple[bool, bool, bool, int, Timestamp]:
        is_by_itself = revocation.proof.verification_method == revocation.key
        since = revocation.since
        # Statements of one dataset only end the key there, and from a block on, whatever time they name.
        return (
            is_by_itself,
            not revocation.ends_all,
            since is not None,
            since.sequence_number if since else 0,
            revocation.end,
        )

    kept = frozenset(sorted(statements, key=weakness)[:MAX_STATEMENTS])
    return tuple(statement for statement in statements if statement in kept)
