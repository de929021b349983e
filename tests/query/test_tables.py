"""Which tables are found in a query."""

from __future__ import annotations

import pytest

from odfpy.query.tables import named_tables


@pytest.mark.parametrize(
    "query",
    [
        "SELECT window.start, count(*) FROM {} GROUP BY window(event_time, '1 day')",
        "SELECT * FROM (SELECT window.end AS t FROM {} GROUP BY window(event_time, '1 day')) AS w, {} AS x",
        "SELECT window.start FROM VALUES (1) AS v(id) JOIN {} USING (id) GROUP BY window(event_time, '1 day')",
    ],
)
@pytest.mark.parametrize(
    ("name", "written"), [("rates", "rates"), ("com.example", "com.example"), ("a.b-c", "`a.b-c`")]
)
def test_what_sqlglot_does_not_parse_has_its_tables_all_the_same(query, name, written):
    assert name in [named.text for named in named_tables(query.replace("{}", written), "spark")]
