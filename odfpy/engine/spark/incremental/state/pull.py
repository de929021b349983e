"""Context of a pull of a stateful query: the sources, the watermarks, and the state that the last pull stored."""

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
    """A source during a pull: an input, or the changelog of a fragment."""

    def new(self) -> SourceRows | None:
        """Return the rows of this pull, None when there are none."""
        ...

    def old(self) -> SourceRows | None:
        """Return the rows of all earlier pulls, None when there are none.

        Raises:
            HistoryNeeded: the request does not contain them.
        """
        ...


@dataclass(frozen=True, slots=True)
class Pull:
    """The context of a pull, shared by all fragments.

    Attributes:
        catalyst: the session.
        parallelism: the number of tasks in the session.
        streams: the sources, by number.
        before: the watermarks before the pull.
        after: the watermarks after the pull.
        scratch: a folder for temporary files.
        is_first: whether this is the first pull.
        checkpoint: the state that the last pull stored; None when it is not known.
        correctable: the limit on corrections of windows, None for no limit.
        arrangement: the arrangement in which earlier rows are looked up by key, None without one.
        late: the fragments to which something comes late, by number of the source that they form.
        nets_rows: whether retracted rows are cancelled out before anything is computed from them.
    """

    catalyst: Catalyst
    parallelism: Parallelism
    streams: Sequence[Stream]
    before: Clock
    after: Clock
    scratch: Path
    is_first: bool
    checkpoint: CheckpointRows | None = None
    correctable: Correctable | None = None
    arrangement: Arrangement | None = None
    late: set[int] = field(default_factory=set)
    nets_rows: bool = False
