"""Signatures, branches and tags go to nodes of ours, beside the Smart Transfer Protocol; nodes of others are left alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from support.chains.signing import ALICE, MALLORY, TIME, assert_signed, sign, statement
from support.chains.small_datasets import add_info, add_slice, image, make_dataset
from support.servers.serving import Answer, ask, serving, workspace_at
from support.servers.static_server import static_server

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.signatures import (
    BLOCK_SIGNATURES,
    HEAD_PATH,
    HEAD_SIGNATURES,
    ForgedSignature,
    SignatureReport,
    encode,
    path_of,
)
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.errors import AlreadyExists, ConcurrentUpdate, TransferError
from odfpy.repository.divergence import DatasetsDiverged
from odfpy.repository.exchange import fetch_dataset, send_dataset
from odfpy.repository.locations.node import node_dataset
from odfpy.repository.peer_errors import AccessRefused
from odfpy.repository.reference_transfer import fetch_reference, send_reference
from odfpy.repository.smart_transfer.client import push_to_node
from odfpy.repository.transfer.simple import TransferOutcome
from odfpy.serving.callers.tokens import Scope, Tokens

NAME = "com.example.rates"
TAG = ReferenceName.of(ReferenceKind.TAG, "v1")
STAGING = ReferenceName.of(ReferenceKind.BRANCH, "staging")
Become: TypeAlias = Callable[[Scope], None]


class Node:
    """A server of one workspace.

    Attributes:
        http: the URL of the dataset.
        url: the same for the Smart Transfer Protocol.
    """

    def __init__(self, url: str, workspace: Workspace) -> None:
        self.http, self.url = f"{url}/{NAME}", f"odf+{url}/{NAME}"
        self.workspace = workspace
        self.tokens = {scope: Tokens(workspace.odf).new(scope.value, scope) for scope in Scope}

    @property
    def layout(self) -> DatasetLayout:
        return self.workspace.storage.get(NAME).layout

    def give(self, files: dict[str, Any], scope: Scope = Scope.WRITE) -> Answer:
        body = json.dumps({"files": files}).encode()
        return ask(
            f"{self.http}/info", method="PUT", body=body, token=self.tokens[scope], content_type="application/json"
        )

    def move(self, reference: str, block: object, scope: Scope = Scope.WRITE, **condition: str) -> int:
        url = f"{self.http}/refs/{reference}?block={block}"
        answer = ask(url, method="PUT", token=self.tokens[scope], **condition)
        return answer.status


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    workspace = workspace_at(tmp_path_factory.mktemp("node"))
    with serving(workspace) as server:
        yield Node(server.url, workspace)


@pytest.fixture
def become(running: Node, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Become:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return lambda scope: monkeypatch.setenv("ODF_TOKEN", running.tokens[scope])


@pytest.fixture
def node(running: Node, become: Become) -> Node:
    """A node without datasets, where we may write."""
    running.workspace.datasets.delete(all=True)
    become(Scope.WRITE)
    return running


@pytest.fixture
def here(tmp_path: Path) -> DatasetLayout:
    """A signed dataset of three blocks."""
    layout = make_dataset(DatasetLayout.local(tmp_path / "here"), "one", "two")
    sign(layout, *layout.chain.in_order())
    return layout


# --- Signatures ---


def test_signatures_follow_a_push_and_come_with_a_pull(node: Node, here: DatasetLayout, tmp_path: Path) -> None:
    assert send_dataset(here, node.url).signatures == SignatureReport(3, 0, (ALICE.actor,))
    assert_signed(node.layout)
    add_info(here, "three", "four")
    sign(here, *here.chain.in_order()[-2:])
    assert send_dataset(here, node.url).signatures == SignatureReport(2, 0, (ALICE.actor,))
    assert_signed(node.layout)
    assert send_dataset(here, node.url).signatures is None
    copy = DatasetLayout.local(tmp_path / "copy")
    assert fetch_dataset(node.url, copy).signatures == SignatureReport(5, 0, (ALICE.actor,))


def test_what_a_push_has_left_behind_follows_with_the_next(node: Node, here: DatasetLayout) -> None:
    side = here.side
    assert side is not None
    head_file = side.read(HEAD_PATH, 10_000)
    side.delete(HEAD_PATH)  # as if the push had been cut before signatures went
    assert send_dataset(here, node.url).signatures is None
    assert head_file is not None
    side.write(HEAD_PATH, head_file)
    again = send_dataset(here, node.url)
    assert (again.outcome, again.signatures) == (TransferOutcome.UP_TO_DATE, SignatureReport(3, 0, (ALICE.actor,)))
    assert_signed(node.layout)


def test_many_signatures_go_in_several_requests(
    node: Node, here: DatasetLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odfpy.repository.locations.node.MAX_SIDE_FILES", 2)
    send_dataset(here, node.url)
    assert_signed(node.layout)


def test_forged_signature_of_ours_is_not_sent(node: Node, here: DatasetLayout) -> None:
    block = here.chain.in_order()[1]
    assert here.side is not None
    here.side.write(
        path_of(block.hash),
        encode(statement(here.chain.in_order()[0]).signed_by([ALICE], BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES),
    )
    with pytest.raises(ForgedSignature, match=str(block.hash)):
        send_dataset(here, node.url)
    assert node.workspace.datasets.all() == [], "nor is what it is of"


def test_server_refuses_what_is_forged_misplaced_or_none_and_keeps_nothing(node: Node, here: DatasetLayout) -> None:
    first, second, third = here.chain.in_order()
    make_dataset(other := DatasetLayout.in_memory(), "else")
    stranger = other.chain.in_order()[-1]
    assert here.side is not None
    here.side.delete(HEAD_PATH)
    send_dataset(here, node.url)
    good = {
        path_of(first.hash): encode(
            statement(first).signed_by([ALICE], BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES
        ).decode()
    }
    true = encode(statement(second).signed_by([MALLORY], BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES).decode()
    of_head = encode(statement(second).signed_by([ALICE], HEAD_SIGNATURES, TIME), HEAD_SIGNATURES).decode()
    refused = {
        "forged": ({path_of(second.hash): true.replace(str(MALLORY.actor), str(ALICE.actor))}, 400),
        "of another block": ({path_of(third.hash): true}, 400),
        "of a block that is not there": ({path_of(stranger.hash): true}, 404),
        "of the head, beside a block": ({path_of(second.hash): of_head}, 400),
        "of an earlier head": ({HEAD_PATH: of_head}, 400),
        "elsewhere": ({"info/aliases.yaml": true}, 400),
        "beyond": ({f"info/signatures/../../{second.hash}": true}, 400),
        "no signatures": ({path_of(second.hash): "{}"}, 400),
        "no text": ({path_of(second.hash): 5}, 422),
        "too long": ({path_of(second.hash): " " * 20_000}, 422),
        "half a letter": ({path_of(second.hash): "\ud800"}, 422),
        "too many": ({path_of(Multihash.of(b"%d" % at)): "x" for at in range(501)}, 422),
    }
    for what, (files, status) in refused.items():
        assert node.give({**good, **files}).status == status, what
    assert node.layout.side is not None
    assert list(node.layout.side.names("info/signatures")) == []
    assert node.give(good).status == 200
    assert node.give(good, Scope.READ).status == 403


def test_signature_takes_no_others_place(node: Node, here: DatasetLayout) -> None:
    send_dataset(here, node.url)
    newest = here.chain.in_order()[-1]
    path = path_of(newest.hash)
    assert node.layout.side is not None
    before = node.layout.side.read(path, 10_000)
    later = statement(newest).signed_by([ALICE], BLOCK_SIGNATURES, TIME.__class__.parse("2030-01-01T00:00:00Z"))
    assert node.give({path: encode(later, BLOCK_SIGNATURES).decode()}).status == 200
    assert node.layout.side.read(path, 10_000) == before
    assert (
        node.give(
            {path: encode(statement(newest).signed_by([MALLORY], BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES).decode()}
        ).status
        == 200
    )
    copy = DatasetLayout.in_memory()
    assert fetch_dataset(node.url, copy).signatures == SignatureReport(3, 0, (ALICE.actor, MALLORY.actor))


def test_bodies_that_do_not_end_are_refused(node: Node, here: DatasetLayout) -> None:
    send_dataset(here, node.url)
    for method in ("PUT", "POST"):
        answer = ask(f"{node.http}/info", method=method, body=b" " * (17 * 1024**2), token=node.tokens[Scope.WRITE])
        assert answer.status == 413


# --- Branches and tags ---


@pytest.fixture
def staged(node: Node, here: DatasetLayout) -> DatasetLayout:
    """The dataset with a tag and a branch, of which the node has the head only."""
    send_dataset(here, node.url)
    here.refs.compare_and_swap(TAG.reference, None, here.chain.in_order()[1].hash)
    add_slice(here.on(STAGING), b"staged")
    sign(here, *here.on(STAGING).chain.in_order()[-2:])
    return here


def test_branches_and_tags_are_pushed_with_all_that_they_lead_to(
    node: Node, staged: DatasetLayout, tmp_path: Path
) -> None:
    head = node.layout.chain.head()
    for name in (TAG, STAGING):
        sent = send_reference(staged, node.url, name)
        assert sent.outcome is TransferOutcome.UPDATED
        assert sent.signatures == (SignatureReport(2, 0, (ALICE.actor,)) if name is STAGING else None)
        assert send_reference(staged, node.url, name).outcome is TransferOutcome.UP_TO_DATE
        assert node.layout.refs.get(name.reference) == staged.refs.get(name.reference)
    assert node.layout.chain.head() == head
    assert [node.layout.data.read(name) for name in node.layout.data] == [b"staged"]
    copy = DatasetLayout.local(tmp_path / "copy")
    fetch_dataset(node.url, copy)
    assert fetch_reference(node.url, copy, STAGING).signatures == SignatureReport(2, 0, (ALICE.actor,))
    fetch_reference(node.url, copy, TAG)
    assert image(copy.on(STAGING)) == image(staged.on(STAGING))


def test_reference_at_the_head_is_made(node: Node, staged: DatasetLayout) -> None:
    latest = ReferenceName.of(ReferenceKind.TAG, "latest")
    staged.refs.compare_and_swap(latest.reference, None, staged.chain.head())
    assert send_reference(staged, node.url, latest).outcome is TransferOutcome.UPDATED
    assert node.layout.refs.get(latest.reference) == staged.chain.head()


def test_branch_that_begins_before_the_nodes_head_is_new_there_and_goes_on(node: Node, staged: DatasetLayout) -> None:
    add_info(staged, "the head goes on")
    send_dataset(staged, node.url)
    assert send_reference(staged, node.url, STAGING).num_dropped == 0
    add_info(staged.on(STAGING), "more")
    assert send_reference(staged, node.url, STAGING).num_blocks == 1


def test_diverged_branches_and_tags_are_moved_by_force_and_the_scope_admin_only(
    node: Node, staged: DatasetLayout, tmp_path: Path, become: Become
) -> None:
    for name in (TAG, STAGING):
        send_reference(staged, node.url, name)
    other = DatasetLayout.local(tmp_path / "other")
    fetch_dataset(node.url, other)
    add_info(other.on(STAGING), "another idea")
    other.refs.compare_and_swap(TAG.reference, None, other.on(STAGING).chain.head())
    with pytest.raises(DatasetsDiverged):
        send_reference(other, node.url, STAGING)
    with pytest.raises(AlreadyExists, match="tag v1 already exists"):
        send_reference(other, node.url, TAG)
    for name in (TAG, STAGING):
        with pytest.raises(TransferError, match="status 403" if name is TAG else "needs the scope admin"):
            send_reference(other, node.url, name, force=True)
        assert node.layout.refs.get(name.reference) == staged.refs.get(name.reference)
    become(Scope.ADMIN)
    for name in (TAG, STAGING):
        send_reference(other, node.url, name, force=True)
        assert node.layout.refs.get(name.reference) == other.refs.get(name.reference)


def test_a_branch_that_was_new_when_a_push_began_is_not_forced_once_it_is_there(
    node: Node, staged: DatasetLayout, tmp_path: Path, become: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who opens a connection early, and waits until somebody else has made the branch, gains nothing by it."""
    send_reference(staged, node.url, STAGING)
    other = DatasetLayout.local(tmp_path / "other")
    fetch_dataset(node.url, other)
    add_info(other.on(STAGING), "another idea")
    monkeypatch.setattr("odfpy.serving.transfer.smart.pushed_reference", lambda *_: (STAGING, True))
    with pytest.raises(TransferError, match="E121 ConcurrentUpdate: branch staging was "):
        send_reference(other, node.url, STAGING, force=True)
    assert node.layout.refs.get(STAGING.reference) == staged.refs.get(STAGING.reference)
    become(Scope.ADMIN)
    send_reference(other, node.url, STAGING, force=True)
    assert node.layout.refs.get(STAGING.reference) == other.refs.get(STAGING.reference)


def test_references_move_only_from_where_they_were_seen(node: Node, staged: DatasetLayout, become: Become) -> None:
    first, second, third = (hashed.hash for hashed in staged.chain.in_order())
    refs = node_dataset(node.http).refs
    refs.compare_and_swap(STAGING.reference, None, first)
    for expected in (None, second):
        with pytest.raises(ConcurrentUpdate):
            refs.compare_and_swap(STAGING.reference, expected, third)
    refs.compare_and_swap(STAGING.reference, first, second)
    with pytest.raises(AccessRefused, match="has diverged"):
        refs.compare_and_swap(STAGING.reference, second, first)
    become(Scope.READ)
    with pytest.raises(AccessRefused, match="scope write"):
        refs.compare_and_swap(STAGING.reference, second, third)
    assert node.layout.refs.get(STAGING.reference) == second


def test_server_refuses_requests_for_references_that_make_no_sense(node: Node, staged: DatasetLayout) -> None:
    head, absent = staged.chain.head(), staged.on(STAGING).chain.head()
    assert node.move("head", head, if_match=f'"{head}"') == 400
    assert node.move("head.sig", head, if_none_match="*") == 400
    for name in ("branch.head", "tag.5", "branch.f1620aaaa"):  # they would be taken for blocks
        assert node.move(name, head, if_none_match="*") == 400
    assert node.move("branch.x", absent, if_none_match="*") == 404
    assert node.move("branch.x", "nothing", if_none_match="*") == 400
    assert node.move("branch.x", head) == 428
    assert node.move("branch.x", head, if_match=f'"{head}"', if_none_match="*") == 428
    assert node.move("branch.x", head, if_match=f'"{head}"') == 412
    assert node.move("branch.x", head, Scope.READ, if_none_match="*") == 403
    assert list(node.layout.refs.names()) == ["head"]
    assert node.move("branch.x", head, if_none_match="*") == 200
    assert node.move("tag.x", head, if_none_match="*") == 400
    assert list(node.layout.refs.names()) == ["branch.x", "head"]


def test_a_node_takes_no_branch_of_the_name_of_a_tag(
    node: Node, staged: DatasetLayout, become: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = node_dataset(node.http).refs.get(HEAD)
    assert head is not None
    node_dataset(node.http).refs.compare_and_swap(STAGING.other.reference, None, head)
    with pytest.raises(AlreadyExists, match="the tag staging already exists"):
        send_reference(staged, node.url, STAGING)
    become(Scope.ADMIN)
    push = partial(push_to_node, staged.on(STAGING), node.http, reference=STAGING, force=True)
    with pytest.raises(TransferError, match="The tag staging already exists"):
        push()
    monkeypatch.setattr("odfpy.serving.transfer.smart.pushed_reference", lambda *_: (STAGING, True))
    with pytest.raises(TransferError, match="E121 ConcurrentUpdate: tag staging was created"):  # while the push went on
        push()
    assert node.layout.refs.get(STAGING.reference) is None


# --- Nodes of others ---


def test_places_that_do_not_say_what_they_take_get_no_references(here: DatasetLayout, tmp_path: Path) -> None:
    (tmp_path / "page").write_text("<html>")
    with static_server(tmp_path) as server:
        for path in ("here", "page", "absent"):
            with pytest.raises(TransferError, match="accepts only the head of a dataset, not tag v1"):
                send_reference(here, f"odf+{server.url}/{path}", TAG)
