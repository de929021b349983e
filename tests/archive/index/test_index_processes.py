"""Several processes at one index, and some that are killed while they write it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.archive.commits import APPEND, commit, new_archive, record
from support.processes.steps import Steps

from odfpy import Workspace
from odfpy.archive.index.search import SearchIndex
from odfpy.archive.question import Question
from odfpy.archive.times import FIRST, LAST

ALL = Question(what=("syslog",), start=FIRST, end=LAST)
INDEX = "__import__('odfpy.archive.index.search', fromlist=['_']).SearchIndex.of(workspace.storage.get('logs'))"

_READER = """
import sys
from odfpy import Workspace
from odfpy.archive.index.search import SearchIndex
from odfpy.archive.question import Question
from odfpy.archive.times import FIRST, LAST
workspace, last = Workspace.open(sys.argv[1]), 0
while last < 60:
    index = SearchIndex.of(workspace.storage.get("logs"))
    found = len(index.page(Question(what=("syslog",), start=FIRST, end=LAST), None, 1000).records)
    assert last <= found == index.num_records, (last, found)
    last = found
print(last)
"""


@pytest.fixture(scope="module")
def steps() -> Iterator[Steps]:
    process = Steps()
    yield process
    process.close()


@pytest.mark.parametrize("is_there", [False, True], ids=["made", "extended"])
def test_an_index_whose_writer_was_killed_is_whole(steps: Steps, tmp_path: Path, is_there: bool):
    dataset = commit(new_archive(tmp_path / "prepared"), [(APPEND, record(f"a{at}", at)) for at in range(20)])
    if is_there:
        SearchIndex.of(dataset)
        dataset = commit(dataset, [(APPEND, record(f"b{at}", at)) for at in range(5)])
    expected = dataset.state.next_offset

    def copy(name: str) -> Path:
        return Path(shutil.copytree(tmp_path / "prepared", tmp_path / name))

    count = steps.count(copy("whole"), INDEX)
    assert count > 3
    for at in range(1, count + 1):
        place = copy(f"killed-{at}")
        steps.strike(place, INDEX, at)
        index = SearchIndex.of(Workspace.open(place).storage.get("logs"))
        assert len(index.page(ALL, None, 1000).records) == expected
        index = SearchIndex.of(commit(Workspace.open(place).storage.get("logs"), [(APPEND, record("next", 1))]))
        assert index.num_records == expected + 1
        assert len(list(place.rglob("archive-index/*"))) == 1 + len(index.segments), "nothing is left behind"


def test_readers_see_each_push_once_while_others_push_and_merge(tmp_path: Path):
    dataset = new_archive(tmp_path)
    readers = [
        subprocess.Popen([sys.executable, "-c", _READER, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(2)
    ]
    for number in range(60):
        dataset = commit(dataset, [(APPEND, record(f"a{number}", number))])
        SearchIndex.of(dataset)
    for reader in readers:
        output, _ = reader.communicate(timeout=120)
        assert (reader.returncode, output.strip()) == (0, b"60")


def test_two_that_find_no_index_make_it_once(tmp_path: Path):
    dataset = commit(new_archive(tmp_path), [(APPEND, record(f"a{at}", at)) for at in range(2_000)])
    program = (
        f"import sys; from odfpy import Workspace; workspace = Workspace.open(sys.argv[1]); print({INDEX}.num_records)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    assert [one.communicate(timeout=120)[0].strip() for one in both] == [b"2000"] * 2
    assert len(list(dataset.cache.rglob("archive-index/segment-*"))) == 1
