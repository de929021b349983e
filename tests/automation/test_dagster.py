"""The example for Dagster, with Dagster from PyPI in an environment of its own, which has no odfpy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import FOLDER, derivative, feed, root, workspace_with

from odfpy.coordinator.workspace import Workspace

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "examples" / "dagster"
PROGRAM = REPOSITORY / "tests" / "support" / "dagster_program.py"
LEDGER = "{kind: Ledger, primaryKey: [id]}"


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python of an environment with Dagster."""
    subprocess.run([REPOSITORY / ".ci" / "clients"], check=True)
    return REPOSITORY / ".venv-dagster" / "bin" / "python"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    upper = derivative("com.example.upper", "com.example.rates")
    found = workspace_with(tmp_path_factory.mktemp("dagster"), root("com.example.rates", LEDGER), upper, FOLDER)
    feed(found, "com.example.rates", "1 a", "2 b", "3 c")
    (found.root / "in").mkdir()
    (found.root / "in" / "1.csv").write_text("id\n1\n")
    return found


def surroundings(workspace: Workspace) -> dict[str, str]:
    odf = Path(sys.executable).parent / "odf"
    home = str(workspace.root / "dagster-home")
    Path(home).mkdir(exist_ok=True)
    return {**os.environ, "ODF_WORKSPACE": str(workspace.root), "ODF_PROGRAM": str(odf), "DAGSTER_HOME": home}


def test_datasets_are_assets_that_are_pulled_checked_and_watched(python: Path, workspace: Workspace) -> None:
    steps = ("assets", "sense", "pull", "sense", "ingest", "sense", "pull", "sense")
    done = subprocess.run(
        [python, PROGRAM, EXAMPLE, *steps], env=surroundings(workspace), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assets, first, pulled, moved, _, fed, again, _ = map(json.loads, done.stdout.splitlines())
    assert assets == {
        "com/example/folder": [],
        "com/example/rates": [],
        "com/example/upper": ["com/example/rates"],
    }
    assert first == {"requests": [], "observed": []}
    check_pull(pulled, workspace)
    assert set(moved["observed"]) == {"com/example/folder", "com/example/upper"}
    assert fed == {"requests": [["com/example/upper"]], "observed": ["com/example/rates"]}
    assert again["made"]["com/example/upper"]["new_rows"] == 1
    assert again["made"]["com/example/upper"]["dagster/row_count"] == 3


def check_pull(pulled: dict[str, Any], workspace: Workspace) -> None:
    assert pulled["success"]
    assert pulled["checks"] == {"com/example/rates": True}
    made = pulled["made"]
    assert made.keys() == {"com/example/folder", "com/example/rates", "com/example/upper"}
    assert (made["com/example/upper"]["new_rows"], made["com/example/upper"]["dagster/row_count"]) == (2, 2)
    assert made["com/example/upper"]["data_version"] == made["com/example/upper"]["block"]
    assert made["com/example/rates"]["watermark"] == 1704067200.0
    known = {str(block.hash) for block in workspace.datasets.log("com.example.upper")}
    assert made["com/example/upper"]["block"] in known


def test_a_dataset_that_fails_fails_the_run_and_no_other(python: Path, workspace: Workspace) -> None:
    (workspace.root / "in" / "2.csv").write_text("id\nno number\n")
    done = subprocess.run(
        [python, "-m", "dagster", "job", "execute", "-f", "definitions.py", "-j", "odf_pull_all"],
        cwd=shutil.copytree(EXAMPLE, workspace.root / "example"),
        env=surroundings(workspace),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "com.example.folder: " in done.stderr
    assert "1 datasets failed" in done.stderr
    assert "Materialized value com example upper" in done.stderr
