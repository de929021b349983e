"""What is written is read back the same: for random events of every kind, in every form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.chains.values import EVENT_KINDS, attributes, blocks_with, json_values, snapshots, texts
from support.examples import examples

from odfpy.chain.block import DatasetSnapshot, MetadataBlock
from odfpy.chain.encoding import decode_block, dump_snapshot, encode_block, load_snapshots
from odfpy.codec.tree import from_tree, to_tree
from odfpy.codec.yaml import dump, load_documents

EVERY_KIND = pytest.mark.parametrize("kind", EVENT_KINDS, ids=lambda kind: kind.__name__)


def through_yaml(tree: Any) -> Any:
    (document,) = load_documents(dump(tree))
    return document.tree


@EVERY_KIND
@settings(max_examples=examples(20, 50))
@given(data=st.data())
def test_flatbuffer_of_a_block(kind: type, data: st.DataObject):
    block = data.draw(blocks_with(kind))
    encoded = encode_block(block)
    decoded = decode_block(encoded)
    assert decoded == block
    assert encode_block(decoded) == encoded


@EVERY_KIND
@settings(max_examples=examples(20, 50))
@given(data=st.data())
def test_tree_of_a_block(kind: type, data: st.DataObject):
    block = data.draw(blocks_with(kind))
    tree = to_tree(block)
    assert from_tree(MetadataBlock, tree) == block
    assert from_tree(MetadataBlock, json.loads(json.dumps(tree))) == block


@EVERY_KIND
@settings(max_examples=20)
@given(data=st.data())
def test_yaml_of_a_block(kind: type, data: st.DataObject):
    block = data.draw(blocks_with(kind))
    assert from_tree(MetadataBlock, through_yaml(to_tree(block))) == block


@given(snapshots)
def test_yaml_of_a_snapshot(snapshot: DatasetSnapshot):
    assert load_snapshots(dump_snapshot(snapshot), "test") == [snapshot]


@settings(max_examples=examples(80, 300))
@given(json_values)
def test_yaml_of_any_tree(tree: Any):
    assert through_yaml([tree]) == [tree]


@settings(max_examples=examples(80, 300))
@given(st.recursive(texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=6))
def test_yaml_of_any_text_at_any_place(tree: Any):
    assert through_yaml([tree]) == [tree]


TRICKY = [
    "", " ", "yes", "No", "on", "null", "~", "true", "FALSE", "1", "-0", "08", "0o17", "0x1f", "1_000", "1e5", ".5", "1.",
    ".inf", ".nan", "2024-01-01", "12:30:00", "=", "<<", "a: b", "a #b", "- a", "? a", "&a", "*a", "!a", "%a", "@a", "`a`",
    "[", "]", "{", "}", "'", '"', "'a", '"a', "\\n", "a\nb", "a\n", "\na", "\n", "a\n\n", " a\nb", "a \nb", "a\n b", "a\n\tb",
    "\ta", "a\t", "a\r\nb", "\r", "a\x85b", "a\u2028b", "\ufeffa", "a\x00b", "\x7f", "---", "...", "--- a\n...", "|", ">", "é",
    "\U0001f600", "\U0001f600\nb", "SELECT 1 -- it's\nFROM t\n", "x" * 5000, "word " * 2000, "\ufffe", "1" * 1000,
]  # fmt: skip


@pytest.mark.parametrize("text", TRICKY, ids=lambda text: ascii(text[:20]))
def test_yaml_of_a_tricky_text(text: str):
    assert through_yaml({"a": [{text: text}, text]}) == {"a": [{text: text}, text]}


@given(attributes)
def test_attributes_keep_their_text(value: Any):
    assert value.of(value.to_dict()) == value
