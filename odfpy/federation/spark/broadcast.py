"""Small answers, which are read before Spark plans: Spark then knows their sizes, and broadcasts them in joins.

Relays never report row counts in advance, since these would reveal hidden rows. So all fragments are read tentatively,
and those that turn out to be large or late are left to Spark's tasks.
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
    client: RelayClient, started: StartedQuery, most: int = SMALL, seconds: float = PATIENCE
) -> Mapping[str, pa.Table]:
    """Return the rows of the small fragments, by name. Failures are left to Spark's tasks, which report them.

    Args:
        client: client that reads the parts.
        started: the started query.
        most: maximum bytes of a small fragment.
        seconds: maximum time to wait.
    """
    tries = {name: _Try(client, fragment.schema, most, seconds) for name, fragment in started.fragments.items()}
    with ThreadPoolExecutor(AT_ONCE) as threads:
        reading = {
            name: [threads.submit(tries[name].read, part) for part in answer.parts]
            for name, answer in started.answers.items()
        }
        return {
            name: pa.Table.from_batches([batch for future in read for batch in future.result()], tries[name].schema)
            for name, read in reading.items()
            if all(future.exception() is None for future in read)
        }


class _Try:
    """An attempt to read all parts of a fragment, which is given up for all of them when the limit is exceeded."""

    def __init__(self, client: RelayClient, schema: pa.Schema, most: int, seconds: float) -> None:
        self.schema = schema
        self._client = client
        self._received = Received(most)
        self._seconds = seconds
        self._control = CancellationToken()

    def read(self, part: Part) -> list[pa.RecordBatch]:
        """Read the rows of a part.

        Raises:
            OdfError: they are too many or too late, or cannot be read.
        """
        try:
            self._control.check()
            with self._client.rows(part, self._seconds) as part_rows:
                self._control.on_stop(part_rows.cancel)
                try:
                    return self._taken(part, part_rows)
                finally:
                    self._control.forget(part_rows.cancel)
        except BaseException:
            self._control.cancel()
            raise

    def _taken(self, part: Part, part_rows: PartRows) -> list[pa.RecordBatch]:
        batches = []
        for chunk in part_rows:
            if chunk.data is not None and chunk.data.num_rows:
                if chunk.data.schema != self.schema:
                    raise OdfError("Other columns than those that were asked for")
                batches.append(self._received.taken(part.ticket, chunk.data))
        return batches
