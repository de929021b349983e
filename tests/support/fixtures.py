"""Where the golden files are: vectors and datasets made by the reference implementation."""

from __future__ import annotations

from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "golden"
KAMU = FIXTURES / "kamu"
CASES = FIXTURES / "cases"
VECTORS = FIXTURES / "vectors"

KAMU_DATASETS = sorted(path.name for path in KAMU.iterdir() if (path / "refs").is_dir())
