"""CallPool: they run at the same time, whoever waits for them waits no longer than they are wanted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import QueryCancelled
from odfpy.federation.relay.call_pool import CallPool

LONG = 20.0


@contextmanager
def calls(at_once: int = 8) -> Iterator[CallPool]:
    made = CallPool(at_once, "test")
    try:
        yield made
    finally:
        made.close()


def test_results_and_errors_are_those_of_each_errand() -> None:
    with calls() as made:
        asking = made.group()
        found = [asking.start(divmod, 7, number) for number in (2, 0, 3)]
        asking.wait(LONG, CancellationToken())
    assert [one.result for one in found] == [(3, 1), None, (2, 1)]
    assert [type(one.error) for one in found] == [type(None), ZeroDivisionError, type(None)]


def test_a_round_without_errands_is_over_at_once() -> None:
    with calls() as made:
        made.group().wait(LONG, CancellationToken())


def test_errands_that_wait_do_not_keep_others_from_beginning() -> None:
    for _ in range(50):  # the threads come at other times each time
        with calls(8) as made:
            all_are_there = threading.Barrier(8)
            asking = made.group()
            found = [asking.start(all_are_there.wait, LONG) for _ in range(8)]
            asking.wait(LONG, CancellationToken())
        assert sorted(one.result for one in found if one.result is not None) == [*range(8)]


def test_no_more_run_at_the_same_time_than_there_are_threads() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def call() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait(LONG)
        with lock:
            running -= 1

    both = threading.Barrier(2)
    with calls(2) as made:
        asking = made.group()
        found = [asking.start(call) for _ in range(20)]
        asking.wait(LONG, CancellationToken())
    assert [one.error for one in found] == [None] * 20
    assert most == 2


def test_what_comes_too_late_has_no_result_and_what_has_not_begun_is_not_made() -> None:
    made_calls: list[str] = []
    go_on = threading.Event()
    with calls(1) as made:
        asking = made.group()
        found = [asking.start(go_on.wait, LONG), asking.start(made_calls.append, "late")]
        asking.wait(0.01, CancellationToken())
        assert [(one.result, one.error) for one in found] == [(None, None)] * 2
        go_on.set()
        following = made.group()
        following.start(made_calls.append, "next")
        following.wait(LONG, CancellationToken())
    assert made_calls == ["next"]


def test_who_is_not_wanted_any_more_waits_no_longer() -> None:
    go_on, control = threading.Event(), CancellationToken()
    with calls() as made:
        asking = made.group()
        asking.start(go_on.wait, LONG)
        threading.Thread(target=control.cancel).start()
        with pytest.raises(QueryCancelled):
            asking.wait(LONG, control)
        go_on.set()


def test_who_closes_it_lets_nobody_wait_for_what_has_not_begun() -> None:
    go_on, has_begun = threading.Event(), threading.Event()

    def call() -> None:
        has_begun.set()
        go_on.wait(LONG)

    made = CallPool(1, "test")
    asking = made.group()
    asking.start(call)
    waiting = asking.start(has_begun.wait)
    assert has_begun.wait(LONG)
    made.close()
    after = asking.start(has_begun.wait)
    go_on.set()
    control = CancellationToken()
    with ThreadPoolExecutor() as threads:
        waited = threads.submit(asking.wait, 1e6, control)
        try:
            waited.result(LONG)
        finally:
            control.cancel()
    assert [waiting.result, after.result] == [None, None]
