"""News of a folder: the kernel tells, and nobody looks meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfpy.archive.queue import watch as watching
from odfpy.archive.queue.watch import FolderWatch


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[FolderWatch]:
    with FolderWatch(tmp_path) as found:
        yield found


def test_a_file_that_is_written_to_its_end_is_told(tmp_path: Path, watch: FolderWatch) -> None:
    with (tmp_path / "it").open("wb") as file:
        file.write(b"half")
        file.flush()
        assert watch.wait(0.05) == []
    assert watch.wait(60) == ["it"]


def test_a_file_that_comes_by_its_name_is_told(tmp_path: Path, watch: FolderWatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "ü").write_bytes(b"")
    (tmp_path / "folder" / "ü").rename(tmp_path / "ü")
    assert watch.wait(60) == ["ü"]


def test_a_name_that_is_no_text_is_told(tmp_path: Path, watch: FolderWatch) -> None:
    name = os.fsdecode(b"\xff")
    (tmp_path / name).write_bytes(b"")
    assert watch.wait(60) == [name]


def test_folders_are_no_news(tmp_path: Path, watch: FolderWatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").rename(tmp_path / "b")
    assert watch.wait(0.05) == []


def test_without_news_it_comes_back_after_a_while(watch: FolderWatch) -> None:
    assert watch.wait(0.01) == []
    assert watch.wait(-1) == []


def test_it_can_be_woken(watch: FolderWatch) -> None:
    threading.Timer(0.05, watch.wake).start()
    assert watch.wait(60) == []
    for _ in range(100_000):  # more than its pipe takes
        watch.wake()
    assert watch.wait(60) == []


def test_a_folder_that_goes_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    with FolderWatch(tmp_path / "queue") as watch:
        (tmp_path / "queue").rmdir()
        with pytest.raises(FileNotFoundError):
            watch.wait(60)


def test_a_folder_that_is_not_there_cannot_be_watched(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        FolderWatch(tmp_path / "nowhere")


def test_more_news_than_the_kernel_remembers_mean_looking_through(
    tmp_path: Path, watch: FolderWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    monkeypatch.setattr(watching, "_BUFFER", 1 << 22)
    for number in range(most + 10):
        (tmp_path / f"{number % 100}").write_bytes(b"")
    answers = []
    while (news := watch.wait(0.1)) != []:
        answers.append(news)
    assert None in answers


def test_a_system_without_inotify_only_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_inotify", lambda _: None)
    with FolderWatch(tmp_path) as watch:
        assert not watch.is_notified
        (tmp_path / "it").write_bytes(b"")
        assert watch.wait(0.01) == []
