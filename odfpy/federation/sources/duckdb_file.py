"""A database file of DuckDB as a source, opened read-only, without access to anything else."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from odfpy.extras import needs_extra
from odfpy.federation.errors import SourceFailed
from odfpy.federation.model.connections import DuckdbConnection
from odfpy.federation.sources.contract import BATCH_ROWS, ReadLimits, Source, SourceBatches

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.engine.cancellation import CancellationToken
    from odfpy.engine.row_stream import RowStream

_CONFINED: Final = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "lock_configuration": "true",
}


class DuckdbSource(Source):
    """A DuckDB database file. Each read reopens it, so that other processes' writes are visible."""

    engine = "duckdb"

    def __init__(self, name: str, connection: DuckdbConnection, *, memory: int) -> None:
        """
        Args:
            name: name for messages.
            connection: the declared connection.
            memory: maximum bytes for all reads together.
        """
        super().__init__(name, connection.dialect)
        self._path = connection.path
        self._settings: dict[str, Any] = {**_CONFINED, "memory_limit": f"{max(1, memory >> 20)}MiB"}

    def _stream(self, sql: str, wanted: pa.Schema | None, limits: ReadLimits, control: CancellationToken) -> RowStream:
        del wanted, limits
        with needs_extra(None, "Sources of DuckDB", SourceFailed):
            import duckdb

        database = duckdb.connect(self._path, read_only=True, config=self._settings)
        control.on_stop(database.interrupt)
        with ExitStack() as ends:
            ends.callback(database.close)
            ends.callback(control.forget, database.interrupt)
            reader = database.sql(sql).to_arrow_reader(BATCH_ROWS)
            # Before the connection: otherwise the next process that opens the file would wait for an open result.
            ends.callback(reader.close)
            return SourceBatches(reader.schema, iter(reader), ends.pop_all().close)
