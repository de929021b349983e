"""A relay: it puts a question into the words of its own sources and of its peers, and says where the rows are read.

Each fragment has an id. A relay asks its peers about an entity once for an id, and gives each of its sources once. So
any topology gives each source once, also one with cycles, and messages grow with links, not with paths.
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
"""The part of its time that a relay keeps for itself: an answer that comes too late is none."""

AT_ONCE: Final = 64
"""Peers that are asked at the same time, of all questions together."""

_Rewritings: TypeAlias = dict[tuple[str, tuple[tuple[str, Expression], ...]], Question]
_MIN_SECONDS: Final = 0.05

_LOGGER = logging.getLogger("odf.relay")


class Relay:
    """Answers questions; for all threads."""

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
            name: by which it is known in answers.
            fingerprint: of its certificate.
            location: where its rows are read.
            catalog: what it answers from.
            tickets: makes what rows are read with.
            peers: the way to the others.
            identify: gives the requester that a token tells of; raises `AuthenticationFailed`.
            vouch: signs a token on behalf of somebody, for the query of an id, that is good for some seconds.
            clock: tells the time, in seconds since 1970.
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
        """Wait for nobody any more."""
        self._calls.close()

    def answer(self, question: Question, caller: Identity, control: CancellationToken | None = None) -> Answer:
        """Say where the rows of a question are read.

        Args:
            question: in the words of this relay.
            caller: who has sent it; the requester, if the question has no token of another one.
            control: stops it from elsewhere; then all that were asked are told, too, if it is the requester who asks.

        Raises:
            NotFound: there is no such entity.
            AuthenticationFailed: the token of the requester is of nobody who is trusted.
            InvalidFragment: the question does not fit the entity.
            QueryCancelled: it is not wanted any more.
        """
        began = time.monotonic()
        requester = self._requester(question.requester, question.query, caller)
        columns = self._catalog.columns(question.fragment.entity)
        if columns is None:
            raise NotFound(f"This relay has no entity {question.fragment.entity}")
        # Bound to who asks the peers: nobody else can use up an id, and the question is known when it comes back.
        asks = self._fingerprint if question.requester is None else requester.holder.fingerprint
        token = question.requester or self._vouch(caller, question.query, question.seconds)
        key = QueryKey(requester.holder.fingerprint, question.query)
        with CancellationToken(parent=control) as inner, self._queries.planning(key, token, inner):
            if not self._catalog.is_first(f"{asks} {question.id} entity {question.fragment.entity}", KEPT):
                return Answer()
            fragment = question.fragment.read(columns)
            # Its own parts come before the question comes back in a circle.
            parts = self._own(question, fragment, requester, f"{asks} {question.id}")
            asking = self._calls.group()
            waited = self._forward(replace(question, requester=token), fragment, asking)
            try:
                left = question.seconds * (1 - MARGIN) - (time.monotonic() - began)
                asking.wait(left, inner)
            except QueryCancelled:
                # A relay that hangs up may just have run out of time, and use what the others say. One that knows that
                # the query is not wanted any more tells everybody itself.
                if caller.fingerprint == requester.holder.fingerprint:
                    self._notify_peers(key, Cancellation(question.query, token, question.hops))
                raise
        answers, missing = self._collected(waited)
        theirs = [part for answer in answers for part in answer.parts]
        if question.requester is None:
            theirs = [self._passed(part, caller, question.id) for part in theirs]
        missing += [one for answer in answers for one in answer.missing]
        return Answer((*parts, *theirs), tuple(missing))

    def cancel(self, cancellation: Cancellation, caller: Identity) -> QueryKey:
        """Cancel a query of somebody, here and at all relays that may have been asked.

        Args:
            cancellation: of the query.
            caller: who cancels it; the requester, if there is no token of another one.

        Returns:
            The name of the query among those whose rows are read here.

        Raises:
            AuthenticationFailed: the token of the requester is of nobody who is trusted.
        """
        requester = self._requester(cancellation.requester, cancellation.query, caller)
        key = QueryKey(requester.holder.fingerprint, cancellation.query)
        token = self._queries.cancel(key) or cancellation.requester
        if token is not None:
            self._notify_peers(key, replace(cancellation, requester=token))
        return key

    def _notify_peers(self, key: QueryKey, cancellation: Cancellation) -> None:
        """Notify all peers, once, that a query is not wanted any more, and wait for none of them."""
        if cancellation.hops <= 0 or not self._catalog.is_first(f"{key} cancelled", KEPT):
            return
        further = replace(cancellation, hops=cancellation.hops - 1)
        nobody_waits = self._calls.group()
        for peer in self._catalog.peers():
            nobody_waits.start(self._peers.cancel, peer, further)

    def _requester(self, token: str | None, query: str, caller: Identity) -> Requester:
        if token is None:
            return Requester(caller, (caller,), query)
        found = self._identify(token)
        if found.query != query:
            raise AuthenticationFailed("The token of the requester is about another query")
        return found

    def _own(self, question: Question, fragment: Fragment, requester: Requester, key: str) -> list[Part]:
        """The parts that are read here."""
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
        """The cells of a data source that some people may all see; None if there are none.

        Args:
            source: its name.
            seen_by: those people.
        """
        return seen_by_all([self._catalog.view(source, one) for one in seen_by])

    def _passed(self, part: Part, caller: Identity, id_: str) -> Part:
        """A part of another relay, to be read here: it is bound to the key of this one."""
        ticket = PassedTicket(part, caller, id_, self._clock() + LIFE)
        return Part(part.relay, self._location, self._tickets.close(ticket), part.sql)

    def _forward(
        self, question: Question, fragment: Fragment, asking: CallGroup
    ) -> dict[str, Call[Answer] | MissingRelay]:
        """Ask all peers that have rows of the entity, each in its own words."""
        found: dict[str, Call[Answer] | MissingRelay] = {}
        rewritings: _Rewritings = {}
        further = replace(question, hops=question.hops - 1, seconds=question.seconds * (1 - MARGIN))
        for rows in self._catalog.remote(fragment.entity):
            name = rows.peer if rows.peer not in found else f"{rows.peer} ({rows.entity})"
            if question.hops <= 0:
                found[name] = MissingRelay(rows.peer, "the question has gone through as many relays as it may")
            elif question.seconds < _MIN_SECONDS:
                found[name] = MissingRelay(rows.peer, "no time was left to ask it")
            else:
                try:
                    asked = _rewritten(further, fragment, rows, rewritings)
                except InvalidFragment as error:
                    found[name] = MissingRelay(rows.peer, error.message)
                    continue
                found[name] = asking.start(self._peers.ask, rows.peer, asked)
        return found

    def _collected(self, asked: Mapping[str, Call[Answer] | MissingRelay]) -> tuple[list[Answer], list[MissingRelay]]:
        """The answers that came in time, and who has given none."""
        answers: dict[str, Answer] = {}
        missing = []
        for name, one in asked.items():
            peer = name.partition(" ")[0]
            if isinstance(one, MissingRelay):
                missing.append(one)
            elif one.result is not None:
                answers[name] = one.result
            elif one.error is None:
                missing.append(MissingRelay(peer, "it has not answered in time"))
            elif isinstance(one.error, OdfError):
                missing.append(MissingRelay(peer, one.error.message))
            else:
                _LOGGER.error("asking %s: a bug", peer, exc_info=one.error)
                missing.append(MissingRelay(peer, f"{self.name} failed to ask it"))
        taken = fitting(answers)
        missing += [
            MissingRelay(name.partition(" ")[0], "its answer is too long") for name in answers if name not in taken
        ]
        return [answers[name] for name in answers if name in taken], missing


def _rewritten(question: Question, fragment: Fragment, rows: RemoteRows, known: _Rewritings) -> Question:
    """A question in the words of a peer, as it travels; those of many peers may be the same.

    Raises:
        InvalidFragment: their words do not fit.
    """
    words = rows.entity, tuple(rows.expressions.items())
    if words not in known:
        theirs = SentFragment.of(rewritten(fragment, rows.entity, rows.expressions))
        known[words] = replace(question, fragment=theirs)
    return known[words]
