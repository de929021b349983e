"""Program for an environment with Airflow: runs the example's DAG, then one with a sensor; prints JSON.

    python airflow_program.py FOLDER_OF_DAGS

That folder has the example and `sensed.py`. The database of Airflow is created in AIRFLOW_HOME.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, sys.argv[1])
from airflow.utils.db import upgradedb

upgradedb()

from odf_dag import dag  # noqa: E402 - its database must exist
from sensed import dag as sensed  # noqa: E402


def states(of: Any) -> dict[str, str]:
    run = of.test()
    return {instance.task_id: str(instance.state) for instance in run.get_task_instances()}


found: dict[str, Any] = {
    "downstream": {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks},
    "pulled": states(dag),
    "sensed": states(sensed),
}
with sqlite3.connect(Path(os.environ["AIRFLOW_HOME"]) / "airflow.db") as database:
    events = "select asset.name, event.extra from asset_event event join asset on asset.id = event.asset_id"
    found["events"] = {name: json.loads(extra) for name, extra in database.execute(events)}
sys.stdout.write(f"\n{json.dumps(found)}\n")
