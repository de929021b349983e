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
    """Limits and timeouts of a server; the defaults suit a machine that faces the internet.

    User-visible settings (`serve.maxRows` and the like) are described where they are declared: `ServeSection`.

    Attributes:
        base_url: URL by which clients reach the server behind a proxy; None to derive it from each request.
        max_connections: maximum number of connections; further ones are rejected with status 503.
        max_streams: maximum number of event streams.
        max_message: maximum bytes of a WebSocket message in a push.
        max_body: maximum bytes of the body of any other request.
        ingest_timeout: maximum seconds that DataFusion may take to prepare an ingest.
        keep_alive: seconds that an idle connection is kept open.
        grace: seconds that running requests get when the server is stopped.
        poll: seconds between two polls of heads with subscribers.
        heartbeat: seconds without news after which a subscriber gets a heartbeat.
        webhook_timeout: maximum seconds that the receiver of a webhook may take.
        webhook_attempts: number of attempts to deliver a head.
        webhook_delay: seconds until the second attempt; doubles with each further one.
        webhook_longest_delay: upper limit of that delay.
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
        """Build the settings from a workspace's configuration.

        Args:
            config: the configuration; server settings are `serve.maxRows` and the like.
            chosen: attributes that override it.
        """
        return cls(**vars(config.section(ServeSection)), **chosen)


def checked_url(text: str) -> str:
    """Return the URL that clients reach the server at, without a trailing slash.

    Raises:
        UsageError: not an http or https URL, or one that paths cannot be appended to.
    """
    if "?" in text or "#" in text:
        raise UsageError(f"The URL that clients reach the server at has no ? or #: {without_user(text)}")
    return str(parse_url(text, UsageError)).rstrip("/")
