"""Webs of relays in one process: they query each other by function calls, which a test can break."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
from support.federation.transformations import transformed

from odfpy.errors import OdfError
from odfpy.federation.relay.catalog import Catalog, LocalRows, RemoteRows
from odfpy.federation.relay.peers import Peers
from odfpy.federation.relay.question import Answer, Cancellation, Part, Question
from odfpy.federation.relay.relay import Relay
from odfpy.federation.relay.requesters import Identity, Requester
from odfpy.federation.relay.tickets import Tickets, read_for
from odfpy.federation.sql.expressions import Expression
from odfpy.sharing.decisions import ALL, View

ENTITY = "item"
COLUMNS = pa.schema([("key", pa.int64()), ("price", pa.float64())])
KEY = bytes(32)
"""Of all relays, so that a test can read every ticket."""


def identity(name: str) -> Identity:
    """Return the identity of a relay or user of a test."""
    return Identity(name.encode().hex().ljust(64, "0"), {"subject.CN": name})


def token(holder: Identity, query: str, on_behalf_of: Identity | None = None) -> str:
    """Return a stand-in for a signed token; real signatures are slow."""
    return json.dumps([holder.attributes["subject.CN"], query, on_behalf_of and on_behalf_of.attributes["subject.CN"]])


def requester(text: str) -> Requester:
    """Return the requester of such a token."""
    name, query, other = json.loads(text)
    return Requester(identity(name), tuple(identity(one) for one in (name, other) if one), query)


ASKER = identity("asker")


@cache
def _words(price: str) -> Mapping[str, Expression]:
    """Return the vocabulary of a peer, parsed once, as in relays."""
    return {"key": transformed("{v}", "key", COLUMNS), "price": transformed(price, "price", COLUMNS)}


@dataclass
class KnownHere(Catalog):
    """The knowledge of a relay in a test.

    Attributes:
        sources: names of data sources that have rows of the entity.
        links: the relays that it queries, and the transformation of the price there to the price here.
        views: the visible part of each source, if not all; `rows by name` per requester.
    """

    sources: Sequence[str]
    links: Mapping[str, str]
    views: Mapping[str, View | None] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def columns(self, entity: str) -> pa.Schema | None:
        return COLUMNS if entity == ENTITY else None

    def local(self, entity: str) -> list[LocalRows]:
        own = {name: transformed("{v}", name, COLUMNS) for name in COLUMNS.names}
        return [LocalRows(source, own) for source in self.sources]

    def remote(self, entity: str) -> list[RemoteRows]:
        return [RemoteRows(peer, ENTITY, _words(text)) for peer, text in self.links.items()]

    def peers(self) -> list[str]:
        return list(self.links)

    def view(self, source: str, requester: Identity) -> View | None:
        return self.views.get(f"{source} by {requester.attributes['subject.CN']}", self.views.get(source, ALL))

    def is_first(self, key: str, seconds: float) -> bool:
        with self.lock:
            if key in self.seen:
                return False
            self.seen.add(key)
            return True


@dataclass
class Wire(Peers):
    """The connection of one relay to all others.

    Attributes:
        web: the web.
        me: the relay.
    """

    web: SimulatedWeb
    me: Identity

    def ask(self, peer: str, question: Question) -> Answer:
        self.web.count()
        if peer in self.web.down:
            raise OdfError(f"cannot connect to {peer}")
        if peer in self.web.slow:
            self.web.over.wait(question.seconds * 10)
        return self.web.relays[peer].answer(Question.parse(question.to_json()), self.me)

    def cancel(self, peer: str, cancellation: Cancellation) -> None:
        self.web.cancelled.append((self.me.attributes["subject.CN"], peer))
        self.web.relays[peer].cancel(Cancellation.parse(cancellation.to_json()), self.me)


class SimulatedWeb:
    """Relays by name.

    Attributes:
        relays: the relays.
        messages: questions that went from one to another.
        cancelled: cancellations that went from one to another.
        down: unreachable relays.
        slow: those that never answer.
    """

    def __init__(
        self, links: Mapping[str, Mapping[str, str]], *, down: Iterable[str] = (), slow: Iterable[str] = ()
    ) -> None:
        """
        Args:
            links: for each relay those that it queries, with the transformation of the price there to the price here.
            down: unreachable relays.
            slow: those that never answer.
        """
        self.messages = 0
        self.cancelled: list[tuple[str, str]] = []
        self.down, self.slow = set(down), set(slow)
        self.over = threading.Event()
        self._lock = threading.Lock()
        self.known = {name: KnownHere([f"{name} rows"], peers) for name, peers in links.items()}
        self.relays = {name: self._relay(name, known) for name, known in self.known.items()}

    def _relay(self, name: str, known: KnownHere) -> Relay:
        tickets = Tickets(KEY, is_first=known.is_first)
        me = identity(name)
        vouch = lambda caller, query, _: token(me, query, caller)  # noqa: E731
        return Relay(
            name,
            me.fingerprint,
            f"grpc+tls://{name}:1",
            known,
            tickets,
            Wire(self, me),
            identify=requester,
            vouch=vouch,
        )

    def count(self) -> None:
        with self._lock:
            self.messages += 1

    def close(self) -> None:
        self.over.set()
        for relay in self.relays.values():
            relay.close()

    def ticket(self, part: Part, caller: Identity | None = None, reader: Identity | None = None) -> Any:
        """Return the ticket of a part for the requester, or for a relay that reads it on their behalf."""
        text = part.ticket if reader is None else read_for(part.ticket, reader.fingerprint)
        return Tickets(KEY, is_first=lambda *_: True).open(text, caller or ASKER)
