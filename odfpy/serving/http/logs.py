"""Logs of a server: JSON lines on standard error.

They contain no tokens: of a request, the path is logged without the query string and without headers; of a token, its
name.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TextIO

from odfpy.escaping import escape_controls_in_json

if TYPE_CHECKING:
    _Handler = logging.StreamHandler[TextIO]
else:
    _Handler = logging.StreamHandler  # which is not generic in Python 3.10

LOGGER = "odf.serve"
_MAX_LENGTH = 1000
_LEVELS = {LOGGER: logging.INFO, "odf.automation": logging.INFO, "odfpy": logging.WARNING, "uvicorn": logging.WARNING}
"""Log levels of this process: of the server, its notifications, its pulls, and HTTP."""

_REFUSED_SOCKET = "ASGI callable returned without completing handshake."
"""The message that uvicorn logs as an error if a WebSocket is answered with a status, which the access log has."""


class JsonFormatter(logging.Formatter):
    """A formatter of records as lines of JSON; the `fields` of their `extra` become members."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage()[:_MAX_LENGTH],
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return escape_controls_in_json(json.dumps(fields, ensure_ascii=False))


class _ToStandardError(_Handler):
    """A handler that writes to the current `sys.stderr`, which a program may replace."""

    @property
    def stream(self) -> TextIO:
        """Return standard error."""
        return sys.stderr

    @stream.setter
    def stream(self, value: TextIO) -> None: ...


def set_up_logging(*, quiet: bool = False) -> None:
    """Configure this process to log to standard error; with `quiet`, only errors."""
    handler = _ToStandardError()
    handler.setFormatter(JsonFormatter())
    handler.addFilter(lambda record: record.msg != _REFUSED_SOCKET)
    for name, level in _LEVELS.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(max(level, logging.WARNING) if quiet else level)


def log(event: str, *, level: int = logging.INFO, error: BaseException | None = None, **fields: Any) -> None:
    """Log an event.

    Args:
        event: name of the event.
        level: level of `logging`.
        error: the exception that caused it, None for none.
        fields: additional members of the line.
    """
    logging.getLogger(LOGGER).log(level, event, extra={"fields": fields}, exc_info=error)
