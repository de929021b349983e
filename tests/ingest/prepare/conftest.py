"""Preparing in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.ingest.preparing import Prepare

from odfpy.chain.sources import PrepStep
from odfpy.ingest.archive import UnpackLimits
from odfpy.ingest.prepare import PrepareContext, prepare


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def prepared(tmp_path: Path, scratch: Path) -> Prepare:
    """What steps make of content that is called `input`."""

    def run(*steps: PrepStep, content: bytes, limits: UnpackLimits | None = None, timeout: float | None = 60) -> bytes:
        path = tmp_path / "content"
        path.write_bytes(content)
        context = PrepareContext(scratch=scratch, limits=limits or UnpackLimits(), timeout=timeout)
        result = prepare(steps, path, context, name="input")
        assert path.read_bytes() == content, "the fetched file is left as it is"
        assert sorted(scratch.iterdir()) == [result], "nothing else is left"
        return result.read_bytes()

    return run
