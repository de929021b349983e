"""Errors of sharing."""

from __future__ import annotations

from odfpy.errors import NotFound, UsageError


class SharedObjectNotFound(NotFound, code="E760"):
    """No share, schema, table, user, recipient or group has the name."""


class InvalidCondition(UsageError, code="E761"):
    """A row condition is invalid for a grant."""


class CannotShare(UsageError, code="E762"):
    """A table cannot be shared, or can no longer be read."""
