"""Signatures of small datasets."""

from __future__ import annotations

from support.chains.small_datasets import dataset_id

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.signatures import (
    BLOCK_SIGNATURES,
    HEAD_PATH,
    HEAD_SIGNATURES,
    SignedBlock,
    encode,
    path_of,
    read_head_signatures,
    read_signatures,
)
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import KeyPair

ALICE, MALLORY = KeyPair(b"a" * 32), KeyPair(b"m" * 32)
TIME = Timestamp.parse("2024-01-01T12:00:00Z")


def statement(hashed: HashedBlock) -> SignedBlock:
    return SignedBlock(dataset_id=dataset_id(), block_hash=hashed.hash, sequence_number=hashed.block.sequence_number)


def sign(layout: DatasetLayout, *blocks: HashedBlock, pair: KeyPair = ALICE) -> None:
    """Sign some blocks, and the head."""
    assert layout.side is not None
    for hashed in blocks:
        layout.side.write(
            path_of(hashed.hash), encode(statement(hashed).signed_by([pair], BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES)
        )
    head = layout.chain.in_order()[-1]
    layout.side.write(HEAD_PATH, encode(statement(head).signed_by([pair], HEAD_SIGNATURES, TIME), HEAD_SIGNATURES))


def assert_signed(here: DatasetLayout) -> None:
    blocks = here.chain.in_order()
    assert all(read_signatures(here.side, dataset_id(), block) for block in blocks)
    assert read_head_signatures(here.side, dataset_id(), blocks[-1])
