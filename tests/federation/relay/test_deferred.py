"""Results that are fetched later: made by relays while nobody waits, found again by an id, whole or not there."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.federation.served import NA, ServedWeb, linked_web, served_web
from support.servers.buckets import s3_buckets
from support.servers.serving import wait_until

from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError, UsageError
from odfpy.federation.authority import Issued
from odfpy.federation.execution.deferred import DeferredQueries, DeferredQuery
from odfpy.federation.execution.options import QueryOptions
from odfpy.federation.execution.plan import planned
from odfpy.federation.relay.errors import IncompleteAnswer, RelayRefused, ResultNotReady
from odfpy.federation.sources.files import FilesSource
from odfpy.federation.store.results import ResultState

QUERY = "SELECT flag, count(*) AS n, sum(price) AS s FROM item GROUP BY flag ORDER BY flag"
SEEN = [{"flag": "N", "n": 4, "s": 32.75}, {"flag": "R", "n": 2, "s": 29.5}]
ASKED = QueryOptions(require_complete=True)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    with linked_web(tmp_path_factory.mktemp("web")) as made:
        yield made


@pytest.fixture(scope="module")
def ann(web: ServedWeb) -> Issued:
    return web.known_user("ann")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def finished(later: DeferredQueries, query: str) -> DeferredQuery:
    wait_until(lambda: later.find(query).state != "running")
    return later.find(query)


def test_a_query_is_asked_by_one_and_fetched_by_another_connection(web: ServedWeb, ann: Issued, tmp_path: Path) -> None:
    begun = web.asks(ann, "na").later.start(QUERY, ASKED)
    later = web.asks(ann, "na").later
    assert begun.query in [one.query for one in later.all()]
    found = finished(later, begun.query)
    assert [(one.relay, one.state, one.rows) for one in found.parts] == [("na", "done", 2), ("global", "done", 2)]
    with later.fetch(begun.query, ASKED, folder=tmp_path / "kept") as answer:
        assert answer.to_arrow().to_pylist() == SEEN
        assert answer.relays == ("na", "global")
    kept = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert sorted(path.name for path in kept) == sorted(str(file.hash) for one in found.parts for file in one.files)


def test_files_that_have_come_are_not_fetched_again_and_damaged_ones_never_count(
    web: ServedWeb, ann: Issued, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = web.asks(ann, "na")
    query = asking.later.start(QUERY, ASKED).query
    fetched: list[str] = []
    original = asking.asker.result_file

    def counted(location: str, result: str, number: int, seconds: float) -> object:
        fetched.append(result)
        return original(location, result, number, seconds)

    monkeypatch.setattr(asking.asker, "result_file", counted)
    with asking.later.fetch(query, ASKED, folder=tmp_path) as answer:
        answer.to_arrow()
    assert len(fetched) == 2
    next(path for path in tmp_path.rglob("*") if path.is_file()).unlink()
    with asking.later.fetch(query, ASKED, folder=tmp_path) as answer:
        assert answer.to_arrow().to_pylist() == SEEN
    assert len(fetched) == 3


def test_results_are_their_owners_only(web: ServedWeb, ann: Issued) -> None:
    begun = web.asks(ann, "na").later.start(QUERY, ASKED)
    finished(web.asks(ann, "na").later, begun.query)
    mallory = web.asks(web.user("mallory"), "na")
    assert mallory.later.all() == []
    with pytest.raises(RelayRefused, match="remembers no query"):
        mallory.later.find(begun.query)
    part = begun.parts[0]
    with pytest.raises(RelayRefused, match="no such result"):
        mallory.asker.result(part.location, part.result)
    with (
        pytest.raises(RelayRefused, match="no such result"),
        mallory.asker.result_file(part.location, part.result, 0, 5) as rows,
    ):
        list(rows)


def test_a_grant_that_changes_takes_the_result_back(web: ServedWeb) -> None:
    dora = web.user("dora")
    web.grant("na", dora, "dora", "id = 2")
    later = web.asks(dora, "na").later
    query = later.start("SELECT id FROM item").query
    assert finished(later, query).state == "done"
    web.grant("na", dora, "dora", "id = 3")
    with pytest.raises(RelayRefused, match="have changed since"):
        later.fetch(query)


def test_what_fails_is_told_and_missing(tmp_path: Path) -> None:
    with served_web(tmp_path) as made:
        relay = made.relay("broken", "price", "1,no number,N\n")
        (relay.workspace.root / "web" / "items.csv").unlink()
        later = made.asks(made.user("ann"), "broken").later
        query = later.start("SELECT id FROM item").query
        found = finished(later, query)
        assert found.state == "failed"
        assert "cannot be read" in (found.parts[0].why or "")
        with later.fetch(query) as answer:
            assert [one.relay for one in answer.missing] == ["broken"]
        with pytest.raises(IncompleteAnswer):
            later.fetch(query, ASKED)
        assert not list((relay.workspace.odf / "relay").rglob("*.parquet"))


class Held:
    """Holds up all reads of files until it is told otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()
        original = FilesSource._stream

        def stream(source: FilesSource, sql: str, wanted: object, limits: object, control: object) -> object:
            while wanted is not None and not self.go_on.wait(0.01):
                control.check()
            return original(source, sql, wanted, limits, control)

        monkeypatch.setattr(FilesSource, "_stream", stream)


def test_a_query_that_is_not_ready_says_so_and_can_be_cancelled(
    web: ServedWeb, ann: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    Held(monkeypatch)
    later = web.asks(ann, "na").later
    query = later.start(QUERY, ASKED).query
    with pytest.raises(ResultNotReady, match="0 of 2"):
        later.fetch(query, QueryOptions(seconds=0.5))
    assert {one.state for one in later.cancel(query).parts} == {"cancelled"}
    for relay in web.relays.values():
        assert not list((relay.workspace.odf / "relay" / "work").iterdir())


def test_a_relay_that_begins_again_goes_on_with_what_was_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    with served_web(tmp_path) as made:
        relay = made.relay("alone", "price", NA)
        issued = made.user("ann")
        query = made.asks(issued, "alone").later.start("SELECT id FROM item ORDER BY id").query
        wait_until(lambda: relay.store.results.unfinished()[0].state is ResultState.RUNNING)
        relay.restart()
        held.go_on.set()
        with made.asks(issued, "alone").later.fetch(query, ASKED) as answer:
            assert answer.to_arrow()["id"].to_pylist() == [1, 3]


def test_results_go_when_their_time_is_over(tmp_path: Path) -> None:
    with served_web(tmp_path) as made:
        relay = made.relay("alone", "price", NA, configured={"relay.resultLifetime": "1"})
        later = made.asks(made.user("ann"), "alone").later
        query = later.start("SELECT id FROM item").query
        folder = relay.workspace.odf / "relay" / "results"
        wait_until(lambda: list(folder.glob("*/*")))
        wait_until(lambda: [one.state.is_final for one in relay.store.results.old()] == [True, True])  # part and query
        left = relay.workspace.odf / "relay" / "work" / "result-of-a-killed-server"
        left.mkdir()
        os.utime(left, (0, 0))
        relay.server._results._maker.clean()
        assert list(folder.iterdir()) == []
        assert not left.exists()
        with pytest.raises(RelayRefused, match="remembers no query"):
            later.find(query)


def test_results_are_kept_in_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_buckets() as address, served_web(tmp_path) as made:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        relay = made.relay("alone", "price", NA, configured={"relay.results": f"s3+http://{address}/data/results"})
        later = made.asks(made.user("ann"), "alone").later
        query = later.start("SELECT id, price FROM item ORDER BY id").query
        with later.fetch(query, ASKED) as answer:
            assert answer.to_arrow()["id"].to_pylist() == [1, 3]
        assert not (relay.workspace.odf / "relay" / "results").exists()


@pytest.mark.parametrize("query", ["../x", "", "g" * 32, "5f"])
def test_what_is_no_id_is_refused(web: ServedWeb, ann: Issued, query: str) -> None:
    with pytest.raises((UsageError, OdfError)):
        web.asks(ann, "na").later.fetch(query)


def test_a_record_that_names_another_place_is_refused(web: ServedWeb, ann: Issued) -> None:
    asking = web.asks(ann, "na")
    plan = planned("SELECT id FROM item", asking.entities())
    part = ["f1", "na", "http://internal:80", "00", "done", None]
    asking.asker.keep_query(plan.query, {"plan": plan.to_json(), "missing": [], "parts": [part]})
    with pytest.raises(OdfError, match="another form"):
        asking.later.find(plan.query)


def test_a_relay_that_remembers_another_query_is_not_believed(web: ServedWeb, ann: Issued) -> None:
    asking = web.asks(ann, "na")
    plan, other = (planned(f"SELECT id FROM item WHERE id < {number}", asking.entities()) for number in (5, 6))
    asking.asker.keep_query(plan.query, {"plan": other.to_json(), "missing": [], "parts": []})
    with pytest.raises(OdfError, match="remembers another query under that id"):
        asking.later.find(plan.query)


def test_the_results_of_one_user_have_a_bound(tmp_path: Path) -> None:
    with served_web(tmp_path) as made:
        relay = made.relay("alone", "price", NA, configured={"relay.maxResult": "100"})
        later = made.asks(made.user("ann"), "alone").later
        assert finished(later, later.start("SELECT id FROM item").query).state == "done"
        [part] = later.start("SELECT id FROM item").parts
        assert (part.state, "results of you already" in (part.why or "")) == ("failed", True)
        [kept] = [
            one for one in relay.store.results.old(Timestamp.parse("2200-01-01T00:00:00Z")) if "ticket" in one.detail
        ]
        maker = relay.server._results._maker
        again = maker.start(kept.detail["ticket"], maker._reader.tickets.reopen(kept.detail["ticket"]))
        assert again.id == kept.id, "a ticket that is shown again is not a result more"
        other = made.asks(made.user("bob"), "alone").later
        assert finished(other, other.start("SELECT id FROM item").query).state == "done"
