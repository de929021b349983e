"""A DAG that pulls all datasets of a workspace every hour, each after its inputs."""

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG
from odf_airflow import odf_tasks

WORKSPACE = os.environ.get("ODF_WORKSPACE", ".")
PROGRAM = os.environ.get("ODF_PROGRAM", "odf")

with DAG(
    "odf_pull_all",
    schedule="@hourly",
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
) as dag:
    odf_tasks(WORKSPACE, PROGRAM)
