"""Errors of the client of Flight servers."""

from __future__ import annotations

from odfpy.errors import OdfError, SchemaError


class FlightFailed(OdfError, code="E830"):
    """A Flight server cannot be reached, or fails to execute a request."""


class FlightRefused(FlightFailed, code="E831"):
    """A Flight server rejects the credentials, or there are none for it."""


class NoLocationLeft(FlightFailed, code="E832"):
    """No location of an endpoint returned its rows; no row was passed on."""


class StreamBroken(FlightFailed, code="E833"):
    """A stream ended early, after some of its rows had been passed on."""


class SchemaBroken(FlightFailed, code="E834"):
    """A server sends other columns than it declared."""


class NotForSpark(SchemaError, code="E835"):
    """A column has a type that Spark does not have."""


class FlightWriteFailed(FlightFailed, code="E836"):
    """Rows could not be written to a Flight server."""
