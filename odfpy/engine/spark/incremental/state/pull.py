"""The context of a pull of a stateful query: the sources, the watermarks, and what the last pull has kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from odfpy.engine.checkpoint import CheckpointRows
from odfpy.engine.spark.incremental.state.arrangement import Arrangement
from odfpy.engine.spark.incremental.state.correctable import Correctable
from odfpy.engine.spark.incremental.state.source_rows import SourceRows
from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.rows.parallelism import Parallelism


class Stream(Protocol):
    """A source during a pull."""

    def new(self) -> SourceRows | None:
        """The rows of this pull, None when there are none."""
        ...

    def old(self) -> SourceRows | None:
        """The rows of all pulls before, None when there are none.

        Raises:
            HistoryNeeded: they have not been given.
        """
        ...


@dataclass(frozen=True, slots=True)
class Pull:
    """The context of a pull.

    Attributes:
        catalyst: the session.
        parallelism: the number of tasks in it.
        streams: the sources, by number.
        before: the watermarks of then.
        after: the watermarks of now.
        scratch: a folder for temporary files.
        is_first: whether there has been no pull before.
        kept: what the last pull has kept; None when that is not known.
        correctable: how long windows are correctable, None for ever.
        arrangement: where earlier rows are looked up by key, None for nowhere.
        late: the fragments of which it is known that something comes late, by number of the source that they are.
        nets_rows: whether rows that are taken back are left out before anything is computed of them.
    """

    catalyst: Catalyst
    parallelism: Parallelism
    streams: Sequence[Stream]
    before: Clock
    after: Clock
    scratch: Path
    is_first: bool
    kept: CheckpointRows | None = None
    correctable: Correctable | None = None
    arrangement: Arrangement | None = None
    late: set[int] = field(default_factory=set)
    nets_rows: bool = False
