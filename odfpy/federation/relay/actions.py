"""Flight actions of a relay other than questions and rows: their names, and their JSON bodies and results."""

from __future__ import annotations

import json
from typing import Any, Final

from odfpy.federation.relay.errors import InvalidQuestion

CANCEL: Final = "odf.web.Cancel"
"""Cancel a query: `{query, requester, hops}`."""

STORE_RESULT: Final = "odf.web.StoreResult"
"""Read a ticket into files: `{ticket}`; returns the state of the result."""

RESULT: Final = "odf.web.Result"
"""The state of a result: `{result}`."""

CANCEL_RESULT: Final = "odf.web.CancelResult"
"""Make a result no further: `{result}`."""

KEEP_QUERY: Final = "odf.web.KeepQuery"
"""Store a query whose results are being produced: `{query, record}`."""

QUERY: Final = "odf.web.Query"
"""The record of a query: `{query}`."""

QUERIES: Final = "odf.web.Queries"
"""The queries of the caller that are remembered: `{}`."""

MAX_LENGTH: Final = 1 << 20
"""Bytes of a body."""


def body_of(tree: Any) -> bytes:
    """Encode a JSON tree as the body or the result of an action."""
    return json.dumps(tree, separators=(",", ":")).encode()


def tree_of(data: bytes) -> dict[str, Any]:
    """Decode the JSON object in the body of an action.

    Raises:
        InvalidQuestion: it is not a JSON object.
    """
    try:
        tree = json.loads(data) if len(data) <= MAX_LENGTH else None
    except (ValueError, RecursionError) as error:
        raise InvalidQuestion("The body of an action is JSON") from error
    if not isinstance(tree, dict):
        raise InvalidQuestion(f"The body of an action is an object of at most {MAX_LENGTH} bytes")
    return tree


def text_in(tree: dict[str, Any], key: str) -> str:
    """Return a text value of such an object.

    Raises:
        InvalidQuestion: it is missing, or not a text.
    """
    text = tree.get(key)
    if not isinstance(text, str) or not text:
        raise InvalidQuestion(f"The body of this action has a text {key!r}")
    return text
