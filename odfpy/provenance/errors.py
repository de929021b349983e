"""Errors of queries for provenance."""

from __future__ import annotations

from odfpy.errors import NotFound, OdfError


class UnknownProvenance(OdfError, code="E710"):
    """The provenance of a row cannot be determined."""


class NoSuchRow(NotFound, code="E711"):
    """A dataset has no row with this offset."""

    exit_code = 2


class NoSuchColumn(NotFound, code="E712"):
    """A dataset has no column with this name."""

    exit_code = 2
