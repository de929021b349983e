"""Both sides of a conversation of the Smart Transfer Protocol in one thread, without a network, which can be cut anywhere."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.repository.objects import ObjectKind
from odfpy.repository.smart_transfer.messages import ObjectFile, TransferUrl, Visibility, closing_reason
from odfpy.repository.smart_transfer.session import (
    FAILED,
    NORMAL,
    Conversation,
    Fetch,
    FetchCapabilities,
    FetchHead,
    Located,
    PeerClosed,
    Receive,
    ReceiveWhileUploading,
    Refusal,
    Send,
    StartUploads,
    TakeSignatures,
    UploadProgress,
)
from odfpy.repository.transfer.signatures import CollectedSignatures

URL = "memory:"


class Site:
    """A server's dataset in memory: absent at first, staged by a push, there when that is published."""

    def __init__(self, layout: DatasetLayout | None = None) -> None:
        self.layout = layout
        self.staged: dict[DatasetId, DatasetLayout] = {}
        self.visibility: Visibility | None = None
        self.is_lacking = False

    def existing(self) -> DatasetLayout | None:
        return self.layout

    def stage(self, dataset_id: DatasetId) -> DatasetLayout:
        return self.staged.setdefault(dataset_id, DatasetLayout.in_memory())

    def locate(self, dataset_id: DatasetId, file: ObjectFile) -> TransferUrl:
        return TransferUrl(f"{URL}{dataset_id}")

    @contextmanager
    def receiving(self, dataset_id: DatasetId) -> Iterator[None]:
        yield

    @contextmanager
    def writing(self, dataset_id: DatasetId) -> Iterator[None]:
        yield

    def note_lacking(self, dataset_id: DatasetId) -> None:
        self.is_lacking = True

    def publish(self, layout: DatasetLayout, dataset_id: DatasetId, visibility: Visibility) -> None:
        self.layout, self.visibility = layout, visibility

    def place_of(self, url: str) -> DatasetLayout:
        return self.layout or self.staged[DatasetId.parse(url.removeprefix(URL))]

    def source(self) -> DatasetLayout:
        assert self.layout is not None
        return self.layout

    def located(self, file: ObjectFile) -> TransferUrl | None:
        store = file.object_type.store(self.source())
        return TransferUrl(URL) if file.physical_hash in store and store.size(file.physical_hash) == file.size else None

    @property
    def head(self) -> Multihash | None:
        return self.layout.refs.get(HEAD) if self.layout else None


@dataclass
class Side:
    """One side: what it waits for, and what has arrived for it."""

    conversation: Conversation[Any]
    inbox: deque[str] = field(default_factory=deque)
    step: Any = None
    result: Any = None
    error: BaseException | None = None
    is_over: bool = False

    def go_on(self, value: Any = None, error: BaseException | None = None) -> None:
        try:
            self.step = self.conversation.throw(error) if error else self.conversation.send(value)
        except StopIteration as stop:
            self.result, self.is_over = stop.value, True
        except Exception as failure:  # noqa: BLE001 - checked later
            self.error, self.is_over = failure, True


class Pair:
    """A client and a server that talk.

    Attributes:
        said: the messages in order: sender and text.
        moved: the files that were transferred.
        copy: how a file is transferred; a test may lose or forge it.
    """

    def __init__(
        self,
        client: Conversation[Any],
        server: Conversation[Any],
        here: DatasetLayout,
        site: Site,
        *,
        cut_after: int | None = None,
    ) -> None:
        self.client, self.server = Side(client), Side(server)
        self.here, self.site = here, site
        self.said: list[tuple[str, str]] = []
        self.moved: list[Multihash] = []
        self.takes: frozenset[str] = frozenset()
        self._left = cut_after
        self._given = 0
        self.copy: Callable[[DatasetLayout, DatasetLayout, Located], None] = copy

    def run(self) -> Any:
        """Run the conversation until both sides are done; return the client's result, or raise its error."""
        try:
            for side in (self.client, self.server):
                side.go_on()
            while not (self.client.is_over and self.server.is_over):
                moves = [self._move("client", self.client, self.server), self._move("server", self.server, self.client)]
                assert any(moves), f"both wait: {self.client.step}, {self.server.step}"
        except Cut:
            for side in (self.client, self.server):
                if not side.is_over:
                    side.go_on(error=PeerClosed(1006))
                    assert side.is_over
        if self.client.error:
            raise self.client.error
        return self.client.result

    def _move(self, name: str, side: Side, other: Side) -> bool:
        if side.is_over:
            return False
        match side.step:
            case Send(text):
                self._spend()
                self.said.append((name, text))
                other.inbox.append(text)
                side.go_on()
            case Receive() if side.inbox:
                side.go_on(side.inbox.popleft())
            case Receive() if other.is_over:
                side.go_on(error=closing(other))
            case Fetch(files):
                for located in files:
                    self._transfer(self.site.source(), self.here, located)
                side.go_on()
            case StartUploads(files):
                self._given = len(files)
                for located in files:
                    self._transfer(self.here, self.site.place_of(located.url.url), located)
                side.go_on()
            case ReceiveWhileUploading():
                side.go_on(UploadProgress(None, self._given, 0.0))
            case TakeSignatures():
                side.go_on(CollectedSignatures())
            case FetchCapabilities():
                side.go_on(self.takes)
            case FetchHead():
                side.go_on(self.site.head)
            case _:
                return False
        return True

    def _transfer(self, source: DatasetLayout, target: DatasetLayout, located: Located) -> None:
        self._spend()
        self.copy(source, target, located)
        self.moved.append(located.item.name)

    def _spend(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise Cut


class Cut(Exception):
    """The connection is cut here."""


def copy(source: DatasetLayout, target: DatasetLayout, located: Located) -> None:
    item = located.item
    data = item.kind.store(source).read(item.name)
    item.kind.store(target).insert_stream(io.BytesIO(data), item.name, size=item.size)


def closing(side: Side) -> PeerClosed:
    """Return the close frame of a completed side."""
    if isinstance(side.error, Refusal):
        return PeerClosed(FAILED, closing_reason(side.error.error))
    return PeerClosed(1006 if side.error else NORMAL)


__all__ = ["ObjectKind", "Pair", "Site", "copy"]
