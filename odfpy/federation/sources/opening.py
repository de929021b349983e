"""Opening the source of a connection, of any kind."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.federation.model.connections import (
    DatasetConnection,
    DuckdbConnection,
    FilesConnection,
    FlightConnection,
    PostgresConnection,
    TrinoConnection,
)
from odfpy.federation.sources.contract import Source

if TYPE_CHECKING:
    from odfpy.federation.model.documents import LocalData
    from odfpy.query.service import QueryService

_MEMORY: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The resources of a relay that its sources need.

    Attributes:
        service: query service over the datasets of the workspace.
        odf: `.odf` folder of the workspace, which is never exposed.
        memory: maximum bytes for a query on this machine.
        environment: environment variables, with passwords.
    """

    service: QueryService
    odf: Path
    memory: int = _MEMORY
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)


def open_source(data: LocalData, context: SourceContext) -> Source:
    """Create the source of local data; nothing is queried yet.

    Args:
        data: the local data with its connection.
        context: resources of the relay.

    Raises:
        SourceFailed: a password is not set, or a library is not installed.
    """
    name, connection = data.name, data.connection
    match connection:
        case DatasetConnection():
            from odfpy.federation.sources.dataset import DatasetSource

            return DatasetSource(name, context.service)
        case FilesConnection():
            from odfpy.federation.sources.files import FilesSource

            copies = context.odf / "relay" / "copies"
            return FilesSource(name, connection, copies=copies, memory=context.memory, forbidden=context.odf)
        case DuckdbConnection():
            from odfpy.federation.sources.duckdb_file import DuckdbSource

            return DuckdbSource(name, connection, memory=context.memory)
        case PostgresConnection():
            from odfpy.federation.sources.postgres import PostgresSource

            return PostgresSource(name, connection, context.environment)
        case TrinoConnection():
            from odfpy.federation.sources.trino import TrinoSource

            return TrinoSource(name, connection, context.environment)
        case FlightConnection():
            from odfpy.federation.sources.flight import FlightSource

            return FlightSource(name, connection, context.environment)
