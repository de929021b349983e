"""Answers of relays: each source once in any topology, in the words of its relay, and who is missing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.federation.simulated import ASKER, COLUMNS, ENTITY, SimulatedWeb, identity, token
from support.servers.serving import wait_until

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import NotFound, QueryCancelled
from odfpy.federation.errors import AuthenticationFailed
from odfpy.federation.relay.errors import TicketRefused
from odfpy.federation.relay.question import Answer, AnswerOptions, Cancellation, Question, SentFragment
from odfpy.federation.relay.requesters import Identity
from odfpy.federation.relay.tickets import Tickets
from odfpy.federation.sql.fragment import Fragment, explained
from odfpy.federation.sql.split import split
from odfpy.sharing.decisions import View, VisiblePart

LINE = {"a": {"b": "{v} * 100"}, "b": {"c": "{v} + 1"}, "c": {}}
(ALL,) = split(f"SELECT key, price FROM {ENTITY} WHERE price > 10", {ENTITY: COLUMNS}).fragments.values()


@contextmanager
def web(links: Mapping[str, Mapping[str, str]], **more: list[str]) -> Iterator[SimulatedWeb]:
    made = SimulatedWeb(links, **more)
    try:
        yield made
    finally:
        made.close()


def ask(made: SimulatedWeb, relay: str, id_: str = "1", *, seconds: float = 20.0, **more: int) -> Answer:
    question = Question(f"{id_} item", SentFragment.of(ALL), seconds=seconds, requester=token(ASKER, id_), **more)
    return made.relays[relay].answer(question, ASKER)


def test_each_relay_is_asked_in_its_own_words() -> None:
    with web(LINE) as made:
        answer = ask(made, "a")
        assert answer.is_complete
        found = {part.relay: made.ticket(part) for part in answer.parts}
    assert list(found) == ["a", "b", "c"]
    words = {name: explained(one.fragment) for name, one in found.items()}
    assert "*" not in words["a"]
    assert "* 100" in words["b"]
    assert "+ 1" in words["c"]
    assert "* 100" in words["c"]
    assert {one.fragment.schema for one in found.values()} == {ALL.schema}


@given(st.data())
@settings(max_examples=40)
def test_any_topology_gives_each_source_that_can_be_reached_once(data: st.DataObject) -> None:
    names = [f"r{number}" for number in range(data.draw(st.integers(1, 8)))]
    links = {name: dict.fromkeys(data.draw(st.sets(st.sampled_from(names))), "{v}") for name in names}
    with web(links) as made:
        answer = ask(made, names[0])
        assert answer.is_complete
        assert sorted(part.relay for part in answer.parts) == sorted(reached(links, names[0]))
        assert made.messages <= sum(map(len, links.values()))
        assert ask(made, names[0]).parts == ()  # the same id again


def reached(links: Mapping[str, Mapping[str, str]], start: str) -> set[str]:
    found, left = {start}, [start]
    while left:
        for peer in links[left.pop()]:
            if peer not in found:
                found.add(peer)
                left.append(peer)
    return found


def test_whose_view_is_empty_is_not_in_the_answer() -> None:
    with web(LINE) as made:
        made.known["b"].views = {"b rows": None}
        made.known["c"].views = {"c rows": View((VisiblePart(("key",), None),))}
        assert [part.relay for part in ask(made, "a").parts] == ["a", "c"]


def test_who_cannot_be_asked_or_is_late_is_named_and_the_others_answer() -> None:
    links = {"a": {"b": "{v}", "c": "{v}"}, "b": {"late": "{v}", "d": "{v}"}, "c": {}, "d": {}, "late": {}}
    with web(links, down=["c"], slow=["late"]) as made:
        began = time.monotonic()
        answer = ask(made, "a", seconds=1.0)
        assert time.monotonic() - began < 10  # and not for ever
        assert [part.relay for part in answer.parts] == ["a", "b", "d"]
        missing = {one.relay: one.why for one in answer.missing}
    assert missing == {"c": "cannot connect to c", "late": "it has not answered in time"}


def test_who_signs_no_token_sees_what_both_they_and_the_relay_may_see_and_reads_it_there() -> None:
    some = View((VisiblePart(("key",), "key > 1"), VisiblePart(None, "price = 2")))
    others = View((VisiblePart(("KEY", "price"), None),))
    with web(LINE) as made:
        made.known["b"].views = {"b rows by asker": some, "b rows by a": others}
        made.known["c"].views = {"c rows by a": None}
        answer = made.relays["a"].answer(Question("1 item", SentFragment.of(ALL)), ASKER)
        assert [(part.relay, part.location) for part in answer.parts] == [
            ("a", "grpc+tls://a:1"),
            ("b", "grpc+tls://a:1"),
        ]
        own, passed = (made.ticket(part) for part in answer.parts)
        assert own.seen_by == (ASKER,)
        theirs = made.ticket(passed.part, identity("a"), reader=ASKER)
        assert theirs.seen_by == (identity("a"), ASKER)
        view = made.relays["b"].view("b rows", theirs.seen_by)
    assert view is not None
    assert set(view.parts) == {VisiblePart(("KEY",), "(key > 1)"), VisiblePart(("KEY", "price"), "(price = 2)")}


def test_a_question_without_a_token_that_comes_back_in_a_circle_is_known() -> None:
    with web({"a": {"b": "{v}"}, "b": {"a": "{v}", "c": "{v}"}, "c": {"a": "{v}"}}) as made:
        answer = made.relays["a"].answer(Question("1 item", SentFragment.of(ALL)), ASKER)
        assert [part.relay for part in answer.parts] == ["a", "b", "c"]
        assert made.ticket(answer.parts[0]).seen_by == (ASKER,)


def test_a_token_is_good_for_its_query_only() -> None:
    with web(LINE) as made, pytest.raises(AuthenticationFailed, match="another query"):
        made.relays["a"].answer(Question("2 item", SentFragment.of(ALL), requester=token(ASKER, "1")), ASKER)


@pytest.mark.parametrize("topology", ["line", "star", "mesh"])
def test_many_relays_answer_with_a_message_a_link(topology: str) -> None:
    names = [f"r{number}" for number in range(30)]
    links = {
        "line": {name: {names[at + 1]: "{v}"} if at + 1 < len(names) else {} for at, name in enumerate(names)},
        "star": {name: dict.fromkeys(names[1:], "{v}") if name == "r0" else {} for name in names},
        "mesh": {name: {peer: "{v}" for peer in names if peer != name} for name in names},
    }[topology]
    with web(links) as made:
        answer = ask(made, "r0", seconds=300)
        assert answer.is_complete
        assert len({part.relay for part in answer.parts}) == len(answer.parts) == len(names)
        assert made.messages == sum(map(len, links.values()))


def test_hops_and_time_have_an_end() -> None:
    with web(LINE) as made:
        answer = ask(made, "a", hops=1)
        assert [part.relay for part in answer.parts] == ["a", "b"]
        assert [one.relay for one in answer.missing] == ["c"]
        assert [one.relay for one in ask(made, "a", "2", seconds=0.01).missing] == ["b"]


def test_an_entity_that_is_not_there() -> None:
    with web(LINE) as made, pytest.raises(NotFound):
        made.relays["a"].answer(Question("1", SentFragment.of(Fragment("other", ALL.outputs))), ASKER)


def test_a_ticket_is_for_its_holder_for_a_time_and_perhaps_once() -> None:
    seen: set[str] = set()
    now = [1000.0]

    def is_first(key: str, _seconds: float) -> bool:
        return not (key in seen or seen.add(key))

    tickets = Tickets(bytes(32), is_first=is_first, clock=lambda: now[0])
    with web(LINE) as made:
        one = made.ticket(ask(made, "a").parts[0])
    single = tickets.close(replace(one, ends=1100.0, is_single=True))
    assert tickets.open(single, ASKER).fragment == one.fragment
    with pytest.raises(TicketRefused, match="already used"):
        tickets.open(single, ASKER)
    often = tickets.close(replace(one, ends=1100.0))
    assert tickets.open(often, ASKER) == tickets.open(often, ASKER)
    with pytest.raises(TicketRefused, match="another key"):
        tickets.open(often, Identity("cd" * 32, {}))
    with pytest.raises(TicketRefused, match="not issued"):
        tickets.open(f"{often[:40]}{'A' if often[40] != 'A' else 'B'}{often[41:]}", ASKER)
    with pytest.raises(TicketRefused, match="not issued"):
        Tickets(b"1" * 32, is_first=is_first).open(often, ASKER)
    now[0] = 1100.0
    with pytest.raises(TicketRefused, match="expired"):
        tickets.open(often, ASKER)


def test_parts_are_explained_in_the_words_of_their_relay_if_that_is_wanted() -> None:
    with web(LINE) as made:
        question = Question(
            "1 item", SentFragment.of(ALL), requester=token(ASKER, "1"), options=AnswerOptions(explained=True)
        )
        found = {part.relay: part.sql or "" for part in made.relays["a"].answer(question, ASKER).parts}
        assert {part.sql for part in ask(made, "a", "2").parts} == {None}
    assert found["a"].startswith('SELECT "key", "price" FROM "item" WHERE')
    assert "* 100" in found["b"]


def test_a_query_that_is_cancelled_while_it_is_planned_ends_at_once_and_everywhere() -> None:
    links = {"a": {"b": "{v}"}, "b": {"slow": "{v}", "c": "{v}"}, "c": {"a": "{v}"}, "slow": {}}
    with web(links, slow=["slow"]) as made, ThreadPoolExecutor() as threads:
        planned = threads.submit(ask, made, "a", seconds=200.0)
        wait_until(lambda: made.messages >= 3)
        assert made.relays["a"].cancel(Cancellation("1"), identity("mallory")).holder == identity("mallory").fingerprint
        assert not planned.done()
        made.relays["a"].cancel(Cancellation("1"), ASKER)
        with pytest.raises(QueryCancelled):
            planned.result(timeout=20)
        wait_until(lambda: set(made.cancelled) == {("a", "b"), ("b", "slow"), ("b", "c"), ("c", "a")})
        with pytest.raises(QueryCancelled):
            ask(made, "c", "1")


def test_who_hangs_up_cancels_the_query_at_all_who_were_asked() -> None:
    with web({"a": {"slow": "{v}", "b": "{v}"}, "b": {}, "slow": {}}, slow=["slow"]) as made:
        control = CancellationToken()
        with ThreadPoolExecutor() as threads:
            question = Question("1 item", SentFragment.of(ALL), seconds=200.0, requester=token(ASKER, "1"))
            planned = threads.submit(made.relays["a"].answer, question, ASKER, control)
            wait_until(lambda: made.messages == 2)
            control.cancel()
            with pytest.raises(QueryCancelled):
                planned.result(timeout=20)
        wait_until(lambda: sorted(made.cancelled) == [("a", "b"), ("a", "slow")])


def test_a_relay_that_hangs_up_cancels_nothing_at_others() -> None:
    """It has run out of time, perhaps, and its requester goes on with what the others have said."""
    with web({"a": {"slow": "{v}", "b": "{v}"}, "b": {}, "slow": {}}, slow=["slow"]) as made:
        control = CancellationToken()
        with ThreadPoolExecutor() as threads:
            question = Question("1 item", SentFragment.of(ALL), seconds=200.0, requester=token(ASKER, "1"))
            planned = threads.submit(made.relays["a"].answer, question, identity("another relay"), control)
            wait_until(lambda: made.messages == 2)
            control.cancel()
            with pytest.raises(QueryCancelled):
                planned.result(timeout=20)
        assert made.cancelled == []
        ask(made, "b", "1")  # is not refused there: it has been answered before
