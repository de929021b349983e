"""Work on several files at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.sharing.files.read_ahead import ReadAheadPool


@pytest.fixture(scope="module")
def ahead() -> Iterator[ReadAheadPool]:
    found = ReadAheadPool()
    yield found
    found.stop()


@given(st.lists(st.tuples(st.integers(), st.booleans())))
def test_results_come_in_order(ahead: ReadAheadPool, items: list[tuple[int, bool]]) -> None:
    found = list(ahead.map(lambda item: item[0] * 2, items, lambda item: item[1]))
    assert found == [number * 2 for number, _ in items]


def test_two_are_worked_on_at_once(ahead: ReadAheadPool) -> None:
    both = threading.Barrier(2, timeout=30)
    if ahead._most > 1:
        assert len(list(ahead.map(lambda _: both.wait(), range(2), lambda _: True))) == 2


def test_an_error_comes_where_it_is(ahead: ReadAheadPool) -> None:
    found = ahead.map(lambda number: 1 // number, [1, 1, 0, 1], lambda number: number == 0)
    assert [next(found), next(found)] == [1, 1]
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_few_more_are_taken_than_results(ahead: ReadAheadPool) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    found = ahead.map(str, items(), lambda _: True)
    assert next(found) == "0"
    assert len(taken) == ahead._most + 1
    found.close()  # type: ignore[attr-defined]
