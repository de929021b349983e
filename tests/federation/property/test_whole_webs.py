"""The one property above all, over whole webs: an answer is that over all cells that the asker may see, anywhere.

Relays, tokens, tickets and readers are real; schemas, links, sources, grants, askers and questions are random. The
reference is plain Python row by row (`support.federation.webs`), and duckdb over its result.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.examples import examples
from support.federation.answers import rows_of, run_duckdb
from support.federation.questions import questions
from support.federation.webs import RandomWeb, webs
from support.federation.whole import WholeWeb

SETTINGS = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)


@st.composite
def asked(draw: st.DrawFn) -> tuple[RandomWeb, str]:
    web = draw(webs())
    return web, draw(questions(web.entities))


def check(web: RandomWeb, question: str) -> None:
    """Ask for all rows of all entities, and a question."""
    note(question)
    visible = {name: web.visible(name) for name in web.entities}
    whole = WholeWeb(web)
    try:
        for text in (*(f'SELECT * FROM "{name}"' for name in web.entities), question):
            found, seen = whole.asked(text)
            assert not seen.errors
            assert rows_of(found) == rows_of(run_duckdb(text, visible)), text
            assert {name for name, _ in seen.missing} in (web.missing(), set())  # no fragment, nobody asked
    finally:
        whole.close()


@settings(SETTINGS, max_examples=examples(15, 60))
@given(asked())
def test_an_answer_is_that_over_all_cells_that_the_asker_may_see(asked: tuple[RandomWeb, str]) -> None:
    check(*asked)


@pytest.mark.attack
@settings(SETTINGS, max_examples=20_000)
@given(asked())
def test_many_answers_are_that(asked: tuple[RandomWeb, str]) -> None:
    check(*asked)
