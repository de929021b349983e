"""Datasets of an odf workspace in Airflow 3, by the command `odf`; odfpy need not be in Airflow's environment.

`OdfPullOperator` pulls a dataset, and emits its asset with the block that is its head now. `OdfHeadSensor` waits until
the head of a dataset has moved, whoever has moved it. `odf_tasks` makes a task for each dataset of a workspace.
"""

import json
import subprocess
from typing import Any

from airflow.sdk import Asset, BaseOperator, BaseSensorOperator, Context
from airflow.sdk.exceptions import AirflowException

Record = dict[str, Any]


def ask(workspace: str, *arguments: str, program: str = "odf") -> list[Record]:
    """Return what a command of odf answers: a record for each dataset.

    Args:
        workspace: folder of the workspace.
        arguments: the command.
        program: the command `odf`, or the path to it.
    """
    command = [program, "-w", workspace, *arguments, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and not done.stdout.strip():  # a dataset that failed has a record that says why
        raise AirflowException(done.stderr.strip() or f"odf ended with {done.returncode}")
    found: list[Record] = json.loads(done.stdout)
    return found


def asset_of(name: str, id_: str) -> Asset:
    """Return a dataset as an asset; its URI is its id, which is the same in every workspace.

    Args:
        name: name of the dataset.
        id_: its id, `did:odf:...`.
    """
    return Asset(name=name, uri=f"odf://{id_.removeprefix('did:odf:')}/", group="odf")


class OdfPullOperator(BaseOperator):
    """Pulls one dataset. What came of it is the task's result, and beside the event of the asset."""

    template_fields = ("dataset", "workspace")

    def __init__(
        self,
        *,
        dataset: str,
        workspace: str,
        program: str = "odf",
        inlets: list[Asset] | None = None,
        outlets: list[Asset] | None = None,
        **more: Any,
    ) -> None:
        """
        Args:
            dataset: name of the dataset.
            workspace: folder of the workspace.
            program: the command `odf`, or the path to it.
            inlets: assets of what it is derived from.
            outlets: its own asset.
            more: arguments of all operators.
        """
        super().__init__(inlets=inlets, outlets=outlets, **more)
        self.dataset = dataset
        self.workspace = workspace
        self.program = program

    def execute(self, context: Context) -> Record:
        """Pull."""
        (result,) = ask(self.workspace, "pull", self.dataset, program=self.program)
        if result["outcome"] not in ("updated", "up-to-date"):
            raise AirflowException(f"{result['error']} ({result['code']})")
        told = {
            "block": result["newHead"],
            "new_rows": result["records"],
            "watermark": result["watermark"],
            "outcome": result["outcome"],
        }
        for asset in self.outlets:
            context["outlet_events"][asset].extra = told
        return told


class OdfHeadSensor(BaseSensorOperator):
    """Waits until a dataset has another head than when the task began, or than the given one."""

    template_fields = ("dataset", "workspace", "since")

    def __init__(
        self, *, dataset: str, workspace: str, since: str | None = None, program: str = "odf", **more: Any
    ) -> None:
        """
        Args:
            dataset: name of the dataset.
            workspace: folder of the workspace.
            since: the head that is known; any other one ends the wait. The head at the first look if None.
            program: the command `odf`, or the path to it.
            more: arguments of all sensors.
        """
        super().__init__(**more)
        self.dataset = dataset
        self.workspace = workspace
        self.since = since
        self.program = program

    def poke(self, context: Context) -> bool:
        """Look at the head."""
        (found,) = ask(self.workspace, "list", self.dataset, program=self.program)
        if self.since is None:
            self.since = found["head"]
        return bool(found["head"] != self.since)


def odf_tasks(workspace: str, program: str = "odf") -> dict[str, OdfPullOperator]:
    """Make a task for each dataset of a workspace, after those of its inputs; call it in a DAG.

    Args:
        workspace: folder of the workspace.
        program: the command `odf`, or the path to it.
    """
    found = {record["name"]: record for record in ask(workspace, "list", program=program)}
    assets = {name: asset_of(name, record["id"]) for name, record in found.items()}
    tasks = {
        name: OdfPullOperator(
            task_id=name.replace("/", "."),
            dataset=name,
            workspace=workspace,
            program=program,
            inlets=[assets[source] for source in record["inputs"] if source in assets],
            outlets=[assets[name]],
        )
        for name, record in found.items()
    }
    for name, record in found.items():
        for source in record["inputs"]:
            if source in tasks:
                tasks[source] >> tasks[name]
    return tasks
