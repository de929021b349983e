"""Checkpoints: what is kept comes back for the same transform, engine and place in the inputs, and only then."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace

import pytest
from support.engine.requests import Source, queries, transform_request

from odfpy.data.timestamp import Timestamp
from odfpy.engine.checkpoint import (
    FORMAT,
    CheckpointFile,
    load_checkpoint,
    manifest_after,
    read_manifest,
    write_checkpoint,
)

ENGINE = "odfpy-spark/1 spark/4.3.0 java/25 settings/00000000"
QUERY = "select event_time, count(*) as n from a group by event_time"
NAME = "block-1-gate-0.parquet"


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path, "a", ()).add([("+A", "2024-01-01")]).add([("+A", "2024-01-02")])


@pytest.fixture
def first(tmp_path, source):
    """A run over the first row, which has left a checkpoint."""
    request = transform_request(tmp_path, QUERY, source.input(0, 1, "2024-01-01"))
    rows = tmp_path / "rows"
    rows.write_bytes(b"rows that are kept")
    manifest = manifest_after(request, ENGINE, [CheckpointFile(NAME, only_appends=True)])
    write_checkpoint(tmp_path / "checkpoint", manifest, {NAME: rows})
    return request


@pytest.fixture
def second(tmp_path, source):
    """The run that goes on from it."""
    request = transform_request(tmp_path, QUERY, source.input(1, 2, "2024-01-02", prev_watermark="2024-01-01"))
    return replace(request, prev_checkpoint_path=str(tmp_path / "checkpoint"))


@pytest.mark.usefixtures("first")
def test_what_was_kept_comes_back(second, tmp_path):
    path, rows = load_checkpoint(second, ENGINE, tmp_path).files[NAME]
    assert path.read_bytes() == b"rows that are kept"
    assert rows == CheckpointFile(NAME, only_appends=True)


@pytest.mark.usefixtures("first")
def test_it_is_of_no_use_for_anything_else(second, tmp_path):
    (given,) = second.query_inputs
    others = [
        replace(second, prev_checkpoint_path=None),
        replace(second, prev_checkpoint_path=str(tmp_path / "missing")),
        replace(second, transform=queries(QUERY + " having n > 1")),
        replace(second, query_inputs=(replace(given, prev_offset=1),)),
        replace(second, query_inputs=(replace(given, prev_watermark=Timestamp(0)),)),
        replace(second, query_inputs=(replace(given, prev_watermark=None),)),
    ]
    assert [load_checkpoint(other, ENGINE, tmp_path) for other in others] == [None] * len(others)
    assert load_checkpoint(second, ENGINE.replace("4.3.0", "4.4.0"), tmp_path) is None


@pytest.mark.usefixtures("first")
def test_the_version_that_the_author_asks_for_makes_no_difference(second, tmp_path):
    asked = replace(second, transform=replace(second.transform, version="1"))
    assert load_checkpoint(asked, ENGINE, tmp_path) is not None


@pytest.mark.usefixtures("first")
def test_a_later_format_is_of_no_use(second, tmp_path):
    path = tmp_path / "checkpoint"
    manifest = replace(read_manifest(path), format=FORMAT + 1)
    write_checkpoint(path, manifest, {NAME: tmp_path / "rows"})
    assert load_checkpoint(second, ENGINE, tmp_path) is None


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("number", [4, 5])
def test_a_checkpoint_of_an_earlier_format_is_read(number, second, tmp_path):
    """Format 4 had no `arranged`, format 5 has it for partial results only."""
    path = tmp_path / "checkpoint"
    with zipfile.ZipFile(path) as archive:
        tree, rows = json.loads(archive.read("manifest.json")), archive.read(NAME)
    tree["format"] = number
    tree.pop("arranged", None)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps(tree))
        archive.writestr(NAME, rows)
    found = load_checkpoint(second, ENGINE, tmp_path)
    assert (found.files[NAME][0].read_bytes(), found.arranged) == (rows, {})


def test_what_is_in_the_arrangement_is_named_and_not_in_the_file(first, second, tmp_path):
    rows = CheckpointFile(NAME, only_appends=False, count=100_000)
    write_checkpoint(tmp_path / "checkpoint", manifest_after(first, ENGINE, [], [rows]), {})
    found = load_checkpoint(second, ENGINE, tmp_path)
    assert (found.files, found.arranged) == ({}, {NAME: rows})


@pytest.mark.usefixtures("first")
def test_damage_anywhere_is_as_if_there_were_none_or_makes_no_difference(second, tmp_path):
    path = tmp_path / "checkpoint"
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        found = load_checkpoint(second, ENGINE, tmp_path)
        assert found is None or found.files[NAME][0].read_bytes() == b"rows that are kept"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert load_checkpoint(second, ENGINE, tmp_path) is None


def test_a_checkpoint_is_a_zip_archive_without_compression(first, tmp_path):
    with zipfile.ZipFile(tmp_path / "checkpoint") as archive:
        assert archive.namelist() == ["manifest.json", NAME]
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
    assert read_manifest(tmp_path / "checkpoint") == manifest_after(
        first, ENGINE, [CheckpointFile(NAME, only_appends=True)]
    )
