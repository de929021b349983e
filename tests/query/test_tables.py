"""Which tables are found in a query."""

from __future__ import annotations

import pytest

from odfpy.query.dialects import dialect_named
from odfpy.query.tables import named_tables, split_statements


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


SCRIPT = "select 1;\n-- a; b\nselect ';' as x; select\n 2 /* ; */;;\n-- the end\n"


def test_a_script_is_split_into_its_statements():
    assert split_statements(SCRIPT, dialect_named("spark")) == [
        "select 1",
        "-- a; b\nselect ';' as x",
        "select\n 2 /* ; */",
    ]
    assert split_statements(" ; -- nothing", dialect_named("spark")) == []
    assert split_statements("select 'open; select 2", dialect_named("spark")) == ["select 'open; select 2"], (
        "the engine says what is wrong"
    )


def test_quotes_are_those_of_the_dialect():
    """A backslash before a quote is an escape for Spark, and nothing for DataFusion."""
    assert split_statements("select 'a\\' as x; select 2", dialect_named("datafusion")) == [
        "select 'a\\' as x",
        "select 2",
    ]
    assert len(split_statements("select 'a\\' as x; select 2'", dialect_named("spark"))) == 1


def test_statements_can_stay_in_their_places():
    for statement in split_statements(SCRIPT, dialect_named("spark"), in_place=True):
        at = statement.index("select")
        line = statement.count("\n", 0, at)
        column = at - statement.rfind("\n", 0, at)
        assert SCRIPT.split("\n")[line][column - 1 :].startswith("select")
