"""Stages of some work as a tree: nested, added up, by thread, with errors, and without a profile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextvars import copy_context

import pytest

from odfpy.stages import StageTime, count_call, current, profiling, stage, staged


def shape(of: StageTime) -> dict[str, object]:
    """Names and how often they were there, without times."""
    return {name: (part.times, shape(part)) if part.parts else part.times for name, part in of.parts.items()}


def assert_consistent(of: StageTime) -> None:
    """Parts take no longer than what they are part of."""
    for _, one in of.walk():
        assert sum(part.seconds for part in one.parts.values()) <= one.seconds + 1e-9 or not one.parts
        assert one.other >= 0


def test_stages_within_stages_are_a_tree():
    with profiling("work") as whole:
        with stage("plan"), stage("parse"):
            pass
        with stage("write"):
            pass
    assert (whole.name, whole.times) == ("work", 1)
    assert shape(whole) == {"plan": (1, {"parse": 1}), "write": 1}
    assert [(depth, one.name) for depth, one in whole.walk()] == [(0, "work"), (1, "plan"), (2, "parse"), (1, "write")]
    assert_consistent(whole)


def test_a_name_at_the_same_place_adds_up_and_elsewhere_does_not():
    with profiling("work") as whole:
        for _ in range(3):
            with stage("read"):
                pass
        with stage("write"), stage("read"):
            pass
    assert shape(whole) == {"read": 3, "write": (1, {"read": 1})}
    assert_consistent(whole)


def test_a_stage_that_goes_on_is_not_counted_again():
    with profiling("work") as whole:
        for number in range(3):
            with stage("write", again=number > 0) as found:
                assert found is whole.at("write")
    assert shape(whole) == {"write": 1}


def test_without_a_profile_nothing_is_kept():
    with stage("plan") as found:
        assert found is None
        assert current() is None
    count_call()
    assert list(staged("rows", [1, 2])) == [1, 2]


def test_errors_end_their_stages():
    with profiling("work") as whole:
        with pytest.raises(ValueError, match="no"), stage("plan"), stage("parse"):
            raise ValueError("no")
        with stage("write"):
            pass
    assert shape(whole) == {"plan": (1, {"parse": 1}), "write": 1}
    assert current() is None


def test_an_interrupted_profile_has_what_was_done():
    with pytest.raises(KeyboardInterrupt), profiling("work") as whole, stage("plan"):
        raise KeyboardInterrupt
    assert shape(whole) == {"plan": 1}
    assert whole.seconds >= whole.parts["plan"].seconds > 0


def test_a_profile_within_another_one_has_its_own_stages():
    with profiling("outer") as outer:
        with profiling("inner") as inner, stage("plan"):
            pass
        with stage("write"):
            pass
    assert (shape(outer), shape(inner)) == ({"write": 1}, {"plan": 1})


def test_threads_have_a_profile_only_if_they_are_given_one():
    def work(name: str) -> None:
        with stage(name):
            pass

    with profiling("work") as whole, stage("write"):
        threads = [
            threading.Thread(target=work, args=("alone",)),
            threading.Thread(target=copy_context().run, args=(work, "given")),
            threading.Thread(target=copy_context().run, args=(work, "given")),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert shape(whole) == {"write": (1, {"given": 2})}


def test_waiting_for_items_is_a_stage_of_whoever_asks():
    def rows() -> Iterator[int]:
        for number in range(3):
            with stage("read"):
                pass
            yield number

    with profiling("work") as whole:
        for _ in staged("rows", rows()):
            with stage("write"):
                pass
    assert shape(whole) == {"rows": (1, {"read": 3}), "write": 3}
    assert_consistent(whole)


def test_an_error_among_items_comes_through():
    def rows() -> Iterator[int]:
        yield 1
        raise ValueError("no")

    with profiling("work") as whole, pytest.raises(ValueError, match="no"):
        list(staged("rows", rows()))
    assert shape(whole) == {"rows": 1}


def test_calls_and_jobs_belong_to_the_stage_that_is_under_way():
    with profiling("work") as whole:
        count_call()
        with stage("plan"):
            count_call()
            count_call()
            with stage("run") as run:
                assert run is not None
                run.add(0.0, 0, jobs=2)
    assert (whole.calls, whole.all_calls, whole.all_jobs) == (1, 3, 2)
    plan = whole.at("plan")
    assert plan is not None
    assert (plan.calls, plan.jobs, plan.all_jobs) == (2, 0, 2)
    assert whole.at("plan", "run", "more") is None
