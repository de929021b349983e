"""Hostile peers: what they send is told apart and refused, nothing is changed, and memory stays flat."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from support.chains.small_datasets import add_info, add_slice, image, make_dataset
from support.chains.smart_pair import Pair, Site
from support.chains.smart_tricks import ARCHIVES, blocks_of, some

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError
from odfpy.repository.divergence import DatasetsDiverged
from odfpy.repository.objects import ObjectKind
from odfpy.repository.peer_errors import PeerFailed, ProtocolViolation, RemoteHeadMoved
from odfpy.repository.smart_transfer.archive import pack
from odfpy.repository.smart_transfer.messages import (
    BlocksBatch,
    BlocksReply,
    Complete,
    Internal,
    ObjectFile,
    PullAccepted,
    PushBlocks,
    PushObjects,
    PushPhase,
    PushRequest,
    SeedBlockOverwriteRestricted,
    TransferPlan,
    Visibility,
    closing_reason,
    encode,
    encode_ok,
)
from odfpy.repository.smart_transfer.pull import pull, serve_pull
from odfpy.repository.smart_transfer.push import push
from odfpy.repository.smart_transfer.serve_push import serve_push
from odfpy.repository.smart_transfer.session import Conversation, PeerClosed, Receive, Refusal, Send
from odfpy.repository.transfer.options import TransferOptions
from odfpy.repository.transfer.simple import ForeignDataset

PLAN = TransferPlan(3, 0, 0, 1000, 0)
ACCEPTED = encode_ok(PullAccepted(PLAN))
MEMORY = 12 << 20


@pytest.fixture
def here() -> DatasetLayout:
    return DatasetLayout.in_memory()


def played(conversation: Conversation[Any], texts: Iterable[str]) -> list[Any]:
    """One side, with what the other says; gives its steps. At the end of the texts the other side hangs up."""
    said = iter(texts)
    steps = [next(conversation)]
    try:
        while True:
            if isinstance(steps[-1], Receive):
                text = next(said, None)
                steps.append(conversation.throw(PeerClosed(1006)) if text is None else conversation.send(text))
            else:
                steps.append(conversation.send(None))
    except StopIteration:
        return steps


def refused(batch: BlocksBatch | Callable[[], BlocksBatch], here: DatasetLayout, *, force: bool = False) -> OdfError:
    """The error of a pull that gets an archive."""
    before = image(here)
    batch = batch() if callable(batch) else batch
    with pytest.raises(OdfError) as caught:
        played(pull(here, TransferOptions(force=force)), [ACCEPTED, encode(BlocksReply(batch))])
    assert image(here) == before
    return caught.value


# --- A hostile server ---


@pytest.mark.parametrize("trick", ARCHIVES)
def test_client_refuses_an_archive_with(trick: str, here: DatasetLayout):
    batch = ARCHIVES[trick]()
    tracemalloc.start()
    try:
        error = refused(batch, here)
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    assert type(error) is not OdfError
    assert error.message


def test_blocks_that_do_not_follow_are_refused(here: DatasetLayout):
    make_dataset(here, "a")
    other = blocks_of(make_dataset(DatasetLayout.in_memory(), "x", "y"))
    refused(pack(other[-1:]), here)
    assert isinstance(refused(pack(other), here), DatasetsDiverged)


def test_forged_fork_and_rollback_are_not_followed(here: DatasetLayout):
    make_dataset(here, "a", "b")
    fork = blocks_of(make_dataset(DatasetLayout.in_memory(), "a", "forged"))
    assert isinstance(refused(pack(fork), here), DatasetsDiverged)
    assert isinstance(refused(pack(blocks_of(here)[:2]), here), DatasetsDiverged)


def test_another_dataset_is_refused_also_with_force(here: DatasetLayout):
    make_dataset(here, "a")
    for force in (False, True):
        assert isinstance(refused(pack(some(number=2)), here, force=force), ForeignDataset)


BAD_TEXTS = {
    "nothing": "",
    "not JSON": "}{",
    "a list": "[]",
    "a number": "1",
    "very deep": "[" * 200_000,
    "neither Ok nor Err": '{"Maybe": {}}',
    "an unknown error": '{"Err": {"Oops": {}}}',
    "no plan": '{"Ok": {}}',
    "a plan of text": '{"Ok": {"transfer_plan": "big"}}',
    "a negative number": encode_ok(PullAccepted(PLAN)).replace('"num_blocks":3', '"num_blocks":-3'),
    "a huge number": encode_ok(PullAccepted(PLAN)).replace("1000", "9" * 5000),
    "half a number": encode_ok(PullAccepted(PLAN)).replace("1000", "0.5"),
    "a truth value": encode_ok(PullAccepted(PLAN)).replace("1000", "true"),
}


@pytest.mark.parametrize("text", BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_client_refuses_a_message_that_is(text: str, here: DatasetLayout):
    source = make_dataset(DatasetLayout.in_memory(), "a")
    with pytest.raises(ProtocolViolation):
        played(pull(here), [text])
    with pytest.raises((PeerClosed, ProtocolViolation)):  # what is in an Ok does not matter here
        played(push(source, source.chain.in_order(), None), [text])


def test_bytes_that_are_none_are_refused(here: DatasetLayout):
    text = encode(BlocksReply(pack(some())))
    for bad in ("[256", "[-1", '["x"', "[1.5", "[null", "{", '"'):
        with pytest.raises(ProtocolViolation):
            played(pull(here), [ACCEPTED, text.replace("[31", bad)])


def located(files: list[dict[str, Any]], url: str = "http://h/x", **changes: Any) -> str:
    strategies = [
        {
            "object_file": file,
            "pull_strategy": "HttpDownload",
            "download_from": {"url": url, "headers": [], "expires_at": None},
        }
        | changes
        for file in files
    ]
    return json.dumps({"object_transfer_strategies": strategies})


def test_objects_that_were_not_asked_for_are_refused(here: DatasetLayout):
    source = make_dataset(DatasetLayout.in_memory(), "a")
    (name,) = add_slice(source, b"row")
    file = {"object_type": "DataSlice", "physical_hash": str(name), "size": 3}
    reply = encode(BlocksReply(pack(blocks_of(source))))
    other = {**file, "physical_hash": str(Multihash.of(b"x"))}
    for files in (
        [],
        [other],
        [file, other],
        [file, file],
        [{**file, "size": 4}],
        [{**file, "object_type": "Checkpoint"}],
    ):
        with pytest.raises(ProtocolViolation, match="locations for the requested objects"):
            played(pull(here), [ACCEPTED, reply, located(files)])
    with pytest.raises(ProtocolViolation, match="HttpDownload"):
        played(pull(here), [ACCEPTED, reply, located([file], pull_strategy="Ftp")])
    assert here.refs.get(HEAD) is None


@pytest.mark.parametrize("how", ["wrong", "long", "short", "missing"])
def test_object_that_is_not_what_it_should_be_ends_the_pull(here: DatasetLayout, how: str):
    source = make_dataset(DatasetLayout.in_memory(), "a")
    (name,) = add_slice(source, b"row")
    forged = {"wrong": b"raw", "long": b"row of it", "short": b"ro", "missing": None}[how]
    if forged is None:
        source.data.delete(name)
    else:
        source.data._objects[name] = forged
    pair = Pair(
        pull(here),
        serve_pull(source, lambda _file: Site(source).locate(source.chain.state().dataset_id, _file)),
        here,
        Site(source),
    )

    def unchecked(theirs: DatasetLayout, ours: DatasetLayout, file: Any) -> None:
        with theirs.data.open(file.item.name) as stream:
            ours.data.insert_stream(stream, file.item.name, size=file.item.size)

    pair.copy = unchecked
    with pytest.raises(OdfError, match=str(name)):
        pair.run()
    assert here.refs.get(HEAD) is None
    assert not list(here.data)


def test_server_that_gives_up_says_why(here: DatasetLayout):
    def closing(reason: str, code: int = 1011) -> OdfError:
        conversation = pull(here)
        next(conversation)
        assert isinstance(conversation.send(None), Receive)
        with pytest.raises(OdfError) as caught:
            conversation.throw(PeerClosed(code, reason))
        return caught.value

    said = closing(closing_reason(Internal(PushPhase.COMPLETE_REQUEST, "disk full")))
    assert isinstance(said, PeerFailed)
    assert "disk full" in said.message
    assert isinstance(closing(closing_reason(SeedBlockOverwriteRestricted())), ForeignDataset)
    for reason in ("", "no JSON", '{"Err":', '{"Ok":{}}'):
        assert isinstance(closing(reason), PeerClosed)
    assert isinstance(closing(closing_reason(Internal(PushPhase.COMPLETE_REQUEST, "x")), 1000), PeerClosed)


# --- A hostile client ---


def request_for(batch: BlocksBatch, head: Multihash | None = None, *, force: bool = False) -> str:
    plan = replace(PLAN, num_blocks=batch.num_blocks)
    return encode(PushRequest(head, plan, force, Visibility.PUBLIC))


def told(site: Site, texts: list[str], **options: Any) -> Any:
    """What a server tells a client that says such things; nothing is changed."""
    before = image(site.layout) if site.layout else None
    with pytest.raises(Refusal) as caught:
        played(serve_push(site, **options), texts)
    assert (image(site.layout) if site.layout else None) == before
    assert len(closing_reason(caught.value.error).encode()) <= 123
    return caught.value.error


@pytest.mark.parametrize("trick", ARCHIVES)
def test_server_refuses_an_archive_with(trick: str):
    batch = ARCHIVES[trick]()
    site = Site()
    tracemalloc.start()
    try:
        error = told(site, [request_for(batch), encode(PushBlocks(batch))])
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    assert error.phase is PushPhase.METADATA_REQUEST
    assert not site.staged


@pytest.mark.parametrize("text", [text for text in BAD_TEXTS.values() if text != ACCEPTED], ids=BAD_TEXTS)
def test_server_refuses_a_message_that_is(text: str):
    assert told(Site(), [text]).phase is PushPhase.INITIAL_REQUEST
    source = make_dataset(DatasetLayout.in_memory(), "a")
    with pytest.raises(Refusal):
        played(serve_pull(source, Site(source).located), [text])


def test_head_that_is_not_the_head_is_refused():
    site = Site(make_dataset(DatasetLayout.in_memory(), "a"))
    batch = pack(some())
    (_, said) = played(serve_push(site), [request_for(batch)])
    assert json.loads(said.text) == {
        "Err": {"InvalidHead": {"actual_head": None, "expected_head": str(site.head)}},
    }
    conversation = push(site.source(), site.source().chain.in_order(), None)
    with pytest.raises(RemoteHeadMoved, match=str(site.head)):
        played(conversation, [said.text])


def test_blocks_of_another_dataset_are_refused():
    site = Site(make_dataset(DatasetLayout.in_memory(), "a", number=2))
    for force in (False, True):
        batch = pack(some(number=1))
        error = told(site, [request_for(batch, site.head, force=force), encode(PushBlocks(batch))])
        assert error == SeedBlockOverwriteRestricted()


def test_blocks_are_overwritten_only_with_force_and_the_right_to_it():
    site = Site(make_dataset(DatasetLayout.in_memory(), "a"))
    batch = pack(some())
    add_info(site.source(), "lost")
    for force, may_force, words in ((False, True, "force"), (True, False, "needs the scope admin")):
        texts = [request_for(batch, site.head, force=force), encode(PushBlocks(batch))]
        assert words in told(site, texts, may_force=may_force).error_message


def test_blocks_of_the_future_are_taken_only_if_they_are_forced():
    site, long_ago = Site(), Timestamp.parse("2001-01-01T00:00:00Z")
    batch = pack(some())
    error = told(site, [request_for(batch), encode(PushBlocks(batch))], clock=long_ago)
    assert error.error_message.startswith("E661 FromTheFuture: The push: the last block is of ")
    assert not site.staged
    with pytest.raises(PeerClosed):  # which has come as far as to ask for the objects
        played(serve_push(site, clock=long_ago), [request_for(batch, force=True), encode(PushBlocks(batch))])
    assert site.staged
    refused = Site()  # who may force a new branch may not bring blocks of the future with it
    texts = [request_for(batch, force=True), encode(PushBlocks(batch))]
    error = told(refused, texts, clock=long_ago, may_bring_future=False)
    assert error.error_message.startswith("E661 FromTheFuture")
    assert not refused.staged


def pushing(data: bytes = b"row") -> tuple[Multihash, list[str]]:
    source = make_dataset(DatasetLayout.in_memory(), "a")
    (name,) = add_slice(source, data)
    batch = pack(blocks_of(source))
    return name, [request_for(batch), encode(PushBlocks(batch))]


def test_objects_that_no_block_has_are_not_taken():
    name, texts = pushing()
    for file in (
        {"object_type": "DataSlice", "physical_hash": str(Multihash.of(b"x")), "size": 3},
        {"object_type": "Checkpoint", "physical_hash": str(name), "size": 3},
        {"object_type": "DataSlice", "physical_hash": str(name), "size": 4},
    ):
        message = json.dumps({"object_files": [file], "is_truncated": False})
        assert told(Site(), [*texts, message]).phase is PushPhase.OBJECTS_REQUEST
    many = json.dumps({"object_files": [file] * 10_001, "is_truncated": False})
    assert told(Site(), [*texts, many]).phase is PushPhase.OBJECTS_REQUEST


def test_commit_without_the_objects_is_refused():
    name, texts = pushing()
    files = (ObjectFile(ObjectKind.DATA_SLICE, name, 3),)
    done = '{"details":"Complete"}'
    for offered in (files, ()):
        site = Site()
        error = told(site, [*texts, encode(PushObjects(offered, is_truncated=False)), done, encode(Complete())])
        assert (error.phase, "has not arrived" in error.error_message) == (PushPhase.COMPLETE_REQUEST, True)
        assert all(layout.refs.get(HEAD) is None for layout in site.staged.values())


def test_object_beyond_the_limit_is_refused():
    _, texts = pushing(b"x" * 100)
    assert told(Site(), texts, max_object_size=99).phase is PushPhase.METADATA_REQUEST


def test_client_that_is_silent_during_uploads_is_given_up():
    _, texts = pushing()
    conversation = serve_push(Site())
    step = next(conversation)
    for text in [*texts, '{"object_files":[],"is_truncated":false}']:
        step = conversation.send(text)
        while not isinstance(step, Receive):
            step = conversation.send(None)
    pings = 0
    while (answer := after_ten_seconds(conversation, step)) is not None:
        assert answer == Send("{}")
        pings += 1
        step = conversation.send(None)
    assert pings >= 3


def after_ten_seconds(conversation: Conversation[Any], step: Any) -> Any:
    """What a server does when nothing comes; None when it has given up."""
    assert step == Receive(within=10.0)
    try:
        return conversation.send(None)
    except Refusal:
        return None


def test_client_may_not_ask_for_what_a_dataset_does_not_have():
    source = make_dataset(DatasetLayout.in_memory(), "a")
    request = '{"begin_after":null,"stop_at":null,"force_update_if_diverged":false}'
    file = {"object_type": "DataSlice", "physical_hash": str(Multihash.of(b"x")), "size": 3}
    for files in ([file], [file] * 10_001):
        with pytest.raises(Refusal):
            played(serve_pull(source, Site(source).located), [request, "{}", json.dumps({"object_files": files})])
