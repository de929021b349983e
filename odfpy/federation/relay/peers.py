"""Peers: the other relays, as planning sees them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from odfpy.federation.relay.question import Answer, Cancellation, Question


class Peers(ABC):
    """The interface through which a relay queries its peers; used by several threads at once."""

    @abstractmethod
    def ask(self, peer: str, question: Question) -> Answer:
        """Send a question to a peer, and wait for its answer until the question's time is over.

        Args:
            peer: name of the peer.
            question: the question, in the peer's vocabulary.

        Raises:
            OdfError: the peer is unreachable, or has refused; the message may be shown to the requester.
        """

    @abstractmethod
    def cancel(self, peer: str, cancellation: Cancellation) -> None:
        """Notify a peer that a query was cancelled. Errors are ignored.

        Args:
            peer: name of the peer.
            cancellation: the cancellation of the query.
        """
