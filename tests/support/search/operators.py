"""The operators of the grammar: each makes a table of one or two others.

Everything that they give is a function of the multisets of their inputs: what is ordered is ordered by all columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from support.search.groups import distinct, grouped
from support.search.joins import joined
from support.search.ordered import limited, windowed
from support.search.relations import Builder, Table
from support.search.rows import beside, exploded, filtered, project, star, united, without

# The simplest come first; what finds more comes more often.
UNARY: Sequence[Callable[[Builder, Table], Table]] = (
    project, grouped, windowed, star, distinct, exploded, limited, grouped, without, beside, windowed,
)  # fmt: skip
BINARY: Sequence[Callable[[Builder, Table, Table], Table]] = (joined, joined, united, filtered, joined)
