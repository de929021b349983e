"""The laws of what parts of a query say about their rows, for every operator that passes it on.

A key: what rows of some of its values give does not depend on the other rows, so that a pull may look at touched keys
only; and what is said to have its value has it in every row, also in rows that an outer join made. What rows are known
by: no two rows share it. A run of all tests tries a few queries on one set of rows; `ODF_LAWS=200` all of them on 200
random ones, too.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from support.queries.cases import QUICK, Tuned
from support.queries.part_worlds import World, halves, input_rows, prepared

from odfpy.engine.spark.incremental.operators.registry import OPERATORS
from odfpy.engine.spark.plan.catalyst import Catalyst, column_id
from odfpy.engine.spark.plan.operators import operators

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "0"))
TWO = "m LEFT JOIN n ON m.k = n.k AND coalesce(m.j, 0) = coalesce(n.j, 0)"
"""A row of `m` without `n` has NULL for `n.j`: of what the join is by, `coalesce(n.j, 0)` is something else there."""

IN_2_HOURS = "n.event_time BETWEEN m.event_time AND m.event_time + INTERVAL 2 HOURS"

ROW_BY_ROW = {"Project", "Filter", "Generate", "Expand", "Union", "CTERelationRef"}
"""Operators that may stand on stateful inputs, and look at one row at a time."""

LIMITS = {"GlobalLimit", "LocalLimit", "Offset"}
"""Operators that look at all rows: they have no keys."""

SHOWN = "m.k, m.j, n.k AS nk, n.j AS nj, o.k AS ok, o.j AS oj"
QUERIES = {
    "Aggregate": [
        "SELECT n.k, count(DISTINCT m.j) AS c FROM m LEFT JOIN n ON m.k = n.k GROUP BY n.k",
        f"SELECT coalesce(n.j, 0) AS j, count(DISTINCT m.k) AS c FROM {TWO} GROUP BY coalesce(n.j, 0)",
        "SELECT coalesce(j, 0) AS j, count(DISTINCT k) AS c FROM m GROUP BY coalesce(j, 0)",
        "SELECT window.end AS e, k, count(DISTINCT j) AS c FROM m GROUP BY window(event_time, '2 hours'), k",
        "SELECT session_window.end AS e, k, count(j) AS c FROM m GROUP BY session_window(event_time, '1 hour'), k",
    ],
    "Distinct": ["SELECT DISTINCT n.k, m.j, n.j AS nj FROM m LEFT JOIN n ON m.k = n.k"],
    "Except": ["SELECT m.k, n.j FROM m LEFT JOIN n ON m.k = n.k EXCEPT SELECT k, j FROM o"],
    "Intersect": ["SELECT n.k, m.j FROM m RIGHT JOIN n ON m.k = n.k INTERSECT ALL SELECT k, j FROM o"],
    "Expand": [
        "SELECT m.k, n.j, count(DISTINCT m.j) AS c FROM m JOIN n ON m.k = n.k GROUP BY ROLLUP (m.k, n.j)",
        "SELECT * FROM (SELECT m.k, n.k AS nk, m.j FROM m LEFT JOIN n ON m.k = n.k) UNPIVOT (v FOR what IN (nk, j))",
    ],
    "Window": ["SELECT n.k, m.j, count(m.j) OVER (PARTITION BY n.k) AS r FROM m LEFT JOIN n ON m.k = n.k"],
    "Join": [
        f"SELECT {SHOWN} FROM {TWO} LEFT JOIN o ON m.k = o.k AND coalesce(n.j, 0) = coalesce(o.j, 0)",
        f"SELECT {SHOWN} FROM m LEFT JOIN n ON m.k = n.k AND m.j = n.j LEFT JOIN o ON m.k = o.k AND n.j <=> o.j",
        f"SELECT {SHOWN} FROM m LEFT JOIN n ON m.k = n.k AND m.j = n.j FULL JOIN o ON n.k = o.k AND m.j = o.j",
        f"SELECT {SHOWN} FROM m LEFT JOIN n ON m.k = n.k AND m.j = n.j LEFT JOIN o ON n.k = o.k AND n.j = o.j",
        f"SELECT {SHOWN} FROM m LEFT JOIN n ON m.k = n.k AND {IN_2_HOURS} LEFT JOIN o ON n.k = o.k AND m.j = o.j",
        f"SELECT {SHOWN} FROM m FULL JOIN n ON m.k = n.k LEFT JOIN o ON coalesce(m.k, n.k) = o.k",
        f"SELECT {SHOWN} FROM m RIGHT JOIN n ON m.k + 1 = n.k + 1 JOIN o ON n.k + 1 = o.k + 1 AND m.k + 1 = o.j",
        f"SELECT k, j FROM (SELECT m.k, n.j FROM {TWO}) x LEFT ANTI JOIN o ON x.k = o.k AND x.j <=> o.j",
        "SELECT m.k, EXISTS (SELECT 1 FROM o WHERE o.k <=> n.k) AS e FROM m LEFT JOIN n ON m.k = n.k",
        "SELECT m.k, n.j, (SELECT max(o.j) FROM o WHERE o.k = n.k) AS oj FROM m LEFT JOIN n ON m.k = n.k",
    ],
    "Generate": [
        "SELECT nk, e, count(DISTINCT k) AS c FROM (SELECT m.k, n.k AS nk, n.j FROM m LEFT JOIN n ON m.k = n.k) LATERAL VIEW OUTER explode(array(nk, j)) t AS e GROUP BY nk, e",
    ],
    "Filter": [
        "SELECT x.*, o.j AS oj FROM (SELECT m.k, n.k AS nk FROM m LEFT JOIN n ON m.k = n.k WHERE n.k IS NULL OR n.j = 5) x LEFT JOIN o ON x.nk = o.k",
    ],
    "Project": [
        "SELECT p, q, o.j FROM (SELECT n.k AS p, m.k AS q FROM m LEFT JOIN n ON m.k = n.k) x LEFT JOIN o ON p = o.k"
    ],
    "Union": [
        "SELECT x.k, x.j, o.k AS ok FROM (SELECT m.k, n.k AS j FROM m JOIN n ON m.k = n.k UNION ALL SELECT k, j FROM o) x JOIN o ON x.j = o.k",
    ],
    "CTERelationRef": [
        "WITH c AS (SELECT k, j FROM m WHERE k > 0) SELECT x.k, x.j, y.k AS yk, o.j AS oj FROM c x LEFT JOIN c y ON x.k = y.j LEFT JOIN o ON x.k = o.j AND x.j = o.k",
    ],
    **{name: ["SELECT k, j FROM m ORDER BY k, j LIMIT 3 OFFSET 1"] for name in LIMITS},
}

GROUPS = "(SELECT k, max(j) AS c FROM m GROUP BY k) x"
UNIQUE = [
    f"SELECT x.k, y.k AS yk FROM {GROUPS} FULL JOIN (SELECT DISTINCT k FROM n) y ON x.k = y.k",
    f"SELECT x.k, y.k AS yk, y.j FROM {GROUPS} LEFT JOIN (SELECT DISTINCT k, j FROM n) y ON x.k = y.k",
    f"SELECT x.k, y.k AS yk, y.j FROM {GROUPS} RIGHT JOIN (SELECT DISTINCT k, j FROM n) y ON x.k = y.j",
    "SELECT x.c, y.c AS d FROM (SELECT max(j) AS c FROM m) x FULL JOIN (SELECT max(j) AS c FROM n) y ON x.c = y.c",
    f"SELECT x.k, EXISTS (SELECT 1 FROM n WHERE n.k = x.k) OR x.c = 0 AS e FROM {GROUPS}",
]

numbers = st.sampled_from([None, 0, 1, 2, 5])
rows = st.lists(st.tuples(st.integers(0, 5), numbers, numbers), max_size=12)
ALL = tuple(
    [(hour, k, j) for hour, (k, j) in enumerate(pairs)]
    for pairs in (
        [(1, 5), (9, 8), (1, None), (None, 2), (2, 0), (2, 2), (None, None), (0, 1), (5, 2)],
        [(9, 9), (8, 8), (2, 0), (1, 1), (None, 5), (2, 5), (None, None), (6, 6), (0, 0)],
        [(1, None), (9, 9), (2, 0), (0, None), (1, 1), (5, 5), (None, None), (None, 0), (7, 7), (2, 2)],
    )
)
laws = settings(
    max_examples=EXAMPLES or 1,
    phases=tuple(Phase) if EXAMPLES else (Phase.explicit,),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def catalyst(spark):
    return Catalyst(Tuned(spark, **QUICK).newSession())


def each_block(catalyst, tmp_path, text, check):
    """Look at the fragments of a query over random rows; `check` gets the world and each of them."""
    steps = prepared(catalyst, tmp_path, f"SELECT timestamp'2024-01-01' AS event_time, * FROM ({text})", "mno")

    @laws
    @given(st.tuples(rows, rows, rows))
    @example(ALL)
    def law(found):
        with TemporaryDirectory(dir=tmp_path) as scratch:
            inputs = [input_rows(catalyst, some) for some in found]
            world = World(catalyst, steps, inputs, Path(scratch))
            for fragment in steps.fragments:
                check(world, fragment)

    law()
    return steps


def test_there_are_queries_for_every_operator():
    assert QUERIES.keys() == OPERATORS.keys() | ROW_BY_ROW


TRIED = QUERIES if EXAMPLES else {name: QUERIES[name][:1] for name in ("Join", "Aggregate", "Union", "CTERelationRef")}


@pytest.mark.parametrize(
    ("operator", "text"),
    [pytest.param(name, text, id=f"{name}-{at}") for name in TRIED for at, text in enumerate(TRIED[name])],
)
def test_rows_fall_apart_by_every_key_and_have_the_values_of_it_that_are_said(operator, text, catalyst, tmp_path):
    def check(world, fragment):
        for at in range(len(fragment.info.keys)):
            found = halves(world, fragment, at)
            assert found.halves == found.whole
            assert not found.misplaced

    steps = each_block(catalyst, tmp_path, text, check)
    assert operator in {found.name for found in operators(steps.last.step.plan)}
    assert operator in LIMITS or any(fragment.info.keys for fragment in steps.fragments)


@pytest.mark.parametrize("text", UNIQUE if EXAMPLES else UNIQUE[:1])
def test_no_two_rows_share_what_rows_are_known_by(text, catalyst, tmp_path):
    def check(world, fragment):
        if fragment.info.unique is None:
            return
        at = [f"c{at}" for at, column in enumerate(fragment.info.columns) if column_id(column) in fragment.info.unique]
        rows = catalyst.dataframe(catalyst.project(fragment.info.columns, world.result(fragment)))
        rows = rows.toDF(*(f"c{at}" for at in range(len(fragment.info.columns))))
        known = Counter(tuple(json.dumps(row[name]) for name in at) for row in rows.select(*at).collect())
        assert max(known.values(), default=1) == 1, known

    each_block(catalyst, tmp_path, text, check)
