"""Shared tables of datasets whose histories are written anew: what those who follow their changes are told."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from serving.sharing.conftest import Shared, ingested, sharing_rates
from serving.sharing.test_delta_sharing import LOG, RATES, state_of, table_of
from support.servers.serving import wait_until

from odfpy.chain.events import SetInfo
from odfpy.coordinator.maintenance.compact import CompactOptions
from odfpy.data.timestamp import Timestamp
from odfpy.sharing.audit import accesses
from odfpy.sharing.tables.numbering import HISTORY_STEP

CALLS = [("query", "version"), ("query", "startingVersion"), ("proof", "version")]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Shared]:
    """The dataset of three versions, with all of them served."""
    with sharing_rates(tmp_path) as found:
        for who in ("all", "eur"):
            for table in (RATES, LOG):
                assert latest(found, table, who) == (3 if who == "all" else 2)
        yield found


def latest(shared: Shared, table: str = RATES, who: str = "all") -> int:
    return int(shared.ask(f"{table}/version", who).headers["delta-table-version"])


def grown(shared: Shared, folder: Path, count: int, first: int = 6) -> None:
    for n in range(first, first + count):
        ingested(shared.workspace, folder, [("EUR", n / 2, n)])


def compacted(shared: Shared) -> None:
    assert shared.workspace.maintenance.compact("rates").changes


def followed(shared: Shared, table: str, start: int, who: str = "all") -> list[tuple[int, str, int, str | None]]:
    """The rows of a change feed: version, currency, number, what has become of it."""
    found = []
    for line in shared.lines(f"{table}/changes?startingVersion={start}", who)[2:]:
        (action,) = line.values()
        rows = pq.read_table(io.BytesIO(shared.ask(action["url"], None).body)).to_pylist()
        found += [(action["version"], row["cur"], row["n"], row.get("_change_type")) for row in rows]
    return found


def refused(shared: Shared, table: str, number: int, who: str = "all") -> None:
    """Check that nothing is said of a version, by any call, but that one has to begin again."""
    answers = [shared.ask(f"{table}/{call}", who, {name: number}) for call, name in CALLS]
    answers += [
        shared.ask(f"{table}/changes?startingVersion={number}", who),
        shared.ask(f"{table}/metadata?version={number}", who),
    ]
    for answer in answers:
        assert (answer.status, answer.json["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")
        assert "its history was rewritten" in answer.json["message"]
        assert f"version {latest(shared, table, who) + 1} on" in answer.json["message"]


@pytest.mark.parametrize("who", ["all", "eur"])
@pytest.mark.parametrize("table", [RATES, LOG])
def test_followers_of_a_compacted_table_have_to_begin_again(
    served: Shared, tmp_path: Path, table: str, who: str
) -> None:
    last = latest(served, table, who)
    rows = sorted(table_of(served, served.lines(f"{table}/query", who, {}), who).to_pylist(), key=str)
    compacted(served)
    assert latest(served, table, who) == HISTORY_STEP + 1
    again = table_of(served, served.lines(f"{table}/query", who, {}), who).to_pylist()
    assert sorted(again, key=str) == rows
    for number in range(last + 2):
        refused(served, table, number, who)
    grown(served, tmp_path, 4)
    for number in range(last + 6):
        refused(served, table, number, who)
    assert latest(served, table, who) == HISTORY_STEP + 5
    news = followed(served, table, HISTORY_STEP + 2, who)
    assert sorted({number for number, *_ in news}) == [HISTORY_STEP + more for more in (2, 3, 4, 5)]
    corrected = {3}  # a changelog has the row that is corrected, too
    assert {n for _, _, n, change in news if change != "update_preimage"} - corrected == {6, 7, 8, 9}
    everything = followed(served, table, HISTORY_STEP, who)
    assert everything[-len(news) :] == news
    assert {number for number, *_ in everything[: -len(news)]} == {HISTORY_STEP + 1}
    empty = served.lines(f"{table}/query", who, {"version": HISTORY_STEP})
    assert len(empty) == 2


def test_a_reset_takes_versions_away_and_other_commits_give_others(served: Shared, tmp_path: Path) -> None:
    grown(served, tmp_path, 2)
    assert latest(served) == 5
    head = served.workspace.storage.get("rates").chain.head()
    served.workspace.maintenance.reset("rates", str(at(served, 2)))
    assert latest(served) == 2
    state = state_of(table_of(served, served.lines(f"{RATES}/query", body={"version": 2})))
    assert state == {"EUR": (1.75, 3), "USD": (2.5, 2), "GBP": (0.5, 4)}
    answer = served.ask(f"{RATES}/changes?startingVersion=6")
    assert (answer.status, "anew" in answer.json["message"]) == (400, False)
    served.workspace.maintenance.reset("rates", str(head))
    assert latest(served) == 5
    served.workspace.maintenance.reset("rates", str(at(served, 2)))
    grown(served, tmp_path, 4, 11)
    assert latest(served) == HISTORY_STEP + 6
    for number in range(8):
        refused(served, RATES, number)


def at(shared: Shared, version: int) -> str:
    """The block of a version."""
    return str(shared.ask(f"{RATES}/query", body={"version": version}).headers["x-odf-block-hash"])


def test_a_history_without_rows(served: Shared, tmp_path: Path) -> None:
    chain = served.workspace.storage.get("rates").layout.chain
    chain.commit(chain.prepare(chain.state(), [SetInfo("What is said after the rows")], Timestamp.now()))
    served.workspace.maintenance.compact("rates", CompactOptions(keep_metadata_only=True))
    for who in ("all", "eur"):
        assert latest(served, RATES, who) == HISTORY_STEP
        assert len(served.lines(f"{RATES}/query", who, {})) == 2
        assert followed(served, RATES, HISTORY_STEP, who) == []
        assert len(served.lines(f"{LOG}/query", who, {"startingVersion": HISTORY_STEP})) == 2
        refused(served, RATES, 1, who)
    grown(served, tmp_path, 1)
    for who in ("all", "eur"):
        assert followed(served, RATES, HISTORY_STEP + 1, who) == [(HISTORY_STEP + 1, "EUR", 6, "insert")]


def test_files_added_and_removed_since_the_beginning(served: Shared, tmp_path: Path) -> None:
    compacted(served)
    grown(served, tmp_path, 1)
    for who in ("all", "eur"):
        lines = served.lines(f"{LOG}/query", who, {"startingVersion": HISTORY_STEP})[2:]
        assert [line["add"]["version"] for line in lines] == [HISTORY_STEP + 1, HISTORY_STEP + 2]
        state = served.lines(f"{RATES}/query", who, {"startingVersion": HISTORY_STEP})[2:]
        assert {action["version"] for line in state for action in line.values()} == {HISTORY_STEP + 1, HISTORY_STEP + 2}


def test_times_find_the_versions_of_now(served: Shared) -> None:
    times = {line["add"]["timestamp"] for line in served.lines(f"{LOG}/changes?startingVersion=1")[2:]}
    compacted(served)
    (line,) = served.lines(f"{LOG}/changes?startingVersion={HISTORY_STEP}")[2:]
    assert line["add"]["timestamp"] == max(times)
    assert followed(served, LOG, HISTORY_STEP) != []
    for who in ("all", "eur"):
        answer = served.ask(f"{LOG}/version?startingTimestamp=2020-01-01T00:00:00Z", who)
        assert answer.headers["delta-table-version"] == str(HISTORY_STEP)
        answer = served.ask(f"{LOG}/query", who, {"timestamp": "2999-01-01T00:00:00Z"})
        assert answer.headers["delta-table-version"] == str(HISTORY_STEP + 1)


def test_tokens_of_pages_and_refreshes_end_with_the_history(served: Shared, tmp_path: Path) -> None:
    more = {"delta_sharing_capabilities": "responseformat=parquet;includeendstreamaction=true"}
    first = served.lines(f"{LOG}/query", body={"maxFiles": 1, "includeRefreshToken": True}, **more)
    end = first[-1]["endStreamAction"]
    feed = f"{LOG}/changes?startingVersion=1&maxFiles=1"
    page = served.lines(feed, **more)[-1]["endStreamAction"]["nextPageToken"]
    compacted(served)
    grown(served, tmp_path, 4)
    tries: list[tuple[str, Any]] = [
        (f"{LOG}/query", {"maxFiles": 1, "pageToken": end["nextPageToken"]}),
        (f"{LOG}/query", {"refreshToken": end["refreshToken"]}),
        (f"{feed}&pageToken={page}", None),
    ]
    for path, body in tries:
        answer = served.ask(path, body=body, **more)
        assert answer.status == 400
        assert "its history was rewritten" in answer.json["message"]


def test_the_audit_log_and_proofs_tell_both_apart(served: Shared) -> None:
    old = served.ask(f"{RATES}/proof", body={"version": 3}).json["input"]
    compacted(served)
    new = served.ask(f"{RATES}/proof", body={}).json["input"]
    assert (old["version"], new["version"]) == (3, HISTORY_STEP + 1)
    assert old["dataset"]["blockHash"] != new["dataset"]["blockHash"]

    def recorded() -> list[dict[str, Any]]:
        served.app.state.sharing.audit.bring_in()
        return list(accesses(served.workspace, num=100, condition="action = 'proof'"))

    wait_until(lambda: len(recorded()) == 2)  # a record is made when the answer has gone, perhaps after it is read here
    said = [(row["version"], row["block"]) for row in recorded()]
    assert said == [(one["version"], one["dataset"]["blockHash"]) for one in (new, old)]
