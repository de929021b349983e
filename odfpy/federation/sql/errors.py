"""Errors of queries between relays."""

from __future__ import annotations

from odfpy.errors import UsageError


class InvalidFragment(UsageError, code="E777"):
    """A fragment of a query is too large, or has different meanings in different data sources."""
