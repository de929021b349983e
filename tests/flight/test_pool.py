"""Clients by location: reused, and closed when they are too many and nobody has them."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.servers.plain_flight import PlainServer

from odfpy.flight import ClientPool, FlightService, JsonCommands, Request, Tls

HERE = "grpc://127.0.0.1:{}"


def use(pool: ClientPool, *numbers: int) -> None:
    for number in numbers:
        with pool.client(HERE.format(number), Tls()):
            pass


def test_a_location_has_one_client():
    pool = ClientPool()
    with pool.client(HERE.format(1), Tls()) as first, pool.client(HERE.format(1), Tls()) as second:
        assert first is second
    with pool.client(HERE.format(1), Tls()) as third:
        assert third is first


def test_who_has_another_certificate_has_another_client():
    pool = ClientPool()
    encrypted = "grpc+tls://127.0.0.1:1"
    with pool.client(encrypted, Tls(host_name="a")) as one, pool.client(encrypted, Tls(host_name="b")) as two:
        assert one is not two
    with pool.client(HERE.format(1), Tls(host_name="a")) as one, pool.client(HERE.format(1), Tls()) as two:
        assert one is two, "certificates do not matter where nothing is encrypted"


def test_the_least_frequently_used_client_goes():
    pool = ClientPool(size=2)
    use(pool, 1, 1, 2, 1, 3)
    assert pool.locations() == [HERE.format(1), HERE.format(3)]
    use(pool, 3, 3, 3, 4)
    assert pool.locations() == [HERE.format(3), HERE.format(4)]


def test_what_is_in_use_is_not_closed():
    pool = ClientPool(size=1)
    with ExitStack() as stack:
        held = [stack.enter_context(pool.client(HERE.format(number), Tls())) for number in range(4)]
        assert len(pool.locations()) == 4
        assert not any(closed(one.client) for one in held)
    assert len(pool.locations()) == 1
    assert sum(closed(one.client) for one in held) == 3


def test_a_client_that_is_borrowed_while_the_pool_is_closed_is_closed_when_it_comes_back(server: PlainServer):
    pool = ClientPool()
    with pool.client(server.url, Tls()) as held:
        pool.close()
        assert not closed(held.client)
    assert closed(held.client)


def closed(client: object) -> bool:
    try:
        list(client.list_flights())
    except pa.ArrowInvalid as error:
        return "closed" in str(error)
    except pa.ArrowException:
        return False
    except NotImplementedError:
        return False
    return False


@given(st.lists(st.integers(0, 6), max_size=60), st.integers(1, 5))
def test_what_is_kept_was_used_at_least_as_often_as_what_had_to_go(numbers: list[int], size: int):
    """A model that counts: whoever goes was used no more often, in its life in the pool, than anybody who stays."""
    pool = ClientPool(size)
    uses: dict[str, int] = {}
    for number in numbers:
        use(pool, number)
        location = HERE.format(number)
        uses[location] = uses.get(location, 0) + 1
        kept = set(pool.locations())
        for gone in uses.keys() - kept:
            assert all(uses[gone] <= uses[one] for one in kept - {location})
            del uses[gone]
        assert len(kept) == min(len(uses), size)


def test_many_threads_share_a_small_pool(server: PlainServer):
    pool = ClientPool(size=1)
    urls = [server.url, server.url.replace("127.0.0.1", "localhost")]
    found: list[int] = []
    threads = [
        threading.Thread(
            target=lambda url=url: found.append(
                FlightService(url, JsonCommands(), pool=pool).read(Request("numbers")).num_rows
            )
        )
        for url in urls * 6
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [20] * 12
    assert len(pool.locations()) == 1


def test_connections_of_a_parent_are_not_for_its_children(monkeypatch: pytest.MonkeyPatch):
    pool = ClientPool()
    use(pool, 1)
    monkeypatch.setattr("odfpy.flight.pool.os.getpid", lambda: -1)
    use(pool, 2)
    assert pool.locations() == [HERE.format(2)]
