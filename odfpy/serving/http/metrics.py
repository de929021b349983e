"""Metrics of a server: Prometheus metrics, and a log line for each request. Neither contains tokens."""

from __future__ import annotations

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from odfpy.serving.http.logs import log

_MAX_LENGTH = 1000
_BUCKETS = (0.005, 0.02, 0.1, 0.5, 2, 10, 60)


class Metrics:
    """The Prometheus metrics of one server."""

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
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class Observed:
    """Middleware that records each completed request in the log and in the metrics."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI connection."""
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
            self._report(seen)

    def _report(self, seen: _Seen) -> None:
        scope, route, seconds = seen.scope, _route_of(seen.scope), time.monotonic() - seen.started
        method = scope.get("method", "WEBSOCKET")
        self._metrics.requests.labels(_known_route(method), route, str(seen.status)).inc()
        self._metrics.sent.labels(route).inc(seen.sent)
        self._metrics.seconds.labels(route).observe(seconds)
        client = scope.get("client")
        log(
            "request",
            method=_known_route(method),
            path=scope["path"][:_MAX_LENGTH],
            status=seen.status,
            bytes=seen.sent,
            seconds=round(seconds, 4),
            client=client[0] if client else None,
            token=scope.get("state", {}).get("token_name"),
            **seen.trouble,
        )


class _Seen:
    """The recorded facts about a response."""

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
    """Return the route's template: names of datasets must not become labels."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else "other"


def _known_route(method: str) -> str:
    return method if method in ("GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS", "WEBSOCKET") else "other"
