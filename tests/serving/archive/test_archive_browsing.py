"""Archives as people look for files: names, days, pages, a file with its history, hashes and content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from support.archive.browsed import Looked, looked_at
from support.servers.serving import ask

from odfpy.serving.archive import details
from odfpy.serving.archive.tallies import Tally, _since


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looked]:
    yield from looked_at(tmp_path_factory.mktemp("looked"))


# --- Names, days, pages ---


def test_names_come_level_by_level(looked: Looked) -> None:
    assert {one["name"]: one["numFiles"] for one in looked.get("files/names")} == {
        "image": 3,
        "log": 12,
        "measurement": 7,
    }
    (plain,) = looked.get("files/names", what="log", search="9")
    assert plain == {
        "name": "web9",
        "numFiles": 1,
        "first": "2024-02-29T10:00:00.000Z",
        "last": "2024-03-01T02:00:00.000Z",
    }
    both = looked.get("files/names", what="image,measurement")
    assert [(one["name"], one["numFiles"]) for one in both] == [("camera-1", 1), ("web2", 9)]
    answer = looked.ask("files/names", limit=1, offset=1)
    assert [one["name"] for one in answer.json] == ["log"]
    assert answer.headers["x-total-count"] == "3"
    assert looked.get("files/names", what="nothing") == []


def test_days_count_the_files_that_begin_on_them(looked: Looked) -> None:
    assert looked.get("files/days") == [{"day": "2024-02-29", "numFiles": 1}, {"day": "2024-03-05", "numFiles": 21}]
    assert looked.get("files/days", what="image", where="camera-1") == [{"day": "2024-03-05", "numFiles": 1}]
    assert looked.get("files/days", where="web9") == [{"day": "2024-02-29", "numFiles": 1}]
    assert looked.get("files/days", what="nothing") == []


def test_files_come_page_by_page(looked: Looked) -> None:
    found, cursor = [], {}
    while True:
        page = looked.get("files", limit=10, **cursor)
        found += [one["id"] for one in page["files"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    shown = {record.id for name, record in looked.records.items() if name not in ("secret.txt", "removed.txt")}
    assert len(found) == len(shown)
    assert set(found) == shown


def test_files_are_found_by_time_place_and_job(looked: Looked) -> None:
    def names(**asked: Any) -> list[str]:
        return [one["path"] for one in looked.get("files", **asked)["files"]]

    assert names(start="2024-03-01", end="2024-03-01T23:59:59.999Z") == ["/var/log/plain.log"], "it goes on then"
    assert names(end="2024-03-01") == ["/var/log/plain.log"]
    assert names(what="image", where="camera-1") == ["/var/log/picture.png"]
    assert sorted(names(work_id="job-1")) == ["/var/log/long.log", "/var/log/packed.log.gz"]
    assert names(what="nothing") == []


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"start": "yesterday-ish"}, "yesterday-ish"),
        ({"start": "2024-03-02", "end": "2024-03-01"}, "ends before it starts"),
        ({"work_id": "a", "start": "2024-01-01"}, "cannot be combined"),
        ({"cursor": "nonsense"}, "Not a cursor"),
    ],
)
def test_what_makes_no_sense_is_told(looked: Looked, asked: dict[str, str], message: str) -> None:
    answer = looked.ask("files", **asked)
    assert answer.status == 400
    assert message in answer.json["message"]
    assert answer.json["code"].startswith("E")


def test_what_the_client_has_is_not_sent_again(looked: Looked) -> None:
    for call in ("files/names", "files/days", "files/summary"):
        tag = looked.ask(call).headers["etag"]
        assert ask(f"{looked.base}/logs/{call}", token=looked.token, If_None_Match=tag).status == 304


def test_a_summary_counts_up_to_the_head_that_it_is_of_and_not_what_comes_meanwhile(looked: Looked) -> None:
    """It would be counted again with what comes next."""
    dataset = looked.archive.workspace.storage.get("logs")
    heads = [block.hash for block in dataset.chain.iter_blocks()]
    whole, _ = _since(dataset, heads[0], None)
    for head in heads:
        before, _ = _since(dataset, head, None)
        after, tally = _since(dataset, heads[0], (head, Tally(count=7)))
        assert [*before, *after] == whole
        assert tally == Tally(count=7)


def test_the_summary_counts_what_is_kept_also_after_changes(looked: Looked) -> None:
    kept = [record for name, record in looked.records.items() if name not in ("secret.txt", "removed.txt")]
    found = looked.get("files/summary")
    assert (found["numFiles"], found["size"]) == (len(kept), sum(record.size for record in kept))
    assert (found["numNames"], found["first"]) == (3, "2024-02-29T10:00:00.000Z")
    assert ask(f"{looked.base}/empty/files/summary", token=looked.token).json["numFiles"] == 0
    assert ask(f"{looked.base}/empty/files", token=looked.token).json == {"files": [], "next": None}
    assert ask(f"{looked.base}/empty/files/days", token=looked.token).json == []


# --- One file ---


def test_a_file_tells_its_history_and_who_has_signed_it(looked: Looked) -> None:
    found = looked.get(looked.of("plain.log"))
    assert (found["place"], found["file"]["where"], found["file"]["who"]) == ("here", "web9", "ann")
    first, then = found["history"]
    assert (first["who"], first["changes"], first["signedBy"][-1]) == (None, [], "owner")
    assert then["changes"] == [{"field": "where", "old": "web1", "new": "web9"}]
    assert then["sequenceNumber"] > first["sequenceNumber"]
    assert found["head"]["sequenceNumber"] >= then["sequenceNumber"]
    block = looked.archive.dataset.chain.head()
    assert found["head"]["block"] == str(block)
    rows = ask(f"{looked.base}/logs/log?limit=20", token=looked.token).json
    assert first["block"] in [one["blockHash"] for one in rows]


def test_a_withdrawn_file_says_by_whom_and_why(looked: Looked) -> None:
    found = looked.get(looked.of("secret.txt"))
    assert (found["place"], found["file"]["status"]) == ("here", "withdrawn")
    assert [one["status"] for one in found["history"]] == ["kept", "withdrawn", "withdrawn"]
    assert found["history"][1]["why"] == "has passwords in it"


@pytest.mark.parametrize("call", ["content", "preview", "picture", "data"])
def test_the_bytes_of_a_withdrawn_file_are_not_given(looked: Looked, call: str) -> None:
    place = (
        f"v0/archive/files/{looked.records['secret.txt'].id}/data" if call == "data" else looked.of("secret.txt", call)
    )
    answer = looked.ask(place)
    assert answer.status == 404
    assert answer.json["message"].startswith("/")
    assert "was withdrawn by bob: has passwords in it" in answer.json["message"]
    assert b"password\n" not in answer.body


def test_a_file_says_where_its_bytes_are(looked: Looked) -> None:
    assert looked.get(looked.of("lost.txt"))["place"] == "elsewhere"
    assert looked.get(looked.of("removed.txt"))["place"] == "removed"
    for name, code in (("lost.txt", "E843"), ("removed.txt", "E842")):
        for call in ("check", "content", "preview", "picture"):
            answer = looked.ask(looked.of(name, call))
            assert (answer.status, answer.json["code"]) == (404, code), call


def test_the_bytes_are_hashed_and_compared(looked: Looked) -> None:
    record = looked.records["table.csv"]
    found = looked.get(looked.of("table.csv", "check"))
    assert found == {"ok": True, "size": record.size, "object": str(record.object), "hash": record.hash}
    wrong = looked.get(looked.of("changed.txt", "check"))
    assert wrong["ok"] is False
    assert wrong["object"] != str(looked.records["changed.txt"].object)


def test_a_file_that_would_take_long_is_not_hashed(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(details, "MAX_CHECKED", 10)
    answer = looked.ask(looked.of("table.csv", "check"))
    assert answer.status == 400
    assert "odf archive fetch" in answer.json["message"]


def test_content_is_a_download_of_the_very_bytes(looked: Looked) -> None:
    answer = looked.ask(looked.of("packed.log.gz", "content"))
    assert hashlib.blake2b(answer.body, digest_size=16).hexdigest() == looked.records["packed.log.gz"].hash
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "content-encoding" not in answer.headers
    page = looked.ask(looked.of("page.html", "content")).headers
    assert page["content-disposition"].startswith("attachment; filename*=UTF-8''")
    assert page["x-content-type-options"] == "nosniff"
    assert "sandbox" in page["content-security-policy"]


@pytest.mark.parametrize("call", ["", "/check", "/content", "/preview", "/picture"])
def test_what_is_not_there_is_404(looked: Looked, call: str) -> None:
    for name in ("nothing", "%2e%2e", "a" * 300, "%00", "é"):
        answer = looked.ask(f"file/{name}{call}" if name.isascii() else f"file/%C3%A9{call}")
        assert answer.status in (404, 422), (name, answer.body)


@pytest.mark.parametrize(
    "call", ["files", "files/names", "files/days", "files/summary", "FILE", "FILE/preview", "FILE/content"]
)
def test_without_a_right_there_is_nothing(looked: Looked, call: str) -> None:
    path = call.replace("FILE", looked.of("plain.log"))
    assert looked.ask(path, token=None).status == 401
    assert looked.ask(path, token="odf_nonsense").status == 401


def test_other_datasets_have_no_files(looked: Looked) -> None:
    assert ask(f"{looked.base}/nothing/files", token=looked.token).status == 404
    answer = ask(f"{looked.base}/logs", token=looked.token)
    assert answer.json["isArchive"] is True
