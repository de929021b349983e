"""A relay: rewrites a question for its own sources and for its peers, and returns where the rows can be read.

Each fragment has an id. A relay forwards each id to its peers at most once per entity, and returns each of its sources
once. So in any topology, even with cycles, each source is returned once, and the number of messages grows with the
number of links, not of paths.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import NotFound, OdfError, QueryCancelled
from odfpy.federation.errors import AuthenticationFailed
from odfpy.federation.relay.bounds import fitting
from odfpy.federation.relay.call_pool import Call, CallGroup, CallPool
from odfpy.federation.relay.catalog import Catalog, RemoteRows, seen_by_all
from odfpy.federation.relay.peers import Peers
from odfpy.federation.relay.query_registry import QueryKey, QueryRegistry
from odfpy.federation.relay.question import Answer, Cancellation, MissingRelay, Part, Question, SentFragment
from odfpy.federation.relay.requesters import Identity, Requester
from odfpy.federation.relay.tickets import LIFE, PassedTicket, Ticket, Tickets
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Expression
from odfpy.federation.sql.fragment import Fragment, explained
from odfpy.federation.sql.mapping import rewritten
from odfpy.sharing.decisions import View

KEPT: Final = 3600.0
"""Seconds for which the id of a question is remembered."""

MARGIN: Final = 0.2
"""The share of its time that a relay reserves for itself: late answers are useless."""

AT_ONCE: Final = 64
"""Maximum number of peers queried concurrently, for all questions together."""

_Rewritings: TypeAlias = dict[tuple[str, tuple[tuple[str, Expression], ...]], Question]
_MIN_SECONDS: Final = 0.05

_LOGGER = logging.getLogger("odf.relay")


class Relay:
    """A relay: answers questions with the parts to read, here and at peers; used by relay servers. Thread-safe."""

    def __init__(
        self,
        name: str,
        fingerprint: str,
        location: str,
        catalog: Catalog,
        tickets: Tickets,
        peers: Peers,
        *,
        identify: Callable[[str], Requester],
        vouch: Callable[[Identity, str, float], str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        Args:
            name: the relay's name in answers.
            fingerprint: fingerprint of its certificate.
            location: location of the server that its rows are read from.
            catalog: the catalog to plan from.
            tickets: issues tickets for parts.
            peers: client of the other relays.
            identify: returns the requester of a token; raises `AuthenticationFailed`.
            vouch: signs a token on behalf of a requester, for the id of a query, valid for some seconds.
            clock: returns the current time, in seconds since the epoch.
        """
        self.name = name
        self._fingerprint = fingerprint
        self._location = location
        self._catalog = catalog
        self._tickets = tickets
        self._peers = peers
        self._identify = identify
        self._vouch = vouch
        self._clock = clock
        self._queries = QueryRegistry()
        self._calls = CallPool(AT_ONCE, f"relay {name}")

    def close(self) -> None:
        """Stop waiting for peers."""
        self._calls.close()

    def answer(self, question: Question, caller: Identity, control: CancellationToken | None = None) -> Answer:
        """Return the parts that a question's rows are read from.

        Args:
            question: the question, in this relay's vocabulary.
            caller: its sender; the requester, unless the question has another requester's token.
            control: lets another thread cancel it; then, if the caller is the requester, all peers are notified, too.

        Raises:
            NotFound: there is no such entity.
            AuthenticationFailed: the requester's token is not signed by a trusted certificate.
            InvalidFragment: the question does not fit the entity.
            QueryCancelled: the query was cancelled.
        """
        began = time.monotonic()
        requester = self._requester(question.requester, question.query, caller)
        columns = self._catalog.columns(question.fragment.entity)
        if columns is None:
            raise NotFound(f"This relay has no entity {question.fragment.entity}")
        # Bound to the relay that asks the peers: nobody else can use up an id, and a question that comes back is
        # recognized.
        asks = self._fingerprint if question.requester is None else requester.holder.fingerprint
        token = question.requester or self._vouch(caller, question.query, question.seconds)
        key = QueryKey(requester.holder.fingerprint, question.query)
        with CancellationToken(parent=control) as inner, self._queries.planning(key, token, inner):
            if not self._catalog.is_first(f"{asks} {question.id} entity {question.fragment.entity}", KEPT):
                return Answer()
            fragment = question.fragment.read(columns)
            # Its own parts are planned before the question can come back in a cycle.
            parts = self._own(question, fragment, requester, f"{asks} {question.id}")
            asking = self._calls.group()
            waited = self._forward(replace(question, requester=token), fragment, asking)
            try:
                left = question.seconds * (1 - MARGIN) - (time.monotonic() - began)
                asking.wait(left, inner)
            except QueryCancelled:
                # A relay that hangs up may just have run out of time, and still use the other answers. One that knows
                # that the query was cancelled notifies the others itself.
                if caller.fingerprint == requester.holder.fingerprint:
                    self._notify_peers(key, Cancellation(question.query, token, question.hops))
                raise
        answers, missing = self._collected(waited)
        peer_parts = [part for answer in answers for part in answer.parts]
        if question.requester is None:
            peer_parts = [self._passed(part, caller, question.id) for part in peer_parts]
        missing += [relay for answer in answers for relay in answer.missing]
        return Answer((*parts, *peer_parts), tuple(missing))

    def cancel(self, cancellation: Cancellation, caller: Identity) -> QueryKey:
        """Cancel a requester's query, here and at all relays that may have been queried.

        Args:
            cancellation: the cancellation of the query.
            caller: its sender; the requester, unless it has another requester's token.

        Returns:
            The key of the query among those whose rows are read here.

        Raises:
            AuthenticationFailed: the requester's token is not signed by a trusted certificate.
        """
        requester = self._requester(cancellation.requester, cancellation.query, caller)
        key = QueryKey(requester.holder.fingerprint, cancellation.query)
        token = self._queries.cancel(key) or cancellation.requester
        if token is not None:
            self._notify_peers(key, replace(cancellation, requester=token))
        return key

    def _notify_peers(self, key: QueryKey, cancellation: Cancellation) -> None:
        """Notify all peers, once, that a query was cancelled, without waiting for them."""
        if cancellation.hops <= 0 or not self._catalog.is_first(f"{key} cancelled", KEPT):
            return
        further = replace(cancellation, hops=cancellation.hops - 1)
        nobody_waits = self._calls.group()
        for peer in self._catalog.peers():
            nobody_waits.start(self._peers.cancel, peer, further)

    def _requester(self, token: str | None, query: str, caller: Identity) -> Requester:
        if token is None:
            return Requester(caller, (caller,), query)
        requester = self._identify(token)
        if requester.query != query:
            raise AuthenticationFailed("The token of the requester is about another query")
        return requester

    def _own(self, question: Question, fragment: Fragment, requester: Requester, key: str) -> list[Part]:
        """Return the parts that are read from this relay's sources."""
        parts = []
        options = question.options
        sql = explained(fragment) if options.explained else None
        for rows in self._catalog.local(fragment.entity):
            if self.view(rows.source, requester.seen_by) is None:
                continue
            if not self._catalog.is_first(f"{key} source {rows.source}", KEPT):
                continue
            ends = self._clock() + LIFE
            ticket = Ticket(
                rows.source, fragment, requester.seen_by, question.id, ends, options.single_use, options.signed
            )
            parts.append(Part(self.name, self._location, self._tickets.close(ticket), sql))
        return parts

    def view(self, source: str, seen_by: Sequence[Identity]) -> View | None:
        """Return the cells of a data source that several identities may all see; None if there are none.

        Args:
            source: name of the source.
            seen_by: the identities.
        """
        return seen_by_all([self._catalog.view(source, identity) for identity in seen_by])

    def _passed(self, part: Part, caller: Identity, id_: str) -> Part:
        """Return a part of another relay, to be read through this one: its ticket is bound to this relay's key."""
        ticket = PassedTicket(part, caller, id_, self._clock() + LIFE)
        return Part(part.relay, self._location, self._tickets.close(ticket), part.sql)

    def _forward(
        self, question: Question, fragment: Fragment, asking: CallGroup
    ) -> dict[str, Call[Answer] | MissingRelay]:
        """Forward a question to all peers that have rows of the entity, in each one's vocabulary."""
        calls: dict[str, Call[Answer] | MissingRelay] = {}
        rewritings: _Rewritings = {}
        further = replace(question, hops=question.hops - 1, seconds=question.seconds * (1 - MARGIN))
        for rows in self._catalog.remote(fragment.entity):
            name = rows.peer if rows.peer not in calls else f"{rows.peer} ({rows.entity})"
            if question.hops <= 0:
                calls[name] = MissingRelay(rows.peer, "the query has reached the maximum number of relays")
            elif question.seconds < _MIN_SECONDS:
                calls[name] = MissingRelay(rows.peer, "no time was left to query it")
            else:
                try:
                    asked = _rewritten(further, fragment, rows, rewritings)
                except InvalidFragment as error:
                    calls[name] = MissingRelay(rows.peer, error.message)
                    continue
                calls[name] = asking.start(self._peers.ask, rows.peer, asked)
        return calls

    def _collected(self, asked: Mapping[str, Call[Answer] | MissingRelay]) -> tuple[list[Answer], list[MissingRelay]]:
        """Return the answers that arrived in time, and the peers without one."""
        answers: dict[str, Answer] = {}
        missing = []
        for name, call in asked.items():
            peer = name.partition(" ")[0]
            if isinstance(call, MissingRelay):
                missing.append(call)
            elif call.result is not None:
                answers[name] = call.result
            elif call.error is None:
                missing.append(MissingRelay(peer, "it has not answered in time"))
            elif isinstance(call.error, OdfError):
                missing.append(MissingRelay(peer, call.error.message))
            else:
                _LOGGER.error("asking %s: a bug", peer, exc_info=call.error)
                missing.append(MissingRelay(peer, f"{self.name} failed to ask it"))
        taken = fitting(answers)
        missing += [
            MissingRelay(name.partition(" ")[0], "its answer is too long") for name in answers if name not in taken
        ]
        return [answers[name] for name in answers if name in taken], missing


def _rewritten(question: Question, fragment: Fragment, rows: RemoteRows, known: _Rewritings) -> Question:
    """Return a question in a peer's vocabulary, serialized; many peers may share the result.

    Raises:
        InvalidFragment: the vocabularies do not fit.
    """
    words = rows.entity, tuple(rows.expressions.items())
    if words not in known:
        peer_fragment = SentFragment.of(rewritten(fragment, rows.entity, rows.expressions))
        known[words] = replace(question, fragment=peer_fragment)
    return known[words]
