"""A server with an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.archive.served import Served, serve_in


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    yield from serve_in(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all tests of a module, which add to it."""
    yield from serve_in(tmp_path_factory.mktemp("served"))


@pytest.fixture
def content(tmp_path: Path) -> Callable[[bytes], Path]:
    """Makes files."""
    made: list[Path] = []

    def make(data: bytes) -> Path:
        file = tmp_path / f"file-{len(made)}.log"
        file.write_bytes(data)
        made.append(file)
        return file

    return make
