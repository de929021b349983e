"""Two webs that differ only in what the asker may not see are told apart by nothing that the asker gets.

Not by the answer, and not by anything beside it: who answers, the length of tickets, who is missing and why, schemas,
the bytes and batches of every stream, errors. Time is not looked at.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import pyarrow as pa
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.examples import examples
from support.federation.answers import rows_of
from support.federation.questions import columns_of, conditions, questions
from support.federation.webs import RandomWeb, Stored, webs
from support.federation.whole import Exchange, WholeWeb
from support.federation.worlds import BOOL, quoted, value_of

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
    """The same source with different values where these are hidden, and with other hidden rows.

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


class Compared(Enum):
    """The parts of an exchange that two webs must have in common, beside who answers what and how much."""

    BYTES = "the answer, and the bytes of each row that travels"
    ANSWER = "the answer: which rows travel for it is left open"
    NUMBERS = "nothing more: which rows are the answer is left open"


def compare(web: RandomWeb, other: RandomWeb, text: str, what: Compared) -> None:
    """Ask both webs a question, and compare what comes."""
    one, first = seen_by_asker(web, text)
    two, second = seen_by_asker(other, text)
    assert first.errors == second.errors
    assert (first.parts, first.missing) == (second.parts, second.missing)
    assert sorted(map(str, first.schemas)) == sorted(map(str, second.schemas))
    assert sorted(first.batches) == sorted(second.batches)
    if what is not Compared.NUMBERS:
        assert one == two
    if what is Compared.BYTES:
        assert sorted(first.sent) == sorted(second.sent)
        assert sorted(map(bytes_of_rows, first.streams)) == sorted(map(bytes_of_rows, second.streams))


def bytes_of_rows(stream: bytes) -> list[bytes]:
    """The bytes of each row of a stream, whatever is under NULL too; groups and different rows come in any order."""
    table = pa.ipc.open_stream(stream).read_all()
    return sorted(
        batch.slice(at, 1).serialize().to_pybytes() for batch in table.to_batches() for at in range(batch.num_rows)
    )


@settings(SETTINGS, max_examples=examples(10, 40))
@given(twins())
def test_nothing_tells_apart_two_webs_that_differ_in_what_is_hidden(asked: tuple[RandomWeb, RandomWeb, str]) -> None:
    web, other, question = asked
    note(question)
    for name in web.entities:
        compare(web, other, f'SELECT * FROM "{name}"', Compared.BYTES)
    compare(web, other, question, Compared.ANSWER if "LIMIT" in question else Compared.BYTES)


@st.composite
def pushed(draw: st.DrawFn, schema: pa.Schema, name: str) -> tuple[str, Compared]:
    """A question for some of an entity that sources answer, and what does not depend on the order of rows."""
    columns = draw(st.lists(st.sampled_from(schema.names), min_size=1, max_size=3, unique=True))
    shown = ", ".join(map(quoted, columns))
    table = f'FROM "{name}"'
    if draw(st.booleans()):
        table += f" WHERE {draw(conditions(columns_of(schema), 1))}"
    limit = f"LIMIT {draw(st.integers(0, 4))}"
    ordered = f"ORDER BY {', '.join(f'{quoted(one)} NULLS LAST' for one in columns)}"
    any_order = f"ORDER BY {quoted(columns[0])} DESC NULLS LAST"
    numbers = [f"count({quoted(one)})" for one in columns]
    numbers += [f"min({quoted(one)}), max({quoted(one)})" for one in columns if schema.field(one).type != BOOL]
    return draw(
        st.sampled_from(
            (
                (f"SELECT {shown} {table}", Compared.BYTES),
                (f"SELECT {shown} {table} {ordered} {limit}", Compared.BYTES),
                (f"SELECT DISTINCT {shown} {table} {ordered} {limit}", Compared.BYTES),
                (f"SELECT DISTINCT {shown} {table}", Compared.BYTES),
                (f"SELECT count(*), {', '.join(numbers)} {table}", Compared.BYTES),
                (f"SELECT {shown}, count(*) {table} GROUP BY {shown}", Compared.BYTES),
                (f"SELECT {shown} {table} {limit}", Compared.NUMBERS),
                (
                    f"SELECT {shown} {table} {any_order} {limit}",
                    Compared.NUMBERS if len(columns) > 1 else Compared.BYTES,
                ),
            )
        )
    )


@st.composite
def twins_with_part(draw: st.DrawFn) -> tuple[RandomWeb, RandomWeb, str, Compared]:
    web, other, _ = draw(twins())
    name = draw(st.sampled_from(sorted(web.entities)))
    return web, other, *draw(pushed(web.entities[name], name))


@settings(SETTINGS, max_examples=examples(15, 80))
@given(twins_with_part())
def test_nor_do_limits_projections_and_aggregates(asked: tuple[RandomWeb, RandomWeb, str, Compared]) -> None:
    """Which of several rows come first may depend on the hidden ones where a question leaves it open; no more may."""
    web, other, question, what = asked
    note(f"{question}: {what.value}")
    compare(web, other, question, what)
