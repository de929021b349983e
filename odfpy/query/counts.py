"""Row counts, the most frequent query, recognized by its form: `select count(*) from acme.rates`.

Every other query is parsed. Importing the parser, a large library, takes longer than answering a count.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from odfpy.query.log_query import LogQuery

if TYPE_CHECKING:
    from odfpy.query.dialects import Dialect

_WORD: Final = r"[a-z_][a-z0-9_]*"
_COUNT: Final = re.compile(
    rf"[ \n\t]*select[ \n\t]+count\(\*\)[ \n\t]+from[ \n\t]+({_WORD}(?:\.{_WORD})*)", re.IGNORECASE | re.ASCII
)
_OF_SQL: Final = frozenset(
    """alter and as between create cross describe distinct drop else except fetch for from glob grant having ilike inner
    insert intersect into join lateral like minus not notnull on only or outer partitioned_by qualify regexp returning
    revoke rlike rollback select serdeproperties tablesample then uncache union using values variadic when where with
    xor""".split()  # noqa: SIM905
)
"""Words that the parser does not accept as the name of a table; a test compares them with the parser."""


def counted(text: str) -> re.Match[str] | None:
    """Match a query that counts the rows of one table, with its name as the only group; None for other queries."""
    found = _COUNT.fullmatch(text)
    return None if found is None or found[1].lower() in _OF_SQL else found


def count_of(table: str, dialect: Dialect) -> LogQuery:
    """Return the query that counts the rows of a table."""
    return LogQuery(table, totals=(("count", "count(1)" if dialect.name == "spark" else "count(*)"),))
