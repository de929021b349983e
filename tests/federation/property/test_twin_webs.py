"""Two webs that differ only in what the asker may not see are told apart by nothing that the asker gets.

Not by the answer, and not by anything beside it: who answers, the length of tickets, who is missing and why, schemas,
the bytes and batches of every stream, errors. Time is not looked at.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.federation.answers import rows_of
from support.federation.questions import questions
from support.federation.webs import RandomWeb, Stored, webs
from support.federation.whole import Exchange, WholeWeb
from support.federation.worlds import value_of

SETTINGS = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)


@st.composite
def twins(draw: st.DrawFn) -> tuple[RandomWeb, RandomWeb, str]:
    """A web, one with other hidden cells and rows, and a question."""
    web = draw(webs())
    nodes = {
        name: replace(
            node,
            stored={
                source: (entity, draw(_otherwise(stored, web, name)))
                for source, (entity, stored) in node.stored.items()
            },
        )
        for name, node in web.nodes.items()
    }
    return web, replace(web, nodes=nodes), draw(questions(web.entities))


@st.composite
def _otherwise(draw: st.DrawFn, stored: Stored, web: RandomWeb, node: str) -> Stored:
    """The same source with other values where these are hidden, and with other hidden rows.

    Conditions may read hidden cells, so that only changes count after which the same shows.
    """
    people = web.people(node)
    rows = []
    for row in stored.rows:
        shown = replace(stored, rows=(row,)).shown(people)
        changed = {field.name: draw(value_of(field.type)) for field in stored.schema}
        if shown:
            changed = {name: changed[name] if shown[0][name] is None else row[name] for name in row}
        is_same = repr(replace(stored, rows=(changed,)).shown(people)) == repr(shown)
        rows.append(changed if is_same else row)
    for _ in range(draw(st.integers(0, 3))):
        hidden = {field.name: draw(value_of(field.type)) for field in stored.schema}
        if not replace(stored, rows=(hidden,)).shown(people):
            rows.insert(draw(st.integers(0, len(rows))), hidden)
    return replace(stored, rows=tuple(rows))


def seen_by_asker(web: RandomWeb, question: str) -> tuple[object, Exchange]:
    whole = WholeWeb(web, in_order=True)
    try:
        found, seen = whole.asked(question)
    finally:
        whole.close()
    return (found.schema, rows_of(found)), seen


@settings(SETTINGS, max_examples=40)
@given(twins())
def test_nothing_tells_apart_two_webs_that_differ_in_what_is_hidden(asked: tuple[RandomWeb, RandomWeb, str]) -> None:
    web, other, question = asked
    note(question)
    asked_for = [f'SELECT * FROM "{name}"' for name in web.entities]
    if "LIMIT" not in question:  # which of equal rows come first may depend on anything
        asked_for.append(question)
    for text in asked_for:
        one, first = seen_by_asker(web, text)
        two, second = seen_by_asker(other, text)
        assert one == two
        assert first.errors == second.errors
        assert (first.parts, first.missing) == (second.parts, second.missing)
        assert sorted(map(str, first.schemas)) == sorted(map(str, second.schemas))
        assert sorted(first.batches) == sorted(second.batches)
        assert sorted(first.sent) == sorted(second.sent)
        if text.startswith("SELECT *"):  # groups come in any order
            assert sorted(first.streams) == sorted(second.streams)
