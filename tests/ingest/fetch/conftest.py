"""Circumstances of a fetch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.ingest.fetching import NOW, Fetcher

from odfpy.chain.sources import FetchStep
from odfpy.ingest.fetch import FetchContext, FetchedFile, fetch


@pytest.fixture
def run_fetch(tmp_path: Path) -> Fetcher:
    """Fetches everything that is new, below the folder of the test."""

    def run(step: FetchStep, **circumstances: Any) -> list[FetchedFile]:
        defaults: dict[str, Any] = {
            "now": NOW,
            "root": tmp_path,
            "scratch": tmp_path / "scratch",
            "timeout": 5.0,
            "pause": lambda _: None,
        }
        return list(fetch(step, FetchContext(**{**defaults, **circumstances})))

    return run


@pytest.fixture
def make_files(tmp_path: Path) -> Callable[..., None]:
    """Makes files below the folder of the test, each with its name as content."""

    def make(*names: str) -> None:
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)

    return make
