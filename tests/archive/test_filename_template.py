"""Names for fetched files: below the folder, whatever the template and the record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from odfpy.archive.naming.filename_template import FIELDS, CannotName, FilenameTemplate
from odfpy.archive.record import FileRecord
from odfpy.data.multihash import BLAKE3, Multihash

RECORD = FileRecord(
    id="6309e115",
    what="syslog",
    where="web-1",
    start=1702944622123,
    end=1702944634456,
    path="/var/log/syslog.1",
    hash="00" * 16,
    object=Multihash.of(b"", BLAKE3),
    size=0,
    create_time=0,
)


def named(template: str, **fields: Any) -> str:
    return FilenameTemplate(template).name_of(replace(RECORD, **fields))


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{id}", "6309e115"),
        ("{where}/{what}/{start}-{id}-foo.log", "web-1/syslog/1702944622123-6309e115-foo.log"),
        ("{start_iso}-{end_iso}.log", "2023-12-19T00:10:22.123-2023-12-19T00:10:34.456.log"),
        ("{where}-{name}", "web-1-syslog.1"),
        ("{where}/{path}", "web-1/var/log/syslog.1"),
        ("{work_id}-{version}", "None-0"),
        ("./a//{id}", "a/6309e115"),
        ("{what:>8}", "  syslog"),
        ("{{{id}}}", "{6309e115}"),
    ],
)
def test_a_template_names_a_file(template: str, name: str) -> None:
    assert named(template) == name


def test_without_a_template_the_name_is_the_id() -> None:
    assert FilenameTemplate().name_of(RECORD) == RECORD.id


def test_a_file_of_one_moment_has_no_end() -> None:
    assert named("{end_iso}", end=None) == "None"


@pytest.mark.parametrize(
    ("path", "name", "place"),
    [
        (r"C:\logs\web\a.log", "a.log", "C/logs/web/a.log"),
        ("/with\\backslash", "with\\backslash", "with\\backslash"),
        ("//double//slash", "slash", "double/slash"),
    ],
)
def test_paths_of_both_worlds_have_names_and_folders(path: str, name: str, place: str) -> None:
    assert named("{name}", path=path) == name
    assert named("{path}", path=path) == place


@pytest.mark.parametrize("template", ["{nosuchfield}", "{size}", "{Id}"])
def test_an_unknown_field_is_told_with_those_that_there_are(template: str) -> None:
    with pytest.raises(CannotName) as caught:
        FilenameTemplate(template)
    assert caught.value.hint is not None
    assert "Did you mean" in caught.value.hint or all(field in caught.value.hint for field in FIELDS)


@pytest.mark.parametrize(
    "template",
    [
        *(
            "/etc/{id}",
            "../{id}",
            "a/../../{id}",
            "{id}/..",
            "..",
            ".",
            "",
            "/",
            "a/",
            "{id}/",
            "a\0b",
            "a\nb",
            "a\x7f",
        ),
        *(
            "{id.__class__}",
            "{id[0]}",
            "{id!r}",
            "{bad",
            "bad}",
            "{}",
            "{id:>1000000000}",
            "x" * 256,
            "a/" * 2100 + "b",
        ),
        *("\ud800", "{id}\x85"),
    ],
)
def test_a_template_that_leads_elsewhere_is_refused_before_there_is_a_record(template: str) -> None:
    with pytest.raises(CannotName):
        FilenameTemplate(template)


@pytest.mark.parametrize(
    ("template", "fields"),
    [
        ("{path}", {"path": "/../../etc/passwd"}),
        ("{where}/{path}", {"path": "/a/../../../etc/passwd"}),
        ("{path}", {"path": r"C:\..\..\x"}),
        ("{path}", {"path": "/"}),
        ("{name}", {"path": "/a/.."}),
        ("{name}", {"path": "/a/"}),
        ("{name}", {"path": "/a\nb"}),
        ("{name}", {"path": "/" + "n" * 256}),
        ("{name}", {"path": "/" + "ü" * 128}),
        ("{path}", {"path": "/a" * 2500}),
        ("{name}", {"path": "/\udcff"}),
        ("{id}", {"id": ".."}),
        ("{id}", {"id": "../x"}),
        ("x{id}", {"id": "/x"}),
        ("{what}", {"what": "/etc/passwd"}),
        ("{what}/{id}", {"what": ".."}),
        ("{what}{where}", {"what": ".", "where": "."}),
        ("{work_id}", {"work_id": "a\0"}),
    ],
)
def test_a_hostile_record_does_not_lead_out_of_the_folder(template: str, fields: dict[str, Any]) -> None:
    with pytest.raises(CannotName):
        named(template, **fields)


WORD = st.text(alphabet="./\\\0\n~{}ab:C", max_size=8)


@settings(max_examples=examples(100, 500))
@given(st.lists(st.one_of(WORD, st.sampled_from([f"{{{field}}}" for field in FIELDS])), max_size=5), WORD, WORD, WORD)
def test_a_name_is_always_one_below_the_folder(parts: list[str], what: str, id_: str, path: str) -> None:
    try:
        name = named("".join(parts), what=what, id=id_, path=f"/{path}")
    except CannotName:
        return
    found = PurePosixPath(name)
    assert not found.is_absolute()
    assert found.parts
    assert ".." not in found.parts
    assert "\0" not in name
