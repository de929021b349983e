"""The example for Airflow, with Airflow from PyPI in an environment of its own, which has no odfpy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.chains.workspaces import derivative, feed, root, workspace_with

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / "tests" / "support" / "airflow_program.py"
SENSED = """
from datetime import datetime, timezone
from airflow.sdk import DAG
from odf_airflow import OdfHeadSensor
from odf_dag import PROGRAM, WORKSPACE

with DAG("sensed", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=timezone.utc)) as dag:
    OdfHeadSensor(task_id="moved", dataset="com.example.rates", workspace=WORKSPACE, since="f1620", program=PROGRAM)
"""


def test_a_dag_pulls_each_dataset_after_its_inputs_and_tells_its_asset(tmp_path: Path) -> None:
    subprocess.run([REPOSITORY / ".ci" / "clients"], check=True)
    upper = derivative("com.example.upper", "com.example.rates")
    workspace = workspace_with(tmp_path / "data", root("com.example.rates", "{kind: Append}"), upper)
    feed(workspace, "com.example.rates", "1 a", "2 b")
    dags = shutil.copytree(REPOSITORY / "examples" / "airflow", tmp_path / "dags")
    (dags / "sensed.py").write_text(SENSED)
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "ODF_WORKSPACE": str(workspace.root),
        "ODF_PROGRAM": str(Path(sys.executable).parent / "odf"),
    }
    python = REPOSITORY / ".venv-airflow" / "bin" / "python"
    done = subprocess.run([python, PROGRAM, dags], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["downstream"] == {"com.example.rates": ["com.example.upper"], "com.example.upper": []}
    assert found["pulled"] == {"com.example.rates": "success", "com.example.upper": "success"}
    assert found["sensed"] == {"moved": "success"}
    upper_event = found["events"]["com.example.upper"]
    assert upper_event["block"] == str(workspace.storage.get("com.example.upper").state.head)
    assert (upper_event["new_rows"], upper_event["outcome"]) == (1, "updated")
