"""Signatures of commits: by the user, and by the dataset's own key if the workspace has it.

Every block of a commit is signed before the head moves, so that it is never visible unsigned. If signing fails, the
commit continues, and a remark is added for the user.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.new_blocks import NewBlocks
from odfpy.chain.references import ReferenceView
from odfpy.chain.revocations import KeyRevocation, RevokedKey
from odfpy.chain.signatures import BLOCK_SIGNATURES, HEAD_PATH, HEAD_SIGNATURES, SignedBlock, encode, path_of
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.coordinator.storage.revoked_keys import announce, end_of_key
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId, KeyPair
from odfpy.errors import OdfError
from odfpy.settings.sections import SignaturesSection


class _Remarks(threading.local):
    """Remarks on the commits of a thread."""

    def __init__(self) -> None:
        self.texts: list[str] = []


class Signing:
    """The signing of commits in one workspace.

    Keys, revocations and settings are read again for each commit: a server runs for a long time, and must not use a key
    after its revocation.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._remarks = _Remarks()

    def remarks(self) -> tuple[str, ...]:
        """Return the distinct remarks on this thread's commits since the last call."""
        texts, self._remarks.texts = tuple(dict.fromkeys(self._remarks.texts)), []
        return texts

    def sign(
        self, layout: DatasetLayout, owner: Callable[[], KeyPair | None], new: NewBlocks, *, with_head: bool = True
    ) -> None:
        """Sign the blocks of a commit; if that fails, add a remark.

        Args:
            layout: the folder of the dataset.
            owner: returns the dataset's own key, if it is available.
            new: the blocks.
            with_head: whether the head moves to the last block.
        """
        is_head = with_head and not isinstance(layout.refs, ReferenceView)
        self._sign(layout, new.state.dataset_id, owner, new.blocks, head=new.blocks[-1:] if is_head else [])

    def sign_head(
        self,
        layout: DatasetLayout,
        dataset_id: DatasetId,
        owner: Callable[[], KeyPair | None],
        block: HashedBlock,
    ) -> None:
        """Sign that the head is at a block; if that fails, add a remark.

        Args:
            layout: the folder of the dataset.
            dataset_id: id of the dataset.
            owner: returns the dataset's own key, if it is available.
            block: the block.
        """
        self._sign(layout, dataset_id, owner, [], head=[block])

    def _sign(
        self,
        layout: DatasetLayout,
        dataset_id: DatasetId,
        owner: Callable[[], KeyPair | None],
        blocks: Sequence[HashedBlock],
        *,
        head: Sequence[HashedBlock],
    ) -> None:
        side = layout.side
        try:
            if side is None or not Config.load(self._root).section(SignaturesSection).sign:
                return
            users = UserKeys()
            time, known = Timestamp.now(), users.revoked
            keys = [
                pair
                for who, key in (("you", users.own), ("the owner", owner))
                for pair in self._at_hand(who, key)
                if self._may_sign(who, end_of_key(pair.actor, dataset_id, layout, known, time))
            ]
            for pair in keys:
                announce(pair.actor, layout, dataset_id, known)
            to_sign = [(hashed, BLOCK_SIGNATURES, path_of(hashed.hash)) for hashed in blocks]
            to_sign += [(hashed, HEAD_SIGNATURES, HEAD_PATH) for hashed in head]
            files: dict[str, bytes] = {}
            for hashed, kind, path in to_sign if keys else ():
                number = hashed.block.sequence_number
                about = SignedBlock(dataset_id=dataset_id, block_hash=hashed.hash, sequence_number=number)
                files[path] = encode(about.signed_by(keys, kind, time), kind)
            side.write_all(files)
        except OdfError as error:
            self._say("not signed", error)

    def _may_sign(self, who: str, end: KeyRevocation | None) -> bool:
        """Return whether a key is neither revoked nor expired; otherwise add a remark."""
        if end is not None:
            what = f"expired at {end.expires}" if end.expires is not None else f"was revoked at {end.time}"
            hint = "`odf key revoke me --reason superseded` replaces it."
            self._say(f"not signed by {who}", RevokedKey(f"the key {what}", hint=hint if who == "you" else None))
        return end is None

    def _at_hand(self, who: str, key: Callable[[], KeyPair | None]) -> Iterator[KeyPair]:
        """Yield a key if it is available; if it cannot be read, add a remark."""
        try:
            pair = key()
        except OdfError as error:
            self._say(f"not signed by {who}", error)
        else:
            yield from (pair,) if pair is not None else ()

    def _say(self, what: str, error: OdfError) -> None:
        self._remarks.texts.append(f"{what}: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
