"""Datasets as they were in queries: each becomes the name of a table, and the rest of the text stays."""

from __future__ import annotations

import pytest

from odfpy.query.dialects import DIALECTS
from odfpy.query.references import find_projections


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("count", [1, 12])
def test_many_short_references_leave_the_rest_as_it_is(dialect: str, count: int) -> None:
    written = "a\nVERSION\nAS\nOF\n3"
    text = "select 1 as n from " + " union all\nselect 1 as n from ".join([written] * count) + " where n = 1"
    plain, found = find_projections(text, DIALECTS[dialect])
    quoted = [DIALECTS[dialect].quoted(one.table) for one in found]
    a = DIALECTS[dialect].quoted("a")
    expected = " union all select 1 as n from ".join(f"{name} AS {a}" for name in quoted)
    assert plain.split() == f"select 1 as n from {expected} where n = 1".split()
    assert len(found) == count
    assert plain.count("\n") == text.count("\n")
    assert [text[one.start : one.end] for one in found] == [written] * count


def test_places_stay_where_there_is_room() -> None:
    text = "select * from odf_current('dataset') c, odf_current('other')\nwhere x = 1"
    plain, _ = find_projections(text, DIALECTS["datafusion"])
    assert len(plain) == len(text)
    assert plain.index("where x") == text.index("where x")
