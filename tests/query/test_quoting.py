"""Names of datasets get the quotes of the dialect, wherever they stand, and nothing else changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.query.dialects import DIALECTS
from odfpy.query.quoting import quote_datasets

KNOWN = {"acme.tx", "acme.daily-total", "daily-total", "b-c", "rates"}


def is_dataset(name: str) -> bool:
    return name.lower().partition("@")[0] in KNOWN


def quoted(query: str, dialect: str) -> str:
    """The query, with every quote of a name as a backquote."""
    found = quote_datasets(query, DIALECTS[dialect], is_dataset)
    assert quote_datasets(found, DIALECTS[dialect], is_dataset) == found
    return found.replace('"', "`") if dialect == "datafusion" else found


CASES = {
    "select max(amount) from acme.tx": "select max(amount) from `acme.tx`",
    "select max(amount) from 'acme.tx'": "select max(amount) from 'acme.tx'",
    "select * from acme.daily-total t": "select * from `acme.daily-total` t",
    'select * from "acme.daily-total"': "select * from `acme.daily-total`",
    "select * from `acme.daily-total`": "select * from `acme.daily-total`",
    'select * from acme."daily-total"': "select * from `acme.daily-total`",
    "select * from daily-total, acme.tx": "select * from `daily-total`, `acme.tx`",
    "select * from (acme.tx join b-c using (id))": "select * from (`acme.tx` join `b-c` using (id))",
    "select acme.tx.id, acme.tx.* from acme.tx": "select `acme.tx`.id, `acme.tx`.* from `acme.tx`",
    'select "acme.tx".id from `acme.tx`': "select `acme.tx`.id from `acme.tx`",
    "select x-b-c.y from b-c": "select x-`b-c`.y from `b-c`",
    "select 1 from acme.tx where acme.tx.id=1 group by acme.tx.id having max(acme.tx.a)>1 order by acme.tx.id": (
        "select 1 from `acme.tx` where `acme.tx`.id=1 "
        "group by `acme.tx`.id having max(`acme.tx`.a)>1 order by `acme.tx`.id"
    ),
    "select 1 from rates a join acme.tx on a.id = acme.tx.id, b-c": (
        "select 1 from rates a join `acme.tx` on a.id = `acme.tx`.id, `b-c`"
    ),
    "select * from ACME.tx where acme.TX.id = 1": "select * from `ACME.tx` where `ACME.tx`.id = 1",
    "select * from acme.tx@v1.2": "select * from `acme.tx@v1.2`",
    "select * from acme.tx version as of 3": "select * from `acme.tx` version as of 3",
    "select * from odf_current(acme.daily-total)": "select * from odf_current(`acme.daily-total`)",
    "with t as (select 1 from acme.tx) select * from t where exists (select 1 from b-c)": (
        "with t as (select 1 from `acme.tx`) select * from t where exists (select 1 from `b-c`)"
    ),
    "select 1 from acme.tx union all select 2 from b-c": "select 1 from `acme.tx` union all select 2 from `b-c`",
    # misspelt: no difference can stand there
    "select 1 from acme.daily-totl": "select 1 from `acme.daily-totl`",
}

UNCHANGED = [
    "select a, b-c from rates",
    "select b-c from rates where acme.tx.id = 1",
    "select extract(day from b-c) from rates",
    "select a is distinct from b-c from rates",
    "select 'from acme.tx' from rates -- from acme.tx",
    "select id from acme.other",
    "select Rates.id from Rates",
    "select 'open",
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("query", CASES)
def test_names_get_the_quotes_of_the_dialect(query: str, dialect: str) -> None:
    assert quoted(query, dialect) == CASES[query]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("query", UNCHANGED)
def test_what_is_no_dataset_stays(query: str, dialect: str) -> None:
    assert quote_datasets(query, DIALECTS[dialect], is_dataset) == query


WORDS = st.sampled_from(
    [
        *[
            "select",
            "from",
            "join",
            "where",
            ",",
            "(",
            ")",
            "*",
            "-",
            ".",
            "=",
            "on",
            "as",
            "union",
            "with",
            "distinct",
            "is",
            "order",
            "by",
            "1",
            "--",
            "/*",
            "*/",
            "@",
            "'from'",
            "a",
        ],
        *["b-c", "acme.tx", "acme.daily-total", "acme.tx.id", "`acme.tx`", '"b-c"'],
        "\n",
    ]
)


@given(st.lists(WORDS, max_size=20).map(" ".join), st.sampled_from(sorted(DIALECTS)))
def test_only_quotes_come_and_go(query: str, dialect: str) -> None:
    found = quote_datasets(query, DIALECTS[dialect], is_dataset)
    assert re.sub('["`]', "", found) == re.sub('["`]', "", query)
    assert found.count("\n") == query.count("\n")
