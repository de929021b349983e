"""Logging of scheduled runs in a server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from odfpy.automation.listener import Listener
from odfpy.automation.notifications.notice import NoticeKind
from odfpy.serving.http.logs import log

_SHOWN = ("dataset", "job", "reason", "outcome", "attempt", "rows", "seconds", "error_code", "error_message")


def logged_runs() -> Listener:
    """Return a listener that logs what a scheduler does."""
    return Listener(on_run=_run, on_notice=_notice, on_remark=_remark)


def _run(row: Mapping[str, Any]) -> None:
    if row["outcome"] != "running":
        level = logging.WARNING if row["outcome"] in ("failed", "interrupted") else logging.INFO
        log("run", level=level, **{name: row[name] for name in _SHOWN if row[name] is not None})


def _notice(kind: NoticeKind, name: str, text: str, row: Mapping[str, Any] | None) -> None:
    if row is None:
        log(kind.value, level=logging.WARNING, dataset=name, what=text)


def _remark(text: str) -> None:
    log("scheduler", level=logging.WARNING, what=text)
