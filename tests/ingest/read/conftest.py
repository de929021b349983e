"""Readers of texts and bytes, and pieces small enough to be interesting."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.ingest.reading import Reader, set_piece_size

from odfpy.chain.read_steps import ReadStep
from odfpy.ingest.read import read


@pytest.fixture
def read_input(tmp_path: Path) -> Reader:
    """Reads content under the name `input`."""

    def run(step: ReadStep, content: str | bytes) -> pa.Table:
        path = tmp_path / "content"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read(step, path, name="input")

    return run


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in pieces of some bytes instead of a megabyte."""
    set_piece_size(monkeypatch, 16)
