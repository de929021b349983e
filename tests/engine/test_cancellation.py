"""What stops a query."""

from __future__ import annotations

import logging
import threading

import pytest

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import QueryCancelled, QueryTimedOut


def test_who_waits_to_be_told_is_told_once():
    told = []
    with CancellationToken() as control:
        control.on_stop(lambda: told.append("before"))
        control.check()
        control.cancel()
        control.cancel()
        control.on_stop(lambda: told.append("after"))
    assert told == ["before", "after"]
    with pytest.raises(QueryCancelled):
        control.check()


def test_the_clock_stops_what_takes_too_long():
    stopped = threading.Event()
    with CancellationToken(0.01) as control:
        control.on_stop(stopped.set)
        assert stopped.wait(60)
    with pytest.raises(QueryTimedOut, match=r"longer than 0\.01 s"):
        control.check()


def test_what_is_within_something_that_is_stopped_is_stopped_too_and_not_the_other_way_round():
    whole = CancellationToken()
    with CancellationToken(parent=whole) as first:
        first.cancel()
    whole.check()
    with CancellationToken(parent=whole) as second:
        whole.cancel()
        assert second.is_stopped
        with pytest.raises(QueryCancelled):
            second.check()
    assert CancellationToken(parent=whole).is_stopped


def test_one_that_fails_to_stop_keeps_none_of_the_others_from_it(caplog: pytest.LogCaptureFixture):
    def broken() -> None:
        raise RuntimeError("the database does not answer")

    told = []
    with (
        CancellationToken() as outer,
        CancellationToken(parent=outer) as inner,
        caplog.at_level(logging.ERROR, "odfpy"),
    ):
        outer.on_stop(broken)
        inner.on_stop(broken)
        inner.on_stop(lambda: told.append("inner"))
        outer.on_stop(lambda: told.append("outer"))
        outer.cancel()
    assert told == ["inner", "outer"]
    assert len(caplog.records) == 2
