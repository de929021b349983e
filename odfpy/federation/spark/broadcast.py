"""Small answers, which are read before Spark plans: it then knows their sizes, and sends them to all workers in joins.

Nobody tells how many rows a fragment has: that would tell of hidden ones. So all fragments are begun, and those that
turn out large or late are left to Spark's tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow as pa

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import OdfError
from odfpy.federation.execution.execute import AT_ONCE
from odfpy.federation.execution.plan import StartedQuery
from odfpy.federation.execution.relay_client import PartRows, RelayClient
from odfpy.federation.relay.bounds import Received
from odfpy.federation.relay.question import Part

SMALL: Final = 4 << 20
"""Bytes of a fragment that is small."""

PATIENCE: Final = 10.0
"""Seconds after which a fragment is late."""


def small_answers(
    client: RelayClient, found: StartedQuery, most: int = SMALL, seconds: float = PATIENCE
) -> Mapping[str, pa.Table]:
    """The rows of the fragments that are small, by name. Whatever goes wrong is left to tasks, which say so.

    Args:
        client: the way to the parts.
        found: the query.
        most: bytes of one that is small.
        seconds: to wait.
    """
    tries = {name: _Try(client, fragment.schema, most, seconds) for name, fragment in found.fragments.items()}
    with ThreadPoolExecutor(AT_ONCE) as threads:
        reading = {
            name: [threads.submit(tries[name].read, part) for part in answer.parts]
            for name, answer in found.answers.items()
        }
        return {
            name: pa.Table.from_batches([batch for one in read for batch in one.result()], tries[name].schema)
            for name, read in reading.items()
            if all(one.exception() is None for one in read)
        }


class _Try:
    """An attempt at all parts of a fragment, which ends for all of them when one is too much."""

    def __init__(self, client: RelayClient, schema: pa.Schema, most: int, seconds: float) -> None:
        self.schema = schema
        self._client = client
        self._received = Received(most)
        self._seconds = seconds
        self._control = CancellationToken()

    def read(self, part: Part) -> list[pa.RecordBatch]:
        """The rows of a part.

        Raises:
            OdfError: they are too many or too late, or cannot be read.
        """
        try:
            self._control.check()
            with self._client.rows(part, self._seconds) as found:
                self._control.on_stop(found.cancel)
                try:
                    return self._taken(part, found)
                finally:
                    self._control.forget(found.cancel)
        except BaseException:
            self._control.cancel()
            raise

    def _taken(self, part: Part, found: PartRows) -> list[pa.RecordBatch]:
        batches = []
        for chunk in found:
            if chunk.data is not None and chunk.data.num_rows:
                if chunk.data.schema != self.schema:
                    raise OdfError("Other columns than those that were asked for")
                batches.append(self._received.taken(part.ticket, chunk.data))
        return batches
