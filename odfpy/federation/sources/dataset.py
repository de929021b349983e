"""Datasets of the workspace, as its queries read them: current, as at a block or time, as of a time."""

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
    """The datasets of a workspace, in DataFusion, in a process apart."""

    engine = "datafusion"

    def __init__(self, name: str, service: QueryService) -> None:
        """
        Args:
            name: for messages.
            service: answers queries, within the limits of its engines.
        """
        super().__init__(name, "postgres")
        self._service = service

    def _stream(self, sql: str, wanted: pa.Schema | None, limits: ReadLimits, control: CancellationToken) -> RowStream:
        del wanted  # types are certain
        return self._service.run(Query(sql, "datafusion", max_bytes=limits.bytes), control)
