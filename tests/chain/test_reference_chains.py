"""Chains made by the reference implementation: read, written back to the same bytes, printed alike, valid."""

from __future__ import annotations

import json
from functools import cache

import pytest
from support.fixtures import KAMU, KAMU_DATASETS

from odfpy.chain.block import HashedBlock
from odfpy.chain.encoding import block_document, decode_block, encode_block
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.metadata_chain import check_block_bytes, sum_up
from odfpy.chain.new_blocks import validate
from odfpy.codec.yaml import dump, load_documents
from odfpy.data.multihash import Multihash

EVERY_DATASET = pytest.mark.parametrize("dataset", KAMU_DATASETS)
BLOCKS = [path for name in KAMU_DATASETS for path in sorted((KAMU / name / "blocks").iterdir())]


@cache
def chain(dataset: str) -> list[HashedBlock]:
    """Blocks, oldest first."""
    return DatasetLayout.local(KAMU / dataset).chain.in_order()


@pytest.mark.parametrize("path", BLOCKS, ids=lambda path: f"{path.parts[-3]}-{path.name[5:13]}")
def test_block_is_written_back_to_its_own_bytes(path):
    data = path.read_bytes()
    assert Multihash.of(data) == Multihash.parse(path.name)
    assert encode_block(decode_block(data)) == data
    assert check_block_bytes(Multihash.parse(path.name), data).block == decode_block(data)


@EVERY_DATASET
def test_every_block_is_in_the_chain(dataset):
    files = {path.name for path in (KAMU / dataset / "blocks").iterdir()}
    assert {str(hashed.hash) for hashed in chain(dataset)} == files


@EVERY_DATASET
def test_chain_prints_as_the_reference_prints_it(dataset):
    theirs = [document.tree for document in load_documents((KAMU / dataset / "log.yaml").read_text())]
    ours = [block_document(hashed) for hashed in reversed(chain(dataset))]
    assert ours == theirs
    assert json.dumps(ours) == json.dumps(theirs), "keys are in another order"


@EVERY_DATASET
def test_what_is_printed_reads_back(dataset):
    for hashed in chain(dataset):
        (document,) = load_documents(dump(block_document(hashed)))
        assert document.tree == block_document(hashed)


@EVERY_DATASET
def test_chain_keeps_every_rule(dataset):
    assert validate(chain(dataset)) == sum_up(chain(dataset))


@EVERY_DATASET
def test_state_can_be_summed_up_from_any_block_on(dataset):
    blocks = chain(dataset)
    for cut in range(len(blocks)):
        assert validate(blocks[cut:], sum_up(blocks[:cut])) == sum_up(blocks)
