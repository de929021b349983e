"""Errors of the two sides of a conversation, in addition to those of all transfers."""

from __future__ import annotations

from odfpy.errors import TransferError


class ProtocolViolation(TransferError, code="E620"):
    """The peer violates the protocol, or exceeds the limits."""


class PeerFailed(TransferError, code="E621"):
    """The peer has aborted, and reported a reason."""


class RemoteHeadMoved(TransferError, code="E622"):
    """Another client has pushed in the meantime."""


class RemoteCollision(TransferError, code="E623"):
    """The peer has another dataset with the name, or this dataset under another name."""


class ConnectionLost(TransferError, code="E624"):
    """The connection was lost before the exchange was complete."""


class AccessRefused(TransferError, code="E625"):
    """The server requires a token, or a different one."""
