"""Parts of an answer as Spark reads them: a task each, directly from the relay that has the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from odfpy.errors import OdfError
from odfpy.federation.relay.bounds import Received
from odfpy.federation.relay.errors import IncompleteAnswer, InvalidAnswer, RelayRefused
from odfpy.federation.relay.question import MissingRelay, Part
from odfpy.federation.spark.access import Access
from odfpy.flight.conversion import plain_batch


@dataclass(frozen=True)
class Scan:
    """The recipe for reading parts, pickled to Spark's workers.

    Attributes:
        access: the relay and the credentials.
        sent: columns that relays must send.
        wanted: the same columns with the types that Spark expects.
        seconds: maximum time to read a part.
    """

    access: Access
    sent: pa.Schema
    wanted: pa.Schema
    seconds: float

    def read(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Read the rows of a part. A stream that breaks off is an error, so that Spark retries the task.

        Args:
            part: the part to read.

        Raises:
            RelayUnavailable: the relay is not, or no longer, reachable.
            InvalidAnswer: it sends other columns.
            RelayRefused: it has refused.
        """
        try:
            with self.access.user.rows(part, self.seconds) as part_rows:
                if part_rows.schema != self.sent:
                    raise InvalidAnswer(f"The relay {part.relay} returned other columns than requested")
                received = Received()
                for chunk in part_rows:
                    if chunk.data is not None and chunk.data.num_rows:
                        yield plain_batch(received.taken(part.ticket, chunk.data), self.wanted)
        except RelayRefused as error:
            hint = f"{error.hint or 'Tickets end after some minutes.'} In Spark: load() again."
            raise error.with_message(error.message, hint=hint) from error


def incomplete(missing: Sequence[MissingRelay], remedy: str) -> OdfError:
    """Return the error, or the text of the warning, for missing rows.

    Args:
        missing: the missing relays with their reasons.
        remedy: how to accept the incomplete answer.
    """
    return IncompleteAnswer(
        f"Rows are missing: {'; '.join(f'{relay.relay}: {relay.why}' for relay in missing)}", hint=remedy
    )
