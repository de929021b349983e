"""Files found over HTTP: what datalake's API promises of time ranges, jobs, pages and the latest file."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from support.archive.served import DAY, YEAR_2010, Served, push, push_many
from support.servers.serving import ask

from odfpy.data.timestamp import Timestamp


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({}, "NoArgs"),
        ({"start": 123}, "NoWhat"),
        ({"what": "", "work_id": "job"}, "NoWhat"),
        ({"what": "syslog"}, "NoWorkInterval"),
        ({"what": "syslog", "work_id": "work123", "start": 123}, "InvalidWorkInterval"),
        ({"what": "syslog", "work_id": "work123", "end": 345}, "InvalidWorkInterval"),
        ({"what": "syslog", "start": 123}, "InvalidWorkInterval"),
        ({"what": "syslog", "end": 345}, "InvalidWorkInterval"),
        ({"what": "syslog", "start": "notaninteger", "end": 123}, "InvalidTime"),
        ({"what": "syslog", "start": 123, "end": "notaninteger"}, "InvalidTime"),
        ({"what": "syslog", "start": "nan", "end": "inf"}, "InvalidTime"),
        ({"what": "syslog", "start": 200, "end": 100}, "InvalidWorkInterval"),
        ({"what": "syslog", "start": 100, "end": 200, "cursor": "foobar"}, "InvalidCursor"),
        ({"what": "syslog", "start": 100, "end": 200, "cursor": base64.b64encode(b'{"a": 1}')}, "InvalidCursor"),
        ({"what": "syslog", "work_id": "job", "cursor": "\0ÿ"}, "InvalidCursor"),
    ],
)
def test_a_question_that_makes_no_sense(shared: Served, parameters: dict[str, Any], code: str) -> None:
    assert shared.reader.refusal("files/", parameters) == (400, code)


@pytest.mark.parametrize("lookback", ["foo", "", "1.5", "-1", "9" * 90 + "x"])
def test_a_lookback_that_is_none(shared: Served, lookback: str) -> None:
    assert shared.reader.refusal("latest/text/there", {"lookback": lookback}) == (400, "InvalidLookback")
    assert shared.reader.refusal("latest/text/there/data", {"lookback": lookback}) == (400, "InvalidLookback")


def test_a_file_fits_a_range_that_it_overlaps(shared: Served, file: Path) -> None:
    made = push_many(
        shared.archive,
        file,
        [{"what": "overlap", "start": YEAR_2010 + at, "end": YEAR_2010 + at + 9} for at in range(0, 100, 10)],
    )
    for start, end, count in ((0, 9, 1), (9, 10, 2), (10, 19, 1), (-50, -1, 0), (99, 500, 1), (100, 500, 0)):
        found = shared.reader.files(what="overlap", start=YEAR_2010 + start, end=YEAR_2010 + end)["records"]
        assert len(found) == count, (start, end)
    everything = shared.reader.files(what="overlap", start=YEAR_2010 - 1000, end=YEAR_2010 + 1000)["records"]
    assert [one["metadata"]["id"] for one in everything] == [record.id for record in made]


def test_a_range_over_several_days_finds_each_file_once(shared: Served, file: Path) -> None:
    starts = [DAY // 4, DAY * 3 // 4, DAY * 6 // 4, DAY * 9 // 4, DAY * 11 // 4]
    push_many(
        shared.archive, file, [{"what": "days", "start": YEAR_2010 + at, "end": YEAR_2010 + at + 1} for at in starts]
    )
    push(shared.archive, file, what="days", start=YEAR_2010, end=YEAR_2010 + 40 * DAY, path="/long")
    found = shared.reader.files(what="days", start=YEAR_2010 + DAY * 3 // 4, end=YEAR_2010 + DAY * 9 // 4)["records"]
    assert len(found) == 4
    assert len(shared.reader.files(what="days", start=YEAR_2010 + 30 * DAY, end=YEAR_2010 + 31 * DAY)["records"]) == 1


def test_a_file_without_an_end_is_of_one_moment(shared: Served, file: Path) -> None:
    push(shared.archive, file, what="moment", start=1461023640000)
    (found,) = shared.reader.files(what="moment", start=1461023630000, end=1461023650000)["records"]
    assert found["metadata"]["end"] is None
    assert found["metadata"]["end_iso"] is None
    assert found["metadata"]["start_iso"] == "2016-04-18T23:54:00.000Z"
    assert len(shared.reader.files(what="moment", start=1461023640000, end=1461023640000)["records"]) == 1
    assert shared.reader.files(what="moment", start=1461023640001, end=1461023640002)["records"] == []


def test_the_files_of_a_job_and_of_a_place(shared: Served, file: Path) -> None:
    push_many(
        shared.archive,
        file,
        [
            {"what": "jobs", "where": f"worker{number}", "work_id": f"job{number % 2}", "start": YEAR_2010 + number}
            for number in range(4)
        ],
    )
    reader = shared.reader

    def places(**parameters: Any) -> list[str]:
        return [one["metadata"]["where"] for one in reader.files(what="jobs", **parameters)["records"]]

    assert places(work_id="job0") == ["worker0", "worker2"]
    assert places(work_id="job0", where="worker2") == ["worker2"]
    assert places(work_id="job0", where="worker1") == []
    assert places(work_id="job") == []
    range_ = {"start": YEAR_2010, "end": YEAR_2010 + 10}
    assert places(**range_, where="worker1,worker3") == ["worker1", "worker3"]
    assert places(**range_, where=["worker1", "worker2"]) == ["worker1", "worker2"]
    assert places(start="2010-01-01", end="2010-01-01T00:00:00.001Z") == ["worker0", "worker1"]


def test_several_things_are_asked_for_at_once(shared: Served, file: Path) -> None:
    push_many(shared.archive, file, [{"what": what, "work_id": "several"} for what in ("gather", "etl", "cleanup")])
    assert len(shared.reader.files(what="gather,etl", work_id="several")["records"]) == 2
    assert len(shared.reader.files(what=["gather", "etl", "cleanup"], work_id="several")["records"]) == 3


@pytest.mark.parametrize("count", [100, 250])
def test_pages_have_each_file_once_and_the_last_one_has_no_next(shared: Served, file: Path, count: int) -> None:
    what = f"pages{count}"
    made = push_many(
        shared.archive,
        file,
        [{"what": what, "where": f"w{n}", "work_id": "all", "end": YEAR_2010} for n in range(count)],
    )
    for parameters in ({"start": YEAR_2010, "end": YEAR_2010}, {"work_id": "all"}):
        pages = shared.reader.all_files(what=what, **parameters)
        assert [len(page) for page in pages] == [min(100, count - at) for at in range(0, count, 100)]
        assert sorted(one["metadata"]["id"] for page in pages for one in page) == sorted(one.id for one in made)
    assert len(shared.reader.files(what=what, work_id="all", limit=7)["records"]) == 7


def test_a_cursor_is_good_while_others_push(shared: Served, file: Path) -> None:
    made = push_many(
        shared.archive, file, [{"what": "moving", "work_id": "one", "start": YEAR_2010 + n} for n in range(6)]
    )
    first = shared.reader.files(what="moving", work_id="one", limit=3)
    push(shared.archive, file, b"early", what="moving", work_id="one", start=YEAR_2010 - 5, path="/early")
    second = ask(first["next"], token=shared.reader.token).json
    assert [one["metadata"]["id"] for one in (*first["records"], *second["records"])] == [one.id for one in made]


def test_the_cursor_of_another_question_is_refused(shared: Served, file: Path) -> None:
    push_many(shared.archive, file, [{"what": "other", "work_id": "one", "start": YEAR_2010 + n} for n in range(3)])
    following = shared.reader.files(what="other", work_id="one", limit=1)["next"]
    cursor = following.rpartition("cursor=")[2]
    assert shared.reader.refusal("files/", {"what": "other", "work_id": "two", "cursor": cursor}) == (
        400,
        "InvalidCursor",
    )


def test_what_was_withdrawn_is_not_found_but_still_known(shared: Served, file: Path) -> None:
    record = push(shared.archive, file, what="secret", start=YEAR_2010)
    shared.archive.withdraw([record.id], who="alice", why="has passwords in it")
    assert shared.reader.files(what="secret", start=YEAR_2010, end=YEAR_2010)["records"] == []
    known = shared.reader.get(f"files/{record.id}").json
    assert (known["status"], known["who"], known["why"]) == ("withdrawn", "alice", "has passwords in it")


# --- The latest ---


def test_the_latest_file_of_the_last_days(shared: Served, file: Path) -> None:
    now = Timestamp.now().millis
    push_many(
        shared.archive,
        file,
        [
            {"what": "tower", "where": "pisa", "start": now - 20 * DAY, "content": b"old"},
            {"what": "tower", "where": "paris", "start": now - DAY, "content": b"yesterday"},
            {"what": "tower", "where": "paris", "start": now - 2 * DAY, "content": b"before"},
        ],
    )
    reader = shared.reader
    assert reader.get("latest/tower/paris").json["metadata"]["start"] == now - DAY
    assert reader.get("latest/tower/paris/data").body == b"yesterday"
    assert reader.refusal("latest/tower/pisa") == (404, "NoSuchFile")
    assert reader.refusal("latest/tower/pisa", {"lookback": 19}) == (404, "NoSuchFile")
    assert reader.get("latest/tower/pisa/data", {"lookback": 20}).body == b"old"
    assert reader.get("latest/tower/pisa", {"lookback": "9" * 40}).status == 200
    assert reader.refusal("latest/statue/newyork") == (404, "NoSuchFile")
    assert reader.refusal("latest/statue/newyork/data") == (404, "NoSuchFile")


def test_of_two_that_started_at_once_the_one_that_came_later_is_the_latest(shared: Served, file: Path) -> None:
    now = Timestamp.now().millis
    for number in range(3):
        push(shared.archive, file, what="meow", where="tree", start=now, path=f"/{number}", create_time=now + number)
    assert shared.reader.get("latest/meow/tree").json["metadata"]["path"] == "/2"


def test_what_starts_tomorrow_is_not_the_latest(shared: Served, file: Path) -> None:
    push(shared.archive, file, what="future", where="tree", start=Timestamp.now().millis + 25 * 3600 * 1000)
    assert shared.reader.refusal("latest/future/tree") == (404, "NoSuchFile")
