"""Pulls with and without an arrangement, side by side."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from support.queries.cases import QUICK, Case, Runner, Tuned, pull_both
from support.queries.stories import FIELDS


def case_of(query):
    """A query over `a`, or over `a` and `b`."""
    return Case("query", "", [(None, query)], dict.fromkeys("ab" if " b" in query else "a", FIELDS), {}, ())


def both(spark, case, pulls):
    """Run the pulls with and without an arrangement; gives how many of them have looked rows up."""
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        plain = Runner(Tuned(spark, **QUICK), case, Path(one))
        arranged = Runner(Tuned(spark, **QUICK), case, Path(other), arranged=True)
        pull_both(plain, arranged, pulls)
        return arranged.looked_up
