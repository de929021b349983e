"""What can be chosen about a server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Limits and times of a server; the defaults are good for a machine that faces the internet.

    Attributes:
        base_url: how clients reach the server, where a proxy stands before it; None to take it from each request.
        max_connections: connections at the same time; more are refused with status 503.
        max_streams: subscriptions to events at the same time.
        max_message: bytes that one WebSocket message may have.
        max_object: bytes that one pushed object may have.
        patience: seconds that a client may let the server wait, for a request or for room to send.
        keep_alive: seconds that a connection without a request is kept.
        grace: seconds that requests get to end when the server is stopped.
        poll: seconds between two looks at the heads that somebody has subscribed to.
        heartbeat: seconds after which a subscriber without news is told that the server is there.
    """

    base_url: str | None = None
    max_connections: int = 2000
    max_streams: int = 500
    max_message: int = 64 * 1024**2
    max_object: int = 64 * 1024**3
    patience: float = 60.0
    keep_alive: float = 30.0
    grace: float = 30.0
    poll: float = 0.5
    heartbeat: float = 15.0
