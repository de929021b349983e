"""Single steps of conversations, which a network would make rare."""

from __future__ import annotations

from typing import Any

import pytest
from support.chains.small_datasets import add_slice, dataset_id, make_dataset

from odfpy.chain.layout import DatasetLayout
from odfpy.data.multihash import Multihash
from odfpy.dataset.names import DatasetAlias
from odfpy.repository.peer_errors import PeerFailed, RemoteCollision, RemoteHeadMoved
from odfpy.repository.smart_transfer.messages import (
    AllUploaded,
    Internal,
    NameCollision,
    Progress,
    PushPhase,
    RefCollision,
    Running,
    closing_reason,
    encode,
    encode_error,
)
from odfpy.repository.smart_transfer.push import push
from odfpy.repository.smart_transfer.session import (
    Conversation,
    FetchHead,
    PeerClosed,
    Receive,
    ReceiveWhileUploading,
    Send,
    StartUploads,
    UploadProgress,
)
from odfpy.repository.transfer.simple import TransferOutcome

OK = '{"Ok":{}}'


class Push:
    """A push of one object that has come to the end of its uploads."""

    def __init__(self) -> None:
        self.source = make_dataset(DatasetLayout.in_memory(), "a")
        (name,) = add_slice(self.source, b"row")
        self.head = self.source.chain.head()
        self.talk: Conversation[Any] = push(self.source, self.source.chain.in_order(), None)
        file = f'{{"object_type":"DataSlice","physical_hash":"{name}","size":3}}'
        url = '{"url":"http://h/x","headers":[],"expires_at":null}'
        strategy = f'{{"object_file":{file},"push_strategy":"HttpUpload","upload_to":{url}}}'
        self.replies = [OK, OK, f'{{"Ok":{{"object_transfer_strategies":[{strategy}]}}}}']

    def to_uploads(self) -> None:
        step = next(self.talk)
        while not isinstance(step, StartUploads):
            step = self.talk.send(self.replies.pop(0) if isinstance(step, Receive) else None)
        assert isinstance(self.talk.send(None), ReceiveWhileUploading)

    def done(self, seconds: float) -> None:
        """All is uploaded; the client waits for the confirmation."""
        assert self.talk.send(UploadProgress(None, 1, seconds)) == Send(encode(Progress(AllUploaded())))
        assert self.talk.send(None) == Send("{}")
        assert isinstance(self.talk.send(None), Receive)

    def ends(self, value: Any) -> Any:
        with pytest.raises(StopIteration) as stop:
            self.talk.send(value)
        return stop.value.value


@pytest.fixture
def pushed() -> Push:
    made = Push()
    made.to_uploads()
    return made


def test_questions_are_answered_with_what_is_uploaded(pushed: Push):
    for count in (0, 1):
        assert pushed.talk.send(UploadProgress("{}", count, 10.0)) == Send(encode(Progress(Running(count))))
        assert isinstance(pushed.talk.send(None), ReceiveWhileUploading)


def test_confirmation_of_a_short_push_is_believed(pushed: Push):
    pushed.done(1.0)
    assert pushed.ends("{}").outcome is TransferOutcome.UPDATED


def test_confirmation_that_may_be_a_question_is_not_believed_before_the_head_has_moved(pushed: Push):
    pushed.done(10.5)
    assert isinstance(pushed.talk.send("{}"), FetchHead)
    assert isinstance(pushed.talk.send(None), Receive), "this was the question"
    assert isinstance(pushed.talk.send("{}"), FetchHead)
    assert pushed.ends(pushed.head).new_head == pushed.head


def test_many_questions_may_have_been_on_their_way(pushed: Push):
    pushed.done(10.5)
    for _ in range(5):
        assert isinstance(pushed.talk.send("{}"), FetchHead)
        assert isinstance(pushed.talk.send(None), Receive)
    assert isinstance(pushed.talk.send("{}"), FetchHead)
    assert pushed.ends(pushed.head).new_head == pushed.head


def test_confirmation_of_another_head_is_an_error(pushed: Push):
    pushed.done(10.5)
    pushed.talk.send("{}")
    pushed.talk.send(None)
    pushed.talk.send("{}")
    with pytest.raises(RemoteHeadMoved, match=str(pushed.head)):
        pushed.talk.send(Multihash.of(b"other"))


def test_server_that_fails_during_uploads_is_heard(pushed: Push):
    reason = closing_reason(Internal(PushPhase.OBJECTS_UPLOAD_PROGRESS, "disk full"))
    with pytest.raises(PeerFailed, match="disk full"):
        pushed.talk.throw(PeerClosed(1011, reason))


@pytest.mark.parametrize("error", [NameCollision(DatasetAlias.parse("a.b")), RefCollision(dataset_id(2))])
@pytest.mark.parametrize("closes", [False, True])
def test_collisions_are_told_however_the_server_says_them(error: Any, closes: bool):
    made = Push()
    step = next(made.talk)
    while "object_files" not in getattr(step, "text", ""):
        step = made.talk.send(made.replies.pop(0) if isinstance(step, Receive) else None)
    assert isinstance(made.talk.send(None), Receive)
    closing = PeerClosed(1011, closing_reason(error))
    with pytest.raises(RemoteCollision, match=r"a\.b|did:odf"):
        made.talk.throw(closing) if closes else made.talk.send(encode_error(error))
