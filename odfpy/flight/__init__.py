"""A client of any Apache Arrow Flight server, for Python and Spark.

>>> from odfpy.flight import FlightService, Request
>>> FlightService("grpc://127.0.0.1:50050").read(Request(table="orders"))

Only requires pyarrow, and odfpy's errors. `odfpy.flight.spark` provides Spark's data source `flight`.
"""

from __future__ import annotations

from odfpy.flight.authenticators import (
    Authenticator,
    Bearer,
    ClientCertificate,
    NoAuthentication,
    PerUser,
    SimpleUserPass,
)
from odfpy.flight.commands.odf import OdfCommands
from odfpy.flight.commands.protocol import Commands, JsonCommands, PathCommands, PlainCommands
from odfpy.flight.commands.sql import FlightSql
from odfpy.flight.filters import Filter, filters_from_json, filters_of, filters_to_json
from odfpy.flight.plan import Endpoint, FlightPlan
from odfpy.flight.pool import ClientPool
from odfpy.flight.request import Request
from odfpy.flight.server import Limits
from odfpy.flight.service import FlightService
from odfpy.flight.tls import Tls

__all__ = [
    "Authenticator",
    "Bearer",
    "ClientCertificate",
    "ClientPool",
    "Commands",
    "Endpoint",
    "Filter",
    "FlightPlan",
    "FlightService",
    "FlightSql",
    "JsonCommands",
    "Limits",
    "NoAuthentication",
    "OdfCommands",
    "PathCommands",
    "PerUser",
    "PlainCommands",
    "Request",
    "SimpleUserPass",
    "Tls",
    "filters_from_json",
    "filters_of",
    "filters_to_json",
]
