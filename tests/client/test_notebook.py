"""The notebook of the documentation runs, and shows what is written down in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.pages.notebook import NOTEBOOK, recorded, run, shown


@pytest.fixture
def quiet_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of Jupyter's is that of whoever runs the tests, or left with him."""
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))


@pytest.mark.usefixtures("quiet_home")
def test_the_notebook_shows_what_comes_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    before = recorded()
    assert shown(run(recorded(), folder)) == shown(before)


def test_the_notebook_is_small_and_knows_no_machine() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 40_000
    assert not re.search(r"/(?:tmp|home|root|Users|var|work)/|file:|<script|src=", text)
    assert set(recorded().metadata) == {"kernelspec"}
