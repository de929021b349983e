"""Signatures go along with blocks, through folders and servers; forged ones stop a transfer before anything comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.chains.signing import ALICE, MALLORY, TIME, assert_signed, sign, statement
from support.chains.small_datasets import add_info, add_slice, make_dataset
from support.servers.static_server import StaticServer, endless, send, static_server

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.required_signers import NotSigned, RequiredSigners
from odfpy.chain.signatures import (
    BLOCK_SIGNATURES,
    HEAD_PATH,
    ForgedSignature,
    MalformedSignature,
    SignatureReport,
    encode,
    path_of,
)
from odfpy.chain.stores.ref_store import HEAD
from odfpy.errors import ObjectNotFound
from odfpy.repository.locations.http import http_dataset
from odfpy.repository.transfer.options import TransferOptions
from odfpy.repository.transfer.simple import transfer

BY_ALICE = RequiredSigners("alice", frozenset({ALICE.actor}), owner=False)


@pytest.fixture
def there(tmp_path: Path) -> DatasetLayout:
    layout = make_dataset(DatasetLayout.local(tmp_path / "there"), "one", "two")
    sign(layout, *layout.chain.in_order())
    return layout


@pytest.fixture
def here(tmp_path: Path) -> DatasetLayout:
    return DatasetLayout.local(tmp_path / "here")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    with static_server(tmp_path) as server:
        yield server


@pytest.mark.parametrize("through", ["folder", "server"])
def test_signatures_come_with_their_blocks_and_are_told(
    through: str, there: DatasetLayout, here: DatasetLayout, server: StaticServer
):
    source = there if through == "folder" else http_dataset(f"{server.url}/there")
    result = transfer(source, here, TransferOptions(required=BY_ALICE))
    assert result.signatures == SignatureReport(3, 0, (ALICE.actor,))
    assert_signed(here)
    add_info(there, "three")
    sign(there, there.chain.in_order()[-1])
    assert transfer(source, here, TransferOptions(required=BY_ALICE)).signatures == SignatureReport(
        1, 0, (ALICE.actor,)
    )
    assert_signed(here)


def test_a_place_without_signatures_is_asked_once(there: DatasetLayout, here: DatasetLayout, server: StaticServer):
    assert there.side is not None
    there.side.delete(HEAD_PATH)
    result = transfer(http_dataset(f"{server.url}/there"), here)
    assert result.signatures == SignatureReport(0, 3, ())
    assert [path for path in server.asked() if "sig" in path] == ["/there/refs/head.sig"]
    assert not list(here.side.names("info/signatures")) if here.side else False


def test_a_transfer_that_fails_leaves_the_signatures_of_the_head(there: DatasetLayout, here: DatasetLayout):
    transfer(there, here)
    assert here.side is not None
    before = here.side.read(HEAD_PATH, 10_000)
    (slice_name,) = add_slice(there, b"rows")
    sign(there, *there.chain.in_order()[-2:])
    there.data.delete(slice_name)
    with pytest.raises(ObjectNotFound):
        transfer(there, here)
    assert here.side.read(HEAD_PATH, 10_000) == before
    assert len(list(here.side.names("info/signatures"))) == 3


def test_a_branch_that_comes_leaves_the_signatures_of_the_head(there: DatasetLayout, here: DatasetLayout):
    transfer(there, here)
    assert here.side is not None
    before = here.side.read(HEAD_PATH, 10_000)
    add_info(there, "three")
    sign(there, there.chain.in_order()[-1])
    transfer(there, here.on(ReferenceName.of(ReferenceKind.BRANCH, "review")), TransferOptions(force=True))
    assert here.side.read(HEAD_PATH, 10_000) == before
    assert_signed(there)


@pytest.mark.parametrize("status", [200, 401, 403, 404])
def test_a_server_that_answers_oddly_has_no_signatures(
    status: int, there: DatasetLayout, here: DatasetLayout, server: StaticServer
):
    server.special["/refs/head.sig"] = lambda handler: send(handler, b"<html>" + b"x" * 50_000, status=status)
    assert transfer(http_dataset(f"{server.url}/there"), here).signatures == SignatureReport(0, 3, ())


def test_blocks_that_nobody_has_signed_are_counted(there: DatasetLayout, here: DatasetLayout):
    assert there.side is not None
    there.side.delete(path_of(there.chain.in_order()[1].hash))
    assert transfer(there, here).signatures == SignatureReport(2, 1, (ALICE.actor,))


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("how", ["forged", "damaged"])
def test_a_bad_signature_stops_the_transfer_and_names_the_block(
    how: str, which: int, there: DatasetLayout, here: DatasetLayout, server: StaticServer
):
    assert there.side is not None
    block = there.chain.in_order()[which]
    other = statement(replace(block, block=replace(block.block, sequence_number=9)))
    data = b"{" if how == "damaged" else encode(other.signed_by([MALLORY], BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES)
    there.side.write(path_of(block.hash), data)
    with pytest.raises((ForgedSignature, MalformedSignature), match=str(block.hash)):
        transfer(http_dataset(f"{server.url}/there"), here)
    assert (here.refs.get(HEAD), list(here.blocks)) == (None, [])


def test_a_copy_that_is_not_signed_by_whom_it_must_be_is_refused(there: DatasetLayout, here: DatasetLayout):
    add_info(there, "by mallory")
    sign(there, there.chain.in_order()[-1], pair=MALLORY)
    with pytest.raises(NotSigned, match="needs alice"):
        transfer(there, here, TransferOptions(required=BY_ALICE))
    add_info(there, "by nobody")
    with pytest.raises(NotSigned, match=r"is not signed; .* needs alice"):
        transfer(there, here, TransferOptions(required=BY_ALICE))
    assert here.refs.get(HEAD) is None


def test_one_signature_vouches_for_all_before_it(here: DatasetLayout):
    there = make_dataset(DatasetLayout.in_memory(), "one", "two")
    sign(there, there.chain.in_order()[-1])
    assert transfer(there, here, TransferOptions(required=BY_ALICE)).signatures == SignatureReport(1, 2, (ALICE.actor,))


def test_places_without_room_for_signatures_still_take_and_give_blocks(there: DatasetLayout, here: DatasetLayout):
    narrow = replace(DatasetLayout.in_memory(), side=None)
    assert transfer(there, narrow).signatures == SignatureReport(3, 0, (ALICE.actor,))
    assert transfer(narrow, here).signatures == SignatureReport(0, 3, ())


def test_going_back_by_force_brings_the_signature_of_the_head(there: DatasetLayout, here: DatasetLayout):
    transfer(there, here)
    add_info(here, "more")
    sign(here, here.chain.in_order()[-1])
    result = transfer(there, here, TransferOptions(force=True))
    assert (result.num_dropped, result.signatures) == (1, SignatureReport())
    assert_signed(here)


def test_going_back_by_force_demands_a_signature_of_where_it_goes_back_to(there: DatasetLayout, here: DatasetLayout):
    add_info(there, "unsigned")
    back = there.refs.get(HEAD)
    add_info(there, "signed")
    sign(there, there.chain.in_order()[-1])
    transfer(there, here, TransferOptions(required=BY_ALICE))
    signed = here.refs.get(HEAD)
    there.refs.compare_and_swap(HEAD, signed, back)
    with pytest.raises(NotSigned, match=r"is not signed; .* needs alice"):
        transfer(there, here, TransferOptions(force=True, required=BY_ALICE))
    assert here.refs.get(HEAD) == signed


def test_a_signature_made_of_where_a_source_went_back_to_comes_along(there: DatasetLayout, here: DatasetLayout):
    add_info(there, "signed late")
    transfer(there, here)
    add_info(here, "more")
    sign(there, there.chain.in_order()[-1])
    result = transfer(there, here, TransferOptions(force=True, required=BY_ALICE))
    assert (result.num_dropped, result.signatures) == (1, SignatureReport())
    assert_signed(here)


def test_an_endless_file_of_signatures_is_cut(there: DatasetLayout, here: DatasetLayout, server: StaticServer):
    block = there.chain.in_order()[0]
    server.special[f"/signatures/{block.hash}"] = endless(b" " * 65536)
    with pytest.raises(MalformedSignature, match="more than"):
        transfer(http_dataset(f"{server.url}/there"), here)
