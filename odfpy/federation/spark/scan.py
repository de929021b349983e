"""Parts of an answer as Spark reads them: one after the other in a task each, straight from where the rows are."""

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
    """The way to read parts, as it travels to workers.

    Attributes:
        access: who reads.
        sent: columns that relays must send.
        wanted: the same as Spark expects them.
        seconds: to read a part.
    """

    access: Access
    sent: pa.Schema
    wanted: pa.Schema
    seconds: float

    def read(self, part: Part) -> Iterator[pa.RecordBatch]:
        """The rows of a part. One that breaks off is an error, so that the task is done again.

        Args:
            part: where they are.

        Raises:
            RelayUnavailable: the relay is not there, or not any more.
            InvalidAnswer: it sends other columns.
            RelayRefused: it has refused.
        """
        try:
            with self.access.user.rows(part, self.seconds) as found:
                if found.schema != self.sent:
                    raise InvalidAnswer(f"The relay {part.relay} gives other columns than those that were asked for")
                received = Received()
                for chunk in found:
                    if chunk.data is not None and chunk.data.num_rows:
                        yield plain_batch(received.taken(part.ticket, chunk.data), self.wanted)
        except RelayRefused as error:
            hint = f"{error.hint or 'Tickets end after some minutes.'} In Spark: load() again."
            raise error.with_message(error.message, hint=hint) from error


def incomplete(missing: Sequence[MissingRelay], remedy: str) -> OdfError:
    """The error, or the warning, that rows are missing.

    Args:
        missing: whose rows, and why.
        remedy: what lets the others come.
    """
    return IncompleteAnswer(f"Rows are missing: {'; '.join(f'{one.relay}: {one.why}' for one in missing)}", hint=remedy)
