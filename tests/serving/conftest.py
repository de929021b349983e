"""Nobody is logged in anywhere when a test begins, and passwords take little work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.quick_passwords import quick_passwords

from odfpy.repository.credentials import VARIABLE


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with quick_passwords():
        yield


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's settings and tokens are."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path
