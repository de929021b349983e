"""Peers: the other relays, as planning sees them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from odfpy.federation.relay.question import Answer, Cancellation, Question


class Peers(ABC):
    """The way to other relays; used by several threads at once."""

    @abstractmethod
    def ask(self, peer: str, question: Question) -> Answer:
        """Ask a peer, and wait for its answer no longer than the question has time.

        Args:
            peer: its name.
            question: in its words.

        Raises:
            OdfError: it could not be asked, or has refused; the message is for whoever asks.
        """

    @abstractmethod
    def cancel(self, peer: str, cancellation: Cancellation) -> None:
        """Tell a peer that a query is not wanted any more. What goes wrong is nobody's trouble.

        Args:
            peer: its name.
            cancellation: of the query.
        """
