"""Items that an idle thread prepares while the current one is worked on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from odfpy.data.slices.ahead import ahead


class Prepared:
    """Numbers, and who prepared which."""

    def __init__(self, count: int, *, broken: int | None = None) -> None:
        self.count = count
        self.broken = broken
        self.begun = [threading.Event() for _ in range(count)]
        self.by: list[int] = []
        self.closed = False

    def __iter__(self) -> Iterator[int]:
        try:
            for number in range(self.count):
                self.by.append(threading.get_ident())
                self.begun[number].set()
                if number == self.broken:
                    raise ValueError(f"{number} is broken")
                yield number
        finally:
            self.closed = True


@pytest.mark.parametrize("count", [0, 1, 2, 50])
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_items_come_in_order(count, threads):
    if not threads:
        assert list(ahead(iter(Prepared(count)), None)) == list(range(count))
        return
    with ThreadPoolExecutor(threads) as pool:
        assert list(ahead(iter(Prepared(count)), pool)) == list(range(count))


def test_an_idle_thread_prepares_the_next_item_while_the_caller_works():
    prepared = Prepared(3)
    with ThreadPoolExecutor(1) as pool:
        for number in ahead(iter(prepared), pool):
            assert all(event.wait(30) for event in prepared.begun[: number + 2])
            assert not any(event.is_set() for event in prepared.begun[number + 2 :])
    assert prepared.by[0] == threading.get_ident()
    assert threading.get_ident() not in prepared.by[1:]


def test_the_caller_prepares_what_no_thread_has_begun():
    prepared = Prepared(4)
    with ThreadPoolExecutor(1) as pool:
        # The only thread is the caller's own, so that waiting for another would be for ever.
        assert pool.submit(lambda: list(ahead(iter(prepared), pool))).result(30) == [0, 1, 2, 3]
    assert len(set(prepared.by)) == 1


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_an_error_comes_in_the_place_of_its_item(broken):
    with ThreadPoolExecutor(1) as pool:
        coming = ahead(iter(Prepared(5, broken=broken)), pool)
        assert [next(coming) for _ in range(broken)] == list(range(broken))
        with pytest.raises(ValueError, match=f"{broken} is broken"):
            next(coming)


def test_nobody_prepares_any_more_after_the_caller_has_left():
    prepared = Prepared(50)
    items = iter(prepared)
    with ThreadPoolExecutor(1) as pool:
        with closing(ahead(items, pool)) as coming:
            next(coming)
        items.close()
        assert prepared.closed
