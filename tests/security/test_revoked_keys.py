"""A key that was revoked, or has expired: what its thief can do with it, and who may revoke it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.chains.signing import ALICE, MALLORY, TIME
from support.chains.small_datasets import add_info, append, image
from support.chains.workspaces import feed, root, workspace_with
from support.servers.serving import ask, serving, workspace_at
from support.servers.static_server import static_server

from odfpy.chain import revocations
from odfpy.chain.block import HashedBlock
from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import Seed, SetInfo
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.required_signers import NotSigned, RequiredSigners
from odfpy.chain.revocations import (
    ExpiredKey,
    KeyRevocation,
    KnownRevocations,
    LastBlock,
    Reason,
    RevokedKey,
    UnentitledRevocation,
    honoured_in,
)
from odfpy.chain.signatures import (
    BLOCK_SIGNATURES,
    HEAD_PATH,
    HEAD_SIGNATURES,
    MAX_SIGNATURES,
    MalformedSignature,
    SignatureReport,
    SignedBlock,
    encode,
    has_signatures,
    path_of,
    read_head_signatures,
    read_signatures,
)
from odfpy.chain.state import ChainState
from odfpy.chain.stores.ref_store import LocalRefStore
from odfpy.cli.app import run
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import KeyPair
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import OdfError
from odfpy.repository.exchange import fetch_dataset, send_dataset
from odfpy.repository.locations.http import http_dataset
from odfpy.repository.peer_errors import PeerFailed
from odfpy.repository.transfer.incoming_signatures import IncomingSignatures
from odfpy.repository.transfer.options import TransferOptions
from odfpy.repository.transfer.simple import HistoryRewritten, transfer
from odfpy.serving.callers.tokens import Scope, Tokens

OWNER, CAROL = KeyPair(b"o" * 32), KeyPair(b"c" * 32)
ID = OWNER.dataset_id
LATER = Timestamp.parse("2024-06-01T00:00:00Z")
FAR = Timestamp.parse("2999-01-01T00:00:00Z")
NAME = "com.example.rates"
ANYBODY = RequiredSigners("", frozenset(), owner=False)
BY_ALICE = RequiredSigners("alice", frozenset({ALICE.actor}), owner=False)


def dataset(folder: Path, *texts: str) -> DatasetLayout:
    layout = DatasetLayout.local(folder)
    append(layout, [Seed(ID, DatasetKind.ROOT)])
    return add_info(layout, *texts)


def sign(layout: DatasetLayout, *pairs: KeyPair, last: int = 1) -> None:
    """Sign the last blocks, and the head."""
    assert layout.side is not None
    blocks = layout.chain.in_order()[-last:]
    for hashed in blocks:
        layout.side.write(
            path_of(hashed.hash), encode(about(hashed).signed_by(pairs, BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES)
        )
    layout.side.write(HEAD_PATH, encode(about(blocks[-1]).signed_by(pairs, HEAD_SIGNATURES, TIME), HEAD_SIGNATURES))


def about(hashed: HashedBlock) -> SignedBlock:
    return SignedBlock(dataset_id=ID, block_hash=hashed.hash, sequence_number=hashed.block.sequence_number)


def last_of(layout: DatasetLayout) -> LastBlock:
    head = layout.chain.in_order()[-1]
    return LastBlock(ID, head.hash, head.block.sequence_number)


def revoke(
    layout: DatasetLayout, by: KeyPair = ALICE, reason: Reason = Reason.SUPERSEDED, **more: object
) -> list[KeyRevocation]:
    """What `odf key revoke` writes beside a dataset: since when by time, and since which block."""
    statements = [
        KeyRevocation.made_by(by, ALICE.actor, reason, LATER),
        KeyRevocation.made_by(by, ALICE.actor, reason, LATER, since=last_of(layout)),
    ]
    put(layout, *statements)
    return statements


def put(layout: DatasetLayout, *statements: KeyRevocation) -> None:
    assert layout.side is not None
    revocations.add(layout.side, statements)


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def there(tmp_path: Path) -> DatasetLayout:
    """A dataset that Alice has signed."""
    layout = dataset(tmp_path / "there", "one", "two")
    sign(layout, ALICE, last=3)
    return layout


@pytest.fixture
def here(tmp_path: Path) -> DatasetLayout:
    return DatasetLayout.local(tmp_path / "here")


# --- A stolen key ---


@pytest.mark.parametrize("through", ["folder", "server"])
@pytest.mark.parametrize("reason", Reason)
def test_a_head_that_a_stolen_key_signs_after_it_was_revoked_is_refused(
    reason: Reason, through: str, there: DatasetLayout, here: DatasetLayout, tmp_path: Path
) -> None:
    """The thief writes a time before the revocation into block and signature: the order of the chain decides."""
    transfer(there, here)
    revoke(there, reason=reason)
    add_info(there, "by the thief")
    sign(there, ALICE)
    before = image(here)
    with static_server(tmp_path) as server:
        source = there if through == "folder" else http_dataset(f"{server.url}/there")
        with pytest.raises(RevokedKey, match=r"Block 3 .* revoked .*" + reason.value) as caught:
            transfer(source, here)
        fresh = DatasetLayout.in_memory()
        with pytest.raises(RevokedKey):
            transfer(source, fresh)
    assert (caught.value.code, image(here)) == ("E471", before)
    assert fresh.refs.get("head") is None


def test_what_was_signed_before_stays_signed_unless_the_key_was_stolen(there: DatasetLayout, tmp_path: Path) -> None:
    revoke(there)
    result = transfer(there, DatasetLayout.in_memory(), TransferOptions(required=BY_ALICE))
    assert result.signatures == SignatureReport(3, 0, (ALICE.actor,))
    revoke(there, reason=Reason.COMPROMISED)
    ended = rf"signed with no valid key; the key {ALICE.actor} was revoked at {LATER} \(compromised\), by itself;"
    with pytest.raises(NotSigned, match=ended) as caught:
        transfer(there, DatasetLayout.in_memory(), TransferOptions(required=BY_ALICE))
    assert "commit again" in str(caught.value.hint)
    result = transfer(there, DatasetLayout.in_memory())
    assert result.signatures == SignatureReport(0, 3, ()), "the blocks are what they are, by nobody"


def test_a_fork_before_the_last_block_is_another_history(there: DatasetLayout, tmp_path: Path) -> None:
    fork = DatasetLayout.local(tmp_path / "fork")
    transfer(there.at(there.chain.in_order()[1].hash), fork)
    revoke(there)
    add_info(fork, "another two")
    sign(fork, ALICE, last=3)
    put(fork, *honoured_in(there.side, ID, [ALICE.actor]))
    with pytest.raises(RevokedKey):
        transfer(fork, DatasetLayout.in_memory())


def test_a_stale_copy_without_the_revocation_does_not_help(
    there: DatasetLayout, here: DatasetLayout, tmp_path: Path
) -> None:
    statements = revoke(there)
    transfer(there, here)
    stale = DatasetLayout.local(tmp_path / "stale")
    transfer(there, stale)
    assert stale.side is not None
    stale.side.delete(revocations.path_of(ALICE.actor))
    add_info(stale, "by the thief")
    sign(stale, ALICE)
    with pytest.raises(RevokedKey):  # beside the copy it is known
        transfer(stale, here)
    with pytest.raises(RevokedKey):  # and where it was learnt by whoever pulls
        transfer(
            stale,
            DatasetLayout.in_memory(),
            TransferOptions(required=replace(ANYBODY, revoked=KnownRevocations((), tuple(statements)))),
        )
    transfer(stale, DatasetLayout.in_memory())  # who has never seen it cannot know


def test_a_refused_transfer_tells_of_the_revocation_that_it_saw(there: DatasetLayout) -> None:
    learnt: list[KeyRevocation] = []
    statements = revoke(there, reason=Reason.COMPROMISED)
    with pytest.raises(NotSigned):
        transfer(there, DatasetLayout.in_memory(), TransferOptions(required=replace(BY_ALICE, learn=learnt.extend)))
    assert learnt == statements
    learnt.clear()
    add_info(there, "by the thief")
    sign(there, ALICE)
    with pytest.raises(RevokedKey):
        transfer(there, DatasetLayout.in_memory(), TransferOptions(required=replace(ANYBODY, learn=learnt.extend)))
    assert learnt == statements


def test_an_old_head_that_is_replayed_is_noticed(there: DatasetLayout, here: DatasetLayout, tmp_path: Path) -> None:
    assert there.side is not None
    old_signature, old = there.side.read(HEAD_PATH, 10_000), there.chain.in_order()[-1]
    add_info(there, "three")
    sign(there, CAROL)
    transfer(there, here)
    seen = there.chain.head()
    revoke(there, reason=Reason.COMPROMISED)
    assert old_signature is not None
    there.side.write(HEAD_PATH, old_signature)
    assert read_head_signatures(there.side, ID, there.chain.in_order()[-1]) is None, "it is of another head"
    there.refs.compare_and_swap("head", seen, old.hash)
    with pytest.raises(HistoryRewritten):
        transfer(there, here, TransferOptions(seen=seen))
    with pytest.raises(NotSigned):
        transfer(there, DatasetLayout.in_memory(), TransferOptions(required=BY_ALICE))


def test_nothing_that_is_said_later_revives_a_key(there: DatasetLayout) -> None:
    """The thief can say of the stolen key what it likes: all of it holds together."""
    revoke(there)
    add_info(there, "by the thief")
    sign(there, ALICE)
    far = LastBlock(ID, there.chain.in_order()[-1].hash, 3)
    put(
        there,
        KeyRevocation.made_by(ALICE, ALICE.actor, Reason.RETIRED, Timestamp.parse("2030-01-01T00:00:00Z"), since=far),
        KeyRevocation.made_by(
            ALICE, ALICE.actor, Reason.RETIRED, TIME, expires=Timestamp.parse("2999-01-01T00:00:00Z")
        ),
    )
    with pytest.raises(RevokedKey, match="after block 2"):
        transfer(there, DatasetLayout.in_memory())


def test_who_signs_beside_the_owner_does_no_harm(there: DatasetLayout) -> None:
    revoke(there)
    add_info(there, "by the owner")
    sign(there, OWNER, ALICE)
    result = transfer(there, DatasetLayout.in_memory())
    assert result.signatures is not None
    assert result.signatures.signers[0] == OWNER.actor
    add_info(there, "by the thief, and somebody nobody knows")
    sign(there, MALLORY, ALICE)
    with pytest.raises(RevokedKey):
        transfer(there, DatasetLayout.in_memory())


# --- Who may revoke ---


def test_the_dataset_s_own_key_may_revoke_others_in_it(there: DatasetLayout) -> None:
    revoke(there, by=OWNER)
    add_info(there, "by the thief")
    sign(there, ALICE)
    with pytest.raises(RevokedKey):
        transfer(there, DatasetLayout.in_memory())


def forgeries(there: DatasetLayout) -> dict[str, KeyRevocation]:
    true = KeyRevocation.made_by(ALICE, ALICE.actor, Reason.COMPROMISED, TIME, since=last_of(there))
    stranger = KeyRevocation.made_by(MALLORY, ALICE.actor, Reason.COMPROMISED, TIME, since=last_of(there))
    other = replace(last_of(there), dataset_id=CAROL.dataset_id)
    return {
        "by a stranger": stranger,
        "by the owner of another dataset": KeyRevocation.made_by(CAROL, ALICE.actor, Reason.COMPROMISED, TIME),
        "in another's name": replace(stranger, proof=replace(stranger.proof, verification_method=str(ALICE.actor))),
        "of another key": replace(true, key=str(OWNER.actor)),
        "for another reason": replace(true, reason=Reason.RETIRED),
        "since another block": replace(true, since=replace(last_of(there), sequence_number=0)),
        "of another dataset": replace(true, since=other),
        "at another time": replace(true, time=LATER),
        "with an end": replace(true, expires=LATER),
        "without its block": replace(true, since=None),
        "of a block in another dataset": KeyRevocation.made_by(
            ALICE, ALICE.actor, Reason.COMPROMISED, TIME, since=other
        ),
    }


@pytest.mark.parametrize("which", range(11))
def test_a_forged_revocation_is_honoured_by_nobody(which: int, there: DatasetLayout, here: DatasetLayout) -> None:
    name, statement = list(forgeries(there).items())[which]
    assert there.side is not None
    there.side.write(revocations.path_of(ALICE.actor), revocations.encode([statement]))
    learnt: list[KeyRevocation] = []
    result = transfer(there, here, TransferOptions(required=replace(BY_ALICE, learn=learnt.extend)))
    assert result.signatures == SignatureReport(3, 0, (ALICE.actor,)), name
    assert learnt == []
    with pytest.raises(UnentitledRevocation):
        revocations.require_entitled([statement], ALICE.actor, ID, "file")


@pytest.mark.parametrize(
    "data", [b"", b"[", b"{}", b"<html>", b'{"kind": "KeyRevocations", "version": 1, "content": {}}', b" " * 20_000]
)
def test_damaged_revocations_say_nothing_and_are_told_where_they_are_checked(data: bytes, there: DatasetLayout) -> None:
    assert there.side is not None
    there.side.write(revocations.path_of(ALICE.actor), data)
    transfer(there, DatasetLayout.in_memory(), TransferOptions(required=BY_ALICE))
    with pytest.raises(MalformedSignature):
        revocations.decode(data, "file")


def test_members_twice_and_more_are_refused(there: DatasetLayout) -> None:
    text = revocations.encode(revoke(there)).decode()
    for changed in (
        text.replace('"reason"', '"reason": "retired", "reason"', 1),
        text.replace('"reason"', '"more": 1, "reason"', 1),
        text.replace('"version": 1', '"version": true'),
    ):
        assert changed != text
        with pytest.raises(MalformedSignature):
            revocations.decode(changed.encode(), "file")
    with pytest.raises(MalformedSignature):
        revocations.decode(revocations.encode(revoke(there) * 20), "file")


# --- Expiry ---


def test_what_an_expired_key_signs_is_refused_by_the_time_of_the_block(there: DatasetLayout) -> None:
    put(there, KeyRevocation.made_by(ALICE, ALICE.actor, Reason.RETIRED, TIME, expires=LATER))
    assert transfer(there, DatasetLayout.in_memory(), TransferOptions(required=BY_ALICE)).signatures is not None
    chain = there.chain
    chain.commit(chain.prepare(chain.state(), [SetInfo(description="late")], Timestamp.parse("2024-06-02T00:00:00Z")))
    sign(there, ALICE)
    with pytest.raises(ExpiredKey, match=r"expired at 2024-06-01T00:00:00Z"):
        transfer(there, DatasetLayout.in_memory())
    sign(there, CAROL)
    say_more = chain.prepare(chain.state(), [SetInfo(description="back")], Timestamp.parse("2024-06-03T00:00:00Z"))
    chain.commit(say_more)
    sign(there, CAROL)
    transfer(there, DatasetLayout.in_memory())


# --- Nodes ---


class Node:
    """A server of one workspace, and who may write there."""

    def __init__(self, url: str, workspace: Workspace) -> None:
        self.http, self.url = f"{url}/{NAME}", f"odf+{url}/{NAME}"
        self.workspace = workspace
        self.token = Tokens(workspace.odf).new("writer", Scope.WRITE)

    @property
    def layout(self) -> DatasetLayout:
        return self.workspace.storage.get(NAME).layout

    def give(self, path: str, data: bytes) -> int:
        body = json.dumps({"files": {path: data.decode()}}).encode()
        headers = {"content_type": "application/json"}
        return ask(f"{self.http}/info", method="PUT", body=body, token=self.token, **headers).status


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    workspace = workspace_at(tmp_path_factory.mktemp("node"))
    with serving(workspace) as server:
        yield Node(server.url, workspace)


@pytest.fixture
def node(running: Node, monkeypatch: pytest.MonkeyPatch) -> Node:
    running.workspace.datasets.delete(all=True)
    monkeypatch.setenv("ODF_TOKEN", running.token)
    return running


def test_a_node_refuses_a_push_that_is_signed_with_a_revoked_key(
    node: Node, there: DatasetLayout, here: DatasetLayout
) -> None:
    send_dataset(there, node.url)
    revoke(there)
    assert send_dataset(there, node.url).num_blocks == 0
    assert honoured_in(node.layout.side, ID, [ALICE.actor]), "it goes along, also where nothing else is new"
    learnt: list[KeyRevocation] = []
    fetch_dataset(node.url, here, TransferOptions(required=replace(ANYBODY, learn=learnt.extend)))
    assert learnt, "and comes with a pull"
    assert there.side is not None
    there.side.delete(revocations.path_of(ALICE.actor))  # the thief does not tell
    add_info(there, "by the thief")
    sign(there, ALICE)
    head = node.layout.chain.head()
    with pytest.raises(PeerFailed, match="E471 RevokedKey: signed with a revoked key") as caught:
        send_dataset(there, node.url)
    assert "odf key revoke" in str(caught.value.hint)
    assert node.layout.chain.head() == head


def test_a_pull_from_a_node_that_is_refused_tells_of_the_revocation_that_it_saw(
    node: Node, there: DatasetLayout, here: DatasetLayout
) -> None:
    statements = revoke(there, reason=Reason.COMPROMISED)
    send_dataset(there, node.url)
    learnt: list[KeyRevocation] = []
    with pytest.raises(NotSigned, match="compromised"):
        fetch_dataset(node.url, here, TransferOptions(required=replace(BY_ALICE, learn=learnt.extend)))
    assert learnt == statements


def test_a_node_takes_no_signature_of_a_revoked_key_and_no_revocation_of_a_stranger(
    node: Node, there: DatasetLayout
) -> None:
    send_dataset(there, node.url)
    path = revocations.path_of(ALICE.actor)
    for name, statement in forgeries(there).items():
        assert node.give(path, revocations.encode([statement])) == 400, name
    assert node.give(path, b"{}") == 400
    assert honoured_in(node.layout.side, ID, [ALICE.actor]) == ()
    assert node.give(path, revocations.encode(revoke(there))) == 200
    add_info(there, "unsigned")
    assert there.side is not None
    there.side.delete(HEAD_PATH)
    send_dataset(there, node.url)
    newest = there.chain.in_order()[-1]
    late = encode(about(newest).signed_by([ALICE], BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES)
    assert node.give(path_of(newest.hash), late) == 400
    assert (
        node.give(
            path_of(newest.hash), encode(about(newest).signed_by([CAROL], BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES)
        )
        == 200
    )


def test_a_node_takes_no_head_of_a_key_that_has_expired_by_its_clock(node: Node, there: DatasetLayout) -> None:
    """The thief writes a time before the end into the block; that it comes too late, the node knows."""
    put(there, KeyRevocation.made_by(ALICE, ALICE.actor, Reason.RETIRED, TIME, expires=LATER))
    with pytest.raises(PeerFailed, match="E472 ExpiredKey"):
        send_dataset(there, node.url)
    assert node.workspace.datasets.all() == []
    add_info(there, "once more")
    sign(there, CAROL)
    send_dataset(there, node.url)
    assert node.layout.chain.head() == there.chain.head()


def test_an_operator_revokes_a_key_for_the_own_node(node: Node, there: DatasetLayout) -> None:
    send_dataset(there, node.url)
    me = UserKeys().own()
    from odfpy.coordinator.revoke import revoke_key as say_of

    say_of(node.workspace.storage, ALICE.actor, Reason.COMPROMISED, holder=None, me=me)
    add_info(there, "three")
    sign(there, ALICE)
    with pytest.raises(PeerFailed, match="E471"):
        send_dataset(there, node.url)


def test_no_head_is_there_unsigned_for_a_moment(
    node: Node, there: DatasetLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at in the very step in which the head moves: of a new dataset, and of one that goes on."""
    moves: list[bool] = []
    swap = LocalRefStore.compare_and_swap

    def looked(self: LocalRefStore, name: str, expected: Multihash | None, new: Multihash) -> None:
        side = DatasetLayout.local(self.folder.parent).side
        assert side is not None
        data = side.read(HEAD_PATH, 10_000)
        moves.append(side.read(path_of(new), 10_000) is not None and data is not None and str(new) in data.decode())
        swap(self, name, expected, new)

    monkeypatch.setattr(LocalRefStore, "compare_and_swap", looked)
    send_dataset(there, node.url)
    assert moves == [True]
    monkeypatch.setattr(LocalRefStore, "compare_and_swap", swap)
    add_info(there, "three")
    sign(there, ALICE)
    monkeypatch.setattr(LocalRefStore, "compare_and_swap", looked)
    assert send_dataset(there, node.url).signatures == SignatureReport(1, 0, (ALICE.actor,))
    assert moves == [True, True]
    assert has_signatures(http_dataset(node.http).side)  # type: ignore[arg-type]


# --- From the command line ---


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    made = workspace_with(tmp_path / "workspace", root(NAME))
    feed(made, NAME, "1 a")
    monkeypatch.chdir(made.root)
    return made


def say_now(layout: DatasetLayout) -> ChainState:
    """A block of the thief, who has a clock like everybody."""
    state = layout.chain.state()
    return layout.chain.commit(layout.chain.prepare(state, [SetInfo(description="by the thief")], Timestamp.now()))


def odf(*words: str) -> int:
    return run(list(words))


def test_a_key_is_revoked_and_another_one_goes_on(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stolen = UserKeys().own()
    copy = str(tmp_path / "shared")
    list(workspace.push([NAME], to=copy))
    assert odf("key", "revoke", "--reason", "superseded", "--yes") == 0
    assert f"Revoked {stolen.actor}" in capsys.readouterr().err
    now = UserKeys().own()
    assert now.actor != stolen.actor
    feed(Workspace.open(workspace.root), NAME, "2 b")
    (report,) = workspace.verify([NAME], integrity_only=True)
    assert report.ok
    assert report.signatures is not None
    assert now.actor in report.signatures.signers
    assert odf("verify", NAME, "--integrity") == 0
    list(workspace.push([NAME], to=copy))
    assert revocations.path_of(stolen.actor).rpartition("/")[2] in [
        path.name for path in (Path(copy) / "info" / "revocations").iterdir()
    ]
    assert odf("key", "list", "-o", "json") == 0


def test_a_process_that_goes_on_signs_with_a_revoked_key_no_more(workspace: Workspace) -> None:
    stolen = UserKeys().own().actor
    feed(workspace, NAME, "2 b")  # the workspace knows the key now
    assert odf("key", "revoke", "--reason", "compromised", "--yes") == 0
    feed(workspace, NAME, "3 c")
    (entry,) = workspace.add(load_snapshots(root("new"), "manifest"))
    for ref in (NAME, str(entry.handle.alias)):
        newest = next(workspace.datasets.log(ref))
        signers = {signer.key for signer in workspace.datasets.signers(ref).get(newest).signers}
        assert stolen not in signers
        assert UserKeys().own().actor in signers
    assert odf("config", "set", "signatures.sign", "false") == 0
    feed(workspace, NAME, "4 d")
    assert not workspace.datasets.signers(NAME).get(next(workspace.datasets.log(NAME))).signers


def test_remarks_are_on_the_commits_of_the_own_thread(workspace: Workspace) -> None:
    assert odf("key", "expire", "--on", "2999-01-01", "--yes") == 0
    signing = workspace.storage.signing
    signing._say("not signed", OdfError("in this thread"))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(signing.remarks).result() == ()
    assert signing.remarks() == ("not signed: in this thread",)


@pytest.mark.parametrize("expires", [LATER, None])
@pytest.mark.parametrize("by", [ALICE, OWNER], ids=["the key", "the owner"])
def test_harmless_statements_keep_none_out_that_ends_a_key(
    there: DatasetLayout, by: KeyPair, expires: Timestamp | None
) -> None:
    """Whoever has stolen the key may sign as many as they like."""
    for number in range(2 * revocations.MAX_STATEMENTS):
        reason = Reason.SUPERSEDED if expires is None else Reason.COMPROMISED
        end = Timestamp(LATER.nanos + (number + 1) * 1_000_000)
        put(there, KeyRevocation.made_by(ALICE, ALICE.actor, reason, end, expires=expires and end))
    last = KeyRevocation.made_by(by, ALICE.actor, Reason.COMPROMISED, LATER)
    put(there, last)
    said = honoured_in(there.side, ID, [ALICE.actor])
    assert len(said) == revocations.MAX_STATEMENTS
    assert last in said
    put(there, KeyRevocation.made_by(ALICE, ALICE.actor, Reason.RETIRED, LATER, expires=FAR))
    assert honoured_in(there.side, ID, [ALICE.actor]) == said


def test_harmless_statements_about_a_dataset_keep_none_out_that_ends_a_key_there_earlier(there: DatasetLayout) -> None:
    """Whatever time they name: what counts is the block."""
    for number in range(revocations.MAX_STATEMENTS):
        since = LastBlock(ID, Multihash.of(b"far"), 2**40 + number)
        early = Timestamp(number * 1_000_000)
        put(there, KeyRevocation.made_by(ALICE, ALICE.actor, Reason.SUPERSEDED, early, since=since))
    real = KeyRevocation.made_by(
        ALICE, ALICE.actor, Reason.SUPERSEDED, LATER, since=LastBlock(ID, Multihash.of(b"near"), 3)
    )
    put(there, real)
    assert real in honoured_in(there.side, ID, [ALICE.actor])


def test_signatures_of_others_do_not_keep_out_that_of_the_owner(tmp_path: Path) -> None:
    layout = dataset(tmp_path / "crowded", "one")
    sign(layout, *(KeyPair(bytes([number]) * 32) for number in range(MAX_SIGNATURES)))
    assert layout.side is not None
    hashed = layout.chain.in_order()[-1]
    incoming = IncomingSignatures(ID, KnownRevocations(), LATER, lambda _: None)
    owners = encode(about(hashed).signed_by([OWNER], BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES)
    incoming.take(path_of(hashed.hash), owners, hashed)
    incoming.store(layout)
    signed = read_signatures(layout.side, ID, hashed)
    assert signed is not None
    assert len(signed.signers) == MAX_SIGNATURES
    assert OWNER.actor in signed.signers


def test_a_statement_for_which_there_is_no_room_is_told(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    pair, dataset = UserKeys().own(), workspace.storage.get(NAME)
    assert dataset.layout.side is not None
    for number in range(revocations.MAX_STATEMENTS):
        early = Timestamp(TIME.nanos + number * 1_000_000)
        revocations.add(dataset.layout.side, [KeyRevocation.made_by(pair, pair.actor, Reason.RETIRED, early)])
    assert odf("key", "revoke", "--reason", "superseded", "--yes") == 1
    assert f"in {NAME} is full" in capsys.readouterr().err


def test_what_a_thief_pushes_to_a_shared_folder_is_not_pulled(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stolen = UserKeys().own()
    shared = tmp_path / "shared"
    list(workspace.push([NAME], to=str(shared)))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "bob"))
    bob = Workspace.init(tmp_path / "bob-workspace")
    (first,) = bob.pull([str(shared)])
    assert first.error is None
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert odf("key", "revoke", "me", "--reason", "compromised", "--yes") == 0
    list(workspace.push([NAME], to=str(shared)))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "bob"))
    (again,) = bob.pull(["shared"])
    assert again.outcome is PullOutcome.UP_TO_DATE
    assert [one.key for one in UserKeys().revoked.learnt] == [str(stolen.actor)] * 2, "learnt, though nothing was new"
    forget(shared, stolen)
    steal(shared, stolen)
    (refused,) = Workspace.open(bob.root).pull(["shared"])
    assert refused.error is not None
    assert refused.error.code == "E471"
    fresh = Workspace.init(tmp_path / "bob-fresh")
    (cloned,) = fresh.pull([str(shared)])
    assert cloned.error is not None
    assert cloned.error.code == "E471"


def test_the_revocation_of_a_refused_pull_is_remembered(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stolen = UserKeys().own()
    shared = tmp_path / "shared"
    assert odf("key", "revoke", "me", "--reason", "compromised", "--yes") == 0
    list(workspace.push([NAME], to=str(shared)))
    steal(shared, stolen)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "bob"))
    bob = Workspace.init(tmp_path / "bob-workspace")
    (first,) = bob.pull([str(shared)])
    forget(shared, stolen)
    (second,) = bob.pull([str(shared)], as_name="other")
    assert [one.error.code for one in (first, second) if one.error] == ["E471", "E471"]
    assert {one.key for one in UserKeys().revoked.learnt} == {str(stolen.actor)}


def forget(place: Path, pair: KeyPair) -> None:
    """Take from a place what it says of a key."""
    (place / revocations.path_of(pair.actor)).unlink()


def steal(place: Path, pair: KeyPair) -> None:
    """Commit and sign there as a thief of a key does."""
    layout = DatasetLayout.local(place)
    state = say_now(layout)
    head = layout.chain.in_order()[-1]
    about = SignedBlock(dataset_id=state.dataset_id, block_hash=head.hash, sequence_number=head.block.sequence_number)
    assert layout.side is not None
    layout.side.write(
        path_of(head.hash), encode(about.signed_by([pair], BLOCK_SIGNATURES, Timestamp.now()), BLOCK_SIGNATURES)
    )


def test_an_expired_key_of_one_s_own_signs_no_more(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert odf("key", "expire", "--on", "2999-01-01", "--yes") == 0
    feed(Workspace.open(workspace.root), NAME, "2 b")
    key = UserKeys().own().actor
    side = workspace.storage.get(NAME).layout.side
    assert len(honoured_in(side, workspace.storage.get(NAME).handle.id, [key])) == 1
    now = Timestamp.parse("2999-02-01T00:00:00Z")
    monkeypatch.setattr("odfpy.coordinator.storage.signing.Timestamp.now", lambda: now)
    result = feed(Workspace.open(workspace.root), NAME, "3 c")
    assert [note.partition("\n")[0] for note in result.notes] == [
        "not signed by you: the key expired at 2999-01-01T00:00:00Z"
    ]


def test_a_forged_revocation_is_found_by_verify_and_revokes_nothing(workspace: Workspace) -> None:
    stored = workspace.storage.get(NAME)
    me = UserKeys().own()
    forged = KeyRevocation.made_by(MALLORY, me.actor, Reason.COMPROMISED, TIME)
    assert stored.layout.side is not None
    stored.layout.side.write(revocations.path_of(me.actor), revocations.encode([forged]))
    (report,) = workspace.verify([NAME], integrity_only=True)
    assert [finding.code for finding in report.findings] == ["E473"]
    assert report.signatures is not None
    assert me.actor in report.signatures.signers


def test_a_signature_after_the_revocation_is_found_by_verify(workspace: Workspace) -> None:
    stolen = UserKeys().own()
    stored = workspace.storage.get(NAME)
    assert odf("key", "revoke", "--reason", "compromised", "-y") == 0
    layout = stored.layout
    say_now(layout)
    head = layout.chain.in_order()[-1]
    made = SignedBlock(dataset_id=stored.handle.id, block_hash=head.hash, sequence_number=head.block.sequence_number)
    assert layout.side is not None
    layout.side.write(
        path_of(head.hash), encode(made.signed_by([stolen], BLOCK_SIGNATURES, Timestamp.now()), BLOCK_SIGNATURES)
    )
    (report,) = workspace.verify([NAME], integrity_only=True)
    assert [(finding.code, finding.block) for finding in report.findings] == [("E471", head.hash)]
    signers = Workspace.open(workspace.root).datasets.signers(NAME).get(head).signers
    assert "not valid" in signers[0].name


@pytest.mark.parametrize(
    "words",
    [
        ("revoke",),
        ("revoke", "--reason", "bored", "-y"),
        ("revoke", "owner", "--reason", "retired", "-y"),
        ("revoke", "nobody", "--reason", "retired", "-y"),
        ("expire", "--on", "tomorrow", "-y"),
        ("expire", "--on", "2001-01-01", "-y"),
    ],
)
def test_wrong_requests_change_nothing(words: tuple[str, ...], workspace: Workspace) -> None:
    key = UserKeys().own().actor
    assert odf("key", *words) in (1, 2)
    assert UserKeys().own().actor == key
    assert UserKeys().revoked == KnownRevocations()


def test_the_list_of_revoked_keys_is_believed_only_as_it_was_signed(tmp_path: Path, workspace: Workspace) -> None:
    assert odf("key", "revoke", str(CAROL.actor), "--reason", "retired", "-y") == 0
    file = tmp_path / "config" / "odf" / "revoked-keys.yaml"
    file.write_text(file.read_text().replace("retired", "compromised"))
    with pytest.raises(OdfError, match="not signed by the key that it names"):
        _ = UserKeys().revoked


def test_made_up_keys_neither_crowd_out_what_was_learnt_nor_fill_the_file(tmp_path: Path) -> None:
    from odfpy.coordinator.storage import revoked_keys

    file = revoked_keys.RevokedKeysFile()
    true = KeyRevocation.made_by(ALICE, ALICE.actor, Reason.COMPROMISED, TIME)
    strangers = [KeyPair(number.to_bytes(32, "big")) for number in range(1, 60)]
    junk = [KeyRevocation.made_by(pair, pair.actor, Reason.RETIRED, TIME) for pair in strangers]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revoked_keys, "_MAX_LEARNT", 20)
        file.add(learnt=[true], named=[ALICE.actor])
        file.add(learnt=junk, named=[ALICE.actor])
    assert file.load().learnt == (true, *junk[-20:])


def test_processes_that_learn_of_keys_at_once_lose_nothing(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from odfpy.coordinator.storage import revoked_keys

    pairs = [KeyPair(number.to_bytes(32, "big")) for number in range(1, 25)]
    learnt = [KeyRevocation.made_by(pair, pair.actor, Reason.RETIRED, TIME) for pair in pairs]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: revoked_keys.RevokedKeysFile().add(learnt=[one]), learnt))
    assert set(revoked_keys.RevokedKeysFile().load().learnt) == set(learnt)


def test_a_place_that_names_many_signers_gets_few_questions(there: DatasetLayout, tmp_path: Path) -> None:
    pairs = [KeyPair(number.to_bytes(32, "big")) for number in range(1, 200)]
    for at, hashed in enumerate(there.chain.in_order()):
        data = encode(about(hashed).signed_by(pairs[at * 16 : at * 16 + 16], BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES)
        assert there.side is not None
        there.side.write(path_of(hashed.hash), data)
    with pytest.MonkeyPatch.context() as patch, static_server(tmp_path) as server:
        patch.setattr("odfpy.repository.transfer.signatures._MAX_SIGNERS", 20)
        transfer(http_dataset(f"{server.url}/there"), DatasetLayout.in_memory())
        assert sum("/info/revocations/" in str(one) for one in server.requests) == 20
