"""Program for an environment with Dagster: applies its definitions to a workspace, and prints a line of JSON per step.

    python dagster_program.py FOLDER_OF_THE_EXAMPLE STEP...

Steps: `assets` prints keys and dependencies; `pull` runs the job; `sense` runs the sensor with its previous cursor.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

sys.path.insert(0, sys.argv[1])
import dagster as dg
from definitions import defs, odf

INSTANCE = dg.DagsterInstance.ephemeral()
CURSOR: list[str | None] = [None]


def assets() -> Any:
    graph = defs.resolve_asset_graph()
    keys = sorted(graph.get_all_asset_keys(), key=str)
    return {key.to_user_string(): [one.to_user_string() for one in graph.get(key).parent_keys] for key in keys}


def pull() -> Any:
    result = defs.resolve_job_def("odf_pull_all").execute_in_process(instance=INSTANCE, raise_on_error=False)
    made = {
        event.materialization.asset_key.to_user_string(): {
            **{name: value.value for name, value in event.materialization.metadata.items()},
            "data_version": event.materialization.tags["dagster/data_version"],
        }
        for event in result.get_asset_materialization_events()
    }
    checks = {one.asset_key.to_user_string(): one.passed for one in result.get_asset_check_evaluations()}
    return {"success": result.success, "made": made, "checks": checks}


def sense() -> Any:
    (sensor,) = defs.sensors or ()
    found = sensor(dg.build_sensor_context(instance=INSTANCE, cursor=CURSOR[0]))
    CURSOR[0] = found.cursor
    requests = [[key.to_user_string() for key in one.asset_selection] for one in found.run_requests]
    return {"requests": requests, "observed": [event.asset_key.to_user_string() for event in found.asset_events]}


def ingest() -> Any:
    """Return rows that arrive without Dagster's knowledge."""
    row = '{"event_time": "2024-02-01T00:00:00Z", "id": 9, "name": "z"}\n'
    command = [odf.program, "-w", odf.workspace, "ingest", "com.example.rates", "--stdin"]
    return subprocess.run(command, input=row, text=True, check=True, capture_output=True).returncode


for step in sys.argv[2:]:
    sys.stdout.write(f"{json.dumps(globals()[step]())}\n")
