"""Previews of files that strangers have uploaded: shown as data, bounded, and never run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.archive.browsed import HTML, SVG, Looked, looked_at

from odfpy.serving.archive import previewing


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looked]:
    yield from looked_at(tmp_path_factory.mktemp("looked"))


def preview(looked: Looked, name: str) -> Any:
    return looked.get(looked.of(name, "preview"))


def test_text_is_text_whatever_is_in_it(looked: Looked) -> None:
    assert preview(looked, "plain.log") == {
        "kind": "text", "text": "one\ntwo\n", "columns": None, "rows": None, "numColumns": None, "isWhole": True,
        "packing": None, "problem": None,
    }  # fmt: skip
    page = looked.ask(looked.of("page.html", "preview"))
    assert page.headers["content-type"] == "application/json"
    assert page.json["text"].endswith(f"<h1>{HTML}</h1>")
    assert preview(looked, "odd.txt")["text"] == "שלום עולם\n\x1b[31mred\x07\n"


def test_a_long_text_is_cut(looked: Looked) -> None:
    found = preview(looked, "long.log")
    assert found["isWhole"] is False
    assert len(found["text"]) == previewing.MAX_TEXT


def test_what_is_packed_is_unpacked_up_to_a_limit(looked: Looked) -> None:
    assert preview(looked, "packed.log.gz")["text"] == "unpacked\n" * 3
    assert preview(looked, "packed.log.gz")["packing"] == "gzip"
    assert preview(looked, "text-bomb.txt.gz")["text"] == "x" * previewing.MAX_TEXT
    found = preview(looked, "bomb.log.gz")
    assert (found["kind"], found["isWhole"]) == ("bytes", False)
    assert found["text"].startswith("00000000  00 00")


def test_csv_is_a_table_of_texts(looked: Looked) -> None:
    found = preview(looked, "table.csv")
    assert (found["kind"], found["columns"], found["isWhole"]) == ("table", ["day", HTML, "=cmd()"], False)
    assert found["rows"] == [["2024-03-01", "a, b", "1"]] * 100
    assert preview(looked, "no-table.csv")["kind"] == "text"


def test_parquet_is_a_table_of_values(looked: Looked) -> None:
    found = preview(looked, "table.parquet")
    assert (found["kind"], found["columns"]) == ("table", ["id", "when", 'na"me', "tags"])
    assert (len(found["rows"]), found["isWhole"]) == (100, False)
    assert found["rows"][7] == [7, "2023-11-14T22:13:20.007Z", "<b>7</b>", '["a", "b"]']
    wide = preview(looked, "wide.parquet")
    assert (len(wide["columns"]), wide["numColumns"], wide["isWhole"]) == (60, 1000, True)
    assert preview(looked, "empty.parquet")["columns"] == []


@pytest.mark.parametrize("name", ["no.parquet", "damaged.parquet"])
def test_parquet_that_is_none_says_so_and_names_no_folder(looked: Looked, name: str) -> None:
    found = preview(looked, name)
    assert found["kind"] == "none"
    assert "Parquet" in found["problem"]
    assert "/" not in found["problem"]


def test_parquet_whose_rows_are_too_large_says_so(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previewing, "_MAX_ROW_BYTES", 100)
    assert "too large" in preview(looked, "table.parquet")["problem"]


def test_parquet_that_takes_long_is_stopped(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previewing, "_MAX_SECONDS", 0.0)
    assert preview(looked, "table.parquet")["problem"] == "It took too long to read"


def test_other_files_show_their_bytes(looked: Looked) -> None:
    found = preview(looked, "bytes.bin")
    assert (
        found["text"].splitlines()[4] == "00000040  40 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f  @ABCDEFGHIJKLMNO"
    )
    assert preview(looked, "empty.txt")["kind"] == "empty"


def test_bytes_that_are_not_those_of_the_record_are_not_shown(looked: Looked) -> None:
    answer = looked.ask(looked.of("changed.txt", "preview"))
    assert (answer.status, answer.json["code"]) == (404, "E845")


# --- Pictures ---


def test_a_picture_comes_as_one_that_cannot_do_anything(looked: Looked) -> None:
    for name, media_type in (("picture.png", "image/png"), ("drawing.svg", "image/svg+xml")):
        answer = looked.ask(looked.of(name, "picture"))
        assert (answer.status, answer.headers["content-type"]) == (200, media_type)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert policy.endswith("sandbox"), "nothing is allowed to it"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert preview(looked, "picture.png")["kind"] == "picture"
    assert preview(looked, "drawing.svg") | {"text": None} == preview(looked, "picture.png") | {"kind": "drawing"}
    assert preview(looked, "drawing.svg")["text"] == SVG


@pytest.mark.parametrize("name", ["page.html", "plain.log", "table.parquet", "packed.log.gz", "empty.txt", "bytes.bin"])
def test_nothing_else_comes_as_a_picture(looked: Looked, name: str) -> None:
    assert looked.ask(looked.of(name, "picture")).status == 404


def test_a_small_file_that_is_a_huge_picture_is_not_shown(looked: Looked) -> None:
    answer = looked.ask(looked.of("huge.png", "picture"))
    assert answer.status == 404
    assert "50000000 pixels" in answer.json["message"]
    assert preview(looked, "huge.png")["kind"] == "none"


def test_a_large_picture_is_not_shown(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previewing, "MAX_PICTURE", 100)
    monkeypatch.setattr(previewing, "MAX_DRAWING", 100)
    for name in ("picture.png", "drawing.svg"):
        assert "more than 100 bytes" in looked.ask(looked.of(name, "picture")).json["message"]
