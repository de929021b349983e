"""A queue, files for it, and an archive that is as simple as can be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odfpy.archive.pushing import NewFile
from odfpy.archive.queue.enqueue import Enqueued, enqueue
from odfpy.archive.queue.folder import QueueFolder
from odfpy.archive.queue.usage import QueueLimits
from odfpy.testing.archives import FolderArchive

Put = Callable[..., Enqueued]


@pytest.fixture
def queue(tmp_path: Path) -> QueueFolder:
    return QueueFolder(tmp_path / "queue", QueueLimits(free=0))


@pytest.fixture
def store(tmp_path: Path) -> FolderArchive:
    return FolderArchive(tmp_path / "archive")


@pytest.fixture
def put(queue: QueueFolder, tmp_path: Path) -> Put:
    """Enqueues a file of some content."""

    def call(data: bytes, **fields: Any) -> Enqueued:
        file = tmp_path / "file"
        file.write_bytes(data)
        return enqueue(queue, NewFile(**({"file": file, "what": "log", "where": "web1", "start": 1000} | fields)))

    return call
