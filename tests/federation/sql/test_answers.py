"""The one property above all: an answer by fragments is that over all cells that the asker may see.

Worlds and questions are random; the reference is plain Python row by row, and duckdb over its result.
"""

from __future__ import annotations

import sqlglot
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.examples import examples
from support.federation.answers import answered, expected, rows_of
from support.federation.questions import questions
from support.federation.worlds import World, worlds


@st.composite
def _asked(draw: st.DrawFn) -> tuple[World, str]:
    world = draw(worlds())
    return world, draw(questions(world.entities))


@settings(max_examples=examples(30, 120), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(_asked())
def test_an_answer_is_that_over_all_visible_cells(asked: tuple[World, str]) -> None:
    world, question = asked
    note(question)
    wanted = rows_of(expected(world, question))
    answer = answered(world, question)
    assert rows_of(answer.table) == wanted


@settings(max_examples=examples(15, 40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(_asked())
def test_a_question_in_the_sql_of_spark_has_the_same_answer(asked: tuple[World, str]) -> None:
    """The rest is for Spark, and here translated for duckdb, so that no Spark has to start."""
    world, question = asked
    for_spark = sqlglot.transpile(question, read="duckdb", write="spark")[0]
    note(for_spark)
    found = answered(world, for_spark, "spark")
    assert rows_of(found.table) == rows_of(expected(world, question))
