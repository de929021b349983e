"""Errors between the two sides of a conversation, beyond those of any transfer."""

from __future__ import annotations

from odfpy.errors import TransferError


class ProtocolViolation(TransferError, code="E620"):
    """The other side says something that the protocol does not have, or more than the limits allow."""


class PeerFailed(TransferError, code="E621"):
    """The other side has given up, and says so."""


class RemoteHeadMoved(TransferError, code="E622"):
    """Somebody else has pushed in the meantime."""


class RemoteCollision(TransferError, code="E623"):
    """The other side has another dataset of that name, or this dataset under another name."""


class ConnectionLost(TransferError, code="E624"):
    """The connection ended before the conversation did."""


class AccessRefused(TransferError, code="E625"):
    """The server wants a token, or another one."""
