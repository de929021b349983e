"""Logs and metrics of a server: lines of JSON on standard error, and numbers for Prometheus.

Neither has a token in it: of a request, its path is told without what follows the question mark, and none of its
headers; of a token, the name.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import datetime, timezone
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from odfpy.visible import visible_in_json

LOGGER = "odf.serve"
_LONGEST = 1000
_LEVELS = {LOGGER: logging.INFO, "odf.automation": logging.INFO, "odfpy": logging.WARNING, "uvicorn": logging.WARNING}
"""What this process hears of whom: the server, its notifications, pulls that it runs, and HTTP."""

_REFUSED_SOCKET = "ASGI callable returned without completing handshake."
"""What uvicorn takes for an error: a WebSocket was answered with a status. The line of the request says which."""

_BUCKETS = (0.005, 0.02, 0.1, 0.5, 2, 10, 60)


class JsonFormatter(logging.Formatter):
    """A record as a line of JSON; what stands in its `extra` under `fields` is part of it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage()[:_LONGEST],
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return visible_in_json(json.dumps(fields, ensure_ascii=False))


def set_up_logging(*, quiet: bool = False) -> None:
    """Let this process log to standard error; quiet: only what went wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(lambda record: record.msg != _REFUSED_SOCKET)
    for name, level in _LEVELS.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(max(level, logging.WARNING) if quiet else level)


def log(event: str, *, level: int = logging.INFO, error: BaseException | None = None, **fields: Any) -> None:
    """Tell something.

    Args:
        event: what has happened.
        level: a level of `logging`.
        error: the exception behind it, None for none.
        fields: more members of the line.
    """
    logging.getLogger(LOGGER).log(level, event, extra={"fields": fields}, exc_info=error)


class Metrics:
    """The numbers of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "odf_requests", "Requests that were answered", ["method", "route", "status"], registry=self.registry
        )
        self.sent = Counter("odf_sent_bytes", "Bytes of answers", ["route"], registry=self.registry)
        self.seconds = Histogram(
            "odf_request_seconds", "Time until an answer was sent", ["route"], buckets=_BUCKETS, registry=self.registry
        )
        self.busy = Gauge("odf_requests_in_progress", "Requests that are being answered", registry=self.registry)
        self.streams = Gauge("odf_event_streams", "Subscriptions to events", registry=self.registry)
        self.deliveries = Counter("odf_webhook_deliveries", "Calls of webhooks", ["outcome"], registry=self.registry)

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self.registry)


class Observed:
    """Middleware that records each request when it is done, in the log and in the metrics."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        seen = _Seen(scope)

        async def counted(message: Message) -> None:
            seen.take(message)
            await send(message)

        self._metrics.busy.inc()
        try:
            await self._app(scope, receive, counted)
        except BaseException as error:
            seen.trouble["problem"] = type(error).__name__
            raise
        finally:
            self._metrics.busy.dec()
            self._tell(seen)

    def _tell(self, seen: _Seen) -> None:
        scope, route, seconds = seen.scope, _route_of(seen.scope), time.monotonic() - seen.started
        method = scope.get("method", "WEBSOCKET")
        self._metrics.requests.labels(_known_route(method), route, str(seen.status)).inc()
        self._metrics.sent.labels(route).inc(seen.sent)
        self._metrics.seconds.labels(route).observe(seconds)
        client = scope.get("client")
        log(
            "request",
            method=_known_route(method),
            path=scope["path"][:_LONGEST],
            status=seen.status,
            bytes=seen.sent,
            seconds=round(seconds, 4),
            client=client[0] if client else None,
            token=scope.get("state", {}).get("token_name"),
            **seen.trouble,
        )


class _Seen:
    """The observed part of an answer."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.started = time.monotonic()
        self.status = 0
        self.sent = 0
        self.trouble: dict[str, Any] = {}

    def take(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start" | "websocket.http.response.start":
                self.status = message["status"]
            case "websocket.accept":
                self.status = 101
            case "http.response.body" | "websocket.http.response.body":
                self.sent += len(message.get("body", b""))
            case "websocket.send":
                self.sent += len(message.get("bytes") or message.get("text") or b"")


def _route_of(scope: Scope) -> str:
    """The route as it was declared: names of datasets are not for metrics."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else "other"


def _known_route(method: str) -> str:
    return method if method in ("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "WEBSOCKET") else "other"
