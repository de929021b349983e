"""Errors of the client of Flight servers."""

from __future__ import annotations

from odfpy.errors import OdfError, SchemaError


class FlightFailed(OdfError, code="E830"):
    """A Flight server cannot be reached, or does not do what it is asked."""


class FlightRefused(FlightFailed, code="E831"):
    """A Flight server does not take the credentials, or there are none for it."""


class NoLocationLeft(FlightFailed, code="E832"):
    """No location of an endpoint has given its rows; none of them has been handed over."""


class StreamBroken(FlightFailed, code="E833"):
    """A stream has ended too early, when rows of it had been handed over already."""


class SchemaBroken(FlightFailed, code="E834"):
    """A server sends other columns than it has declared."""


class NotForSpark(SchemaError, code="E835"):
    """A column has a type that Spark does not have."""


class FlightWriteFailed(FlightFailed, code="E836"):
    """Rows could not be written to a Flight server."""
