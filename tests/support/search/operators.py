"""The operators of the grammar: each builds a table from one or two others.

Their results are functions of the multisets of their inputs: orders include all columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from support.search.groups import distinct, grouped
from support.search.joins import joined
from support.search.ordered import limited, windowed
from support.search.relations import Builder, Table
from support.search.rows import beside, exploded, filtered, looked_up, project, star, united, without

# The simplest come first; productive ones are more frequent.
UNARY: Sequence[Callable[[Builder, Table], Table]] = (
    project, grouped, windowed, star, distinct, exploded, limited, grouped, without, beside, windowed,
)  # fmt: skip
BINARY: Sequence[Callable[[Builder, Table, Table], Table]] = (joined, joined, united, filtered, joined, looked_up)
