"""Datasets of the workspace as a source: in their current state, or as at a block or time, or as of an event time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.federation.sources.contract import ReadLimits, Source
from odfpy.query.query import Query

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.engine.cancellation import CancellationToken
    from odfpy.engine.row_stream import RowStream
    from odfpy.query.service import QueryService


class DatasetSource(Source):
    """The datasets of a workspace, queried in DataFusion in a separate process."""

    engine = "datafusion"

    def __init__(self, name: str, service: QueryService) -> None:
        """
        Args:
            name: name for messages.
            service: the query service, with the limits of its engines.
        """
        super().__init__(name, "postgres")
        self._service = service

    def _stream(self, sql: str, wanted: pa.Schema | None, limits: ReadLimits, control: CancellationToken) -> RowStream:
        del wanted  # types are definite
        return self._service.run(Query(sql, "datafusion", max_bytes=limits.bytes), control)
