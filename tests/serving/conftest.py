"""Nobody is logged in anywhere when a test begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfpy.repository.credentials import VARIABLE


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's settings and tokens are."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path
