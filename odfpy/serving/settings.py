"""Settings of a server."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from odfpy.coordinator.storage.config import SETTINGS, Config
from odfpy.errors import UsageError
from odfpy.http.url import parse_url, without_user


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Limits and times of a server; the defaults are good for a machine that faces the internet.

    Attributes:
        base_url: how clients reach the server, where a proxy stands before it; None to take it from each request.
        max_connections: connections at the same time; more are refused with status 503.
        max_connections_each: those of one address; more are refused with status 503.
        max_streams: subscriptions to events at the same time.
        max_message: bytes that one WebSocket message may have, in a push.
        max_object: bytes that one pushed object, or the data of one ingest, may have.
        max_body: bytes that the body of any other request may have.
        max_stranger_body: the same for whoever shows no token.
        request_memory: bytes of memory that what comes from callers with a token may take, before it is done.
        request_memory_each: bytes of it that one of them may take.
        stranger_memory: the same of all callers without a token.
        stranger_memory_each: bytes of it that one address may take.
        running_queries: queries that are worked on at the same time.
        max_queries: the same and those that wait; more are refused with status 503.
        max_queries_each: those of one token, or one address without a token; more are refused with status 429.
        query_timeout: seconds that a query may take, with the time that it waits.
        query_memory: bytes of memory that a query may take, or one that prepares an ingest, if it is not for Spark.
        ingest_timeout: seconds that DataFusion may prepare an ingest for.
        max_rows: rows that the answer to a query may have.
        max_answer: bytes of Arrow data that it may have.
        patience: seconds that a client may let the server wait, for a request or for room to send.
        keep_alive: seconds that a connection without a request is kept.
        grace: seconds that requests get to end when the server is stopped.
        poll: seconds between two looks at the heads that somebody has subscribed to.
        heartbeat: seconds after which a subscriber without news is told that the server is there.
        flight_queries: answers over Flight SQL that may be open at the same time; more are refused.
        flight_working: how many of these may be computed at the same time; others wait, as long as clients may.
        flight_timeout: seconds that a query over Flight SQL may take, with the time that its rows are fetched in.
        webhook_timeout: seconds that the receiver of a webhook may take.
        webhook_attempts: how often a receiver is called with one head.
        webhook_delay: seconds until it is called again; twice as long each time.
        webhook_longest_delay: seconds that this never exceeds.
    """

    base_url: str | None = None
    max_connections: int = 2000
    max_connections_each: int = 500
    max_streams: int = 500
    max_message: int = 64 * 1024**2
    max_object: int = 64 * 1024**3
    max_body: int = 16 * 1024**2
    max_stranger_body: int = 128 * 1024
    request_memory: int = 384 * 1024**2
    request_memory_each: int = 256 * 1024**2
    stranger_memory: int = 64 * 1024**2
    stranger_memory_each: int = 16 * 1024**2
    running_queries: int = 4
    max_queries: int = 256
    max_queries_each: int = 128
    query_timeout: float = 60.0
    query_memory: int = 2 * 1024**3
    ingest_timeout: float = 600.0
    max_rows: int = 100_000
    max_answer: int = 32 * 1024**2
    patience: float = 60.0
    keep_alive: float = 30.0
    grace: float = 30.0
    poll: float = 0.5
    heartbeat: float = 15.0
    flight_queries: int = 256
    flight_working: int = 8
    flight_timeout: float = 3600.0
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
        limits = {field.name: config.get(_key(field.name)) for field in fields(cls) if _key(field.name) in SETTINGS}
        return cls(**limits, **chosen)


def _key(name: str) -> str:
    """The setting for an attribute: `serve.maxRows` for `max_rows`."""
    first, *others = name.split("_")
    return "serve." + first + "".join(other.capitalize() for other in others)


def checked_url(text: str) -> str:
    """A URL that clients reach the server at, without a slash at the end.

    Raises:
        UsageError: not an http or https URL, or one to which nothing can be added.
    """
    if "?" in text or "#" in text:
        raise UsageError(f"The URL that clients reach the server at has no ? or #: {without_user(text)}")
    return str(parse_url(text, UsageError)).rstrip("/")
