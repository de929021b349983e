"""A relay: it puts a question into the words of its own sources and of its peers, and says where the rows are read.

Each fragment has an id. A relay asks its peers about an entity once for an id, and gives each of its sources once. So
any topology gives each source once, also one with cycles, and messages grow with links, not with paths.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Final

from odfpy.errors import NotFound, OdfError
from odfpy.federation.errors import NotBelieved
from odfpy.federation.relay.bounds import fitting
from odfpy.federation.relay.knowledge import Knowledge, RemoteRows, seen_by_all
from odfpy.federation.relay.peers import Peers
from odfpy.federation.relay.question import Answer, Missing, Part, Question
from odfpy.federation.relay.requesters import Identity, Requester
from odfpy.federation.relay.tickets import LIFE, PassedTicket, Ticket, Tickets
from odfpy.federation.sql.fragment import Fragment
from odfpy.federation.sql.mapping import rewritten
from odfpy.sharing.decisions import View

KEPT: Final = 3600.0
"""Seconds for which the id of a question is remembered."""

MARGIN: Final = 0.2
"""The part of its time that a relay keeps for itself: an answer that comes too late is none."""

AT_ONCE: Final = 64
"""Peers that are asked at the same time, of all questions together."""

_LEAST: Final = 0.05
_LOGGER = logging.getLogger("odf.relay")


class Relay:
    """Answers questions; for all threads."""

    def __init__(
        self,
        name: str,
        fingerprint: str,
        location: str,
        knowledge: Knowledge,
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
            knowledge: what it answers from.
            tickets: makes what rows are read with.
            peers: the way to the others.
            identify: gives the requester that a token tells of; raises `NotBelieved`.
            vouch: signs a token on behalf of somebody, for the query of an id, that is good for some seconds.
            clock: tells the time, in seconds since 1970.
        """
        self.name = name
        self._fingerprint = fingerprint
        self._location = location
        self._knowledge = knowledge
        self._tickets = tickets
        self._peers = peers
        self._identify = identify
        self._vouch = vouch
        self._clock = clock
        self._threads = ThreadPoolExecutor(AT_ONCE, f"relay {name}")

    def close(self) -> None:
        """Wait for nobody any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def answer(self, question: Question, caller: Identity) -> Answer:
        """Say where the rows of a question are read.

        Args:
            question: in the words of this relay.
            caller: who has sent it; the requester, if the question has no token of another one.

        Raises:
            NotFound: there is no such entity.
            NotBelieved: the token of the requester is of nobody who is trusted.
            InvalidFragment: the question does not fit the entity.
        """
        began = time.monotonic()
        requester = self._requester(question, caller)
        columns = self._knowledge.columns(question.fragment.entity)
        if columns is None:
            raise NotFound(f"This relay has no entity {question.fragment.entity}")
        # Bound to who asks the peers: nobody else can use up an id, and the question is known when it comes back.
        holder = self._fingerprint if question.requester is None else requester.holder.fingerprint
        key = f"{holder} {question.id}"
        if not self._knowledge.is_first(f"{key} entity {question.fragment.entity}", KEPT):
            return Answer()
        fragment = Fragment.parse(question.fragment.to_json(), columns)
        parts = self._own(fragment, requester, key, question.id)  # before the question comes back in a circle
        waited = self._forward(question, fragment, caller)
        answers, missing = self._collected(waited, question.seconds * (1 - MARGIN) - (time.monotonic() - began))
        theirs = [part for answer in answers for part in answer.parts]
        if question.requester is None:
            theirs = [self._passed(part, caller, question.id) for part in theirs]
        missing += [one for answer in answers for one in answer.missing]
        return Answer((*parts, *theirs), tuple(missing))

    def _requester(self, question: Question, caller: Identity) -> Requester:
        query = question.id.partition(" ")[0]
        if question.requester is None:
            return Requester(caller, (caller,), query)
        found = self._identify(question.requester)
        if found.query != query:
            raise NotBelieved("The token of the requester is about another query")
        return found

    def _own(self, fragment: Fragment, requester: Requester, key: str, id_: str) -> list[Part]:
        """The parts that are read here."""
        parts = []
        for rows in self._knowledge.local(fragment.entity):
            if self.view(rows.source, requester.seen_by) is None:
                continue
            if not self._knowledge.is_first(f"{key} source {rows.source}", KEPT):
                continue
            ticket = Ticket(rows.source, fragment, requester.seen_by, id_, self._clock() + LIFE)
            parts.append(Part(self.name, self._location, self._tickets.close(ticket)))
        return parts

    def view(self, source: str, seen_by: Sequence[Identity]) -> View | None:
        """The cells of a data source that some people may all see; None if there are none.

        Args:
            source: its name.
            seen_by: those people.
        """
        return seen_by_all([self._knowledge.view(source, one) for one in seen_by])

    def _passed(self, part: Part, caller: Identity, id_: str) -> Part:
        """A part of another relay, to be read here: it is bound to the key of this one."""
        ticket = PassedTicket(part, caller, id_, self._clock() + LIFE)
        return Part(part.relay, self._location, self._tickets.close(ticket))

    def _forward(self, question: Question, fragment: Fragment, caller: Identity) -> dict[str, Future[Answer] | Missing]:
        """Ask all peers that have rows of the entity, each in its own words."""
        found: dict[str, Future[Answer] | Missing] = {}
        token = question.requester
        if token is None:
            token = self._vouch(caller, question.id.partition(" ")[0], question.seconds)
        for rows in self._knowledge.remote(fragment.entity):
            name = rows.peer if rows.peer not in found else f"{rows.peer} ({rows.entity})"
            if question.hops <= 0:
                found[name] = Missing(rows.peer, "the question has gone through as many relays as it may")
            elif question.seconds < _LEAST:
                found[name] = Missing(rows.peer, "no time was left to ask it")
            else:
                found[name] = self._threads.submit(self._ask, rows, replace(question, requester=token), fragment)
        return found

    def _ask(self, rows: RemoteRows, question: Question, fragment: Fragment) -> Answer:
        theirs = rewritten(fragment, rows.entity, rows.expressions)
        seconds = question.seconds * (1 - MARGIN)
        return self._peers.ask(rows.peer, replace(question, fragment=theirs, hops=question.hops - 1, seconds=seconds))

    def _collected(
        self, waited: dict[str, Future[Answer] | Missing], seconds: float
    ) -> tuple[list[Answer], list[Missing]]:
        """The answers that came in time, and who has given none."""
        futures = [one for one in waited.values() if isinstance(one, Future)]
        wait(futures, timeout=max(0.0, seconds))
        answers: dict[str, Answer] = {}
        missing = []
        for name, one in waited.items():
            peer = name.partition(" ")[0]
            if isinstance(one, Missing):
                missing.append(one)
            elif not one.done():
                one.cancel()
                missing.append(Missing(peer, "it has not answered in time"))
            elif (error := one.exception()) is None:
                answers[name] = one.result()
            elif isinstance(error, OdfError):
                missing.append(Missing(peer, error.message))
            else:
                _LOGGER.error("asking %s: a bug", peer, exc_info=error)
                missing.append(Missing(peer, f"{self.name} failed to ask it"))
        taken = fitting(answers)
        missing += [Missing(name.partition(" ")[0], "its answer is too long") for name in answers if name not in taken]
        return [answers[name] for name in answers if name in taken], missing
