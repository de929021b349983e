"""Settings of a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from odfpy.coordinator.storage.config import Config
from odfpy.errors import UsageError
from odfpy.http.url import parse_url, without_user
from odfpy.settings.sections import ServeSection


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Limits and times of a server; the defaults are good for a machine that faces the internet.

    What a person sets (`serve.maxRows` and the like) is described where it is declared: `ServeSection`.

    Attributes:
        base_url: how clients reach the server, where a proxy stands before it; None to take it from each request.
        max_connections: connections at the same time; more are refused with status 503.
        max_streams: subscriptions to events at the same time.
        max_message: bytes that one WebSocket message may have, in a push.
        max_body: bytes that the body of any other request may have.
        ingest_timeout: seconds that DataFusion may prepare an ingest for.
        keep_alive: seconds that a connection without a request is kept.
        grace: seconds that requests get to end when the server is stopped.
        poll: seconds between two looks at the heads that somebody has subscribed to.
        heartbeat: seconds after which a subscriber without news is told that the server is there.
        webhook_timeout: seconds that the receiver of a webhook may take.
        webhook_attempts: how often a receiver is called with one head.
        webhook_delay: seconds until it is called again; twice as long each time.
        webhook_longest_delay: seconds that this never exceeds.
    """

    base_url: str | None = None
    max_connections: int = 2000
    max_connections_each: int = ServeSection.max_connections_each
    max_streams: int = 500
    max_message: int = 64 * 1024**2
    max_object: int = ServeSection.max_object
    max_body: int = 16 * 1024**2
    max_stranger_body: int = ServeSection.max_stranger_body
    request_memory: int = ServeSection.request_memory
    request_memory_each: int = ServeSection.request_memory_each
    stranger_memory: int = ServeSection.stranger_memory
    stranger_memory_each: int = ServeSection.stranger_memory_each
    running_queries: int = ServeSection.running_queries
    max_queries: int = ServeSection.max_queries
    max_queries_each: int = ServeSection.max_queries_each
    query_timeout: float = ServeSection.query_timeout
    query_memory: int = ServeSection.query_memory
    ingest_timeout: float = 600.0
    max_rows: int = ServeSection.max_rows
    max_answer: int = ServeSection.max_answer
    patience: float = ServeSection.patience
    keep_alive: float = 30.0
    grace: float = 30.0
    poll: float = 0.5
    heartbeat: float = 15.0
    flight_queries: int = ServeSection.flight_queries
    flight_working: int = ServeSection.flight_working
    flight_timeout: float = ServeSection.flight_timeout
    passed_bytes: int = ServeSection.passed_bytes
    webhook_timeout: float = 15.0
    webhook_attempts: int = 12
    webhook_delay: float = 2.0
    webhook_longest_delay: float = 600.0

    @classmethod
    def configured(cls, config: Config, **chosen: Any) -> ServeSettings:
        """Make settings of those of a workspace.

        Args:
            config: the settings; those of servers are `serve.maxRows` and the like.
            chosen: other attributes.
        """
        return cls(**vars(config.section(ServeSection)), **chosen)


def checked_url(text: str) -> str:
    """A URL that clients reach the server at, without a slash at the end.

    Raises:
        UsageError: not an http or https URL, or one to which nothing can be added.
    """
    if "?" in text or "#" in text:
        raise UsageError(f"The URL that clients reach the server at has no ? or #: {without_user(text)}")
    return str(parse_url(text, UsageError)).rstrip("/")
