"""Datasets of an odf workspace as assets of Dagster, by the command `odf`; odfpy need not be in Dagster's environment.

A dataset is an asset whose data version is the block of its head. So Dagster knows which assets are made of older data
than there is, and a run that finds nothing new changes nothing.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import dagster as dg

Record = dict[str, Any]


@dataclass(frozen=True)
class Odf:
    """The command `odf` for one workspace.

    Attributes:
        workspace: folder of the workspace.
        program: the command, or the path to it.
    """

    workspace: str
    program: str = "odf"

    def list(self, *names: str) -> dict[str, Record]:
        """Return the datasets by name: head, rows, watermark, inputs..."""
        records = self._lines("list", *names)
        return {record["name"]: record for record in records if "head" in record}

    def pull(self, names: Sequence[str]) -> Iterator[Record]:
        """Pull datasets in the order of their dependencies; yield what came of each as soon as it is known."""
        yield from self._lines("pull", *names)

    def _lines(self, *arguments: str) -> Iterator[Record]:
        command = [self.program, "-w", self.workspace, *arguments, "-o", "ndjson"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            count = 0
            for line in process.stdout:
                count += 1
                yield json.loads(line)
        if process.returncode and not count:  # a dataset that failed has a record that says why
            raise dg.Failure(f"odf {arguments[0]} ended with {process.returncode}; its error is in the log of the run")


def key_of(name: str) -> dg.AssetKey:
    """Return the key of a dataset: `com.example.rates` is com/example/rates."""
    return dg.AssetKey(re.split(r"[./]", name))


def odf_assets(odf: Odf) -> dg.AssetsDefinition:
    """Return the datasets of a workspace as assets; one command pulls those that a run selects.

    Args:
        odf: the command.
    """
    found = odf.list()
    names = {key_of(name): name for name in found}
    specs = [
        dg.AssetSpec(
            key_of(name),
            deps=[key_of(source) for source in record["inputs"]],
            kinds={"odf", record["kind"].lower()},
            metadata={"odf/name": name, "odf/id": record["id"]},
            skippable=True,
        )
        for name, record in found.items()
    ]

    @dg.multi_asset(name="odf_pull", specs=specs, can_subset=True)
    def pull(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        rows = {name: record["records"] for name, record in odf.list().items()}
        failed = []
        for result in odf.pull([names[key] for key in context.selected_asset_keys]):
            if result["outcome"] in ("updated", "up-to-date"):
                yield _materialized(result, rows.get(result["name"], 0) + result["records"])
            else:
                failed.append(f"{result['name']}: {result['error']} ({result['code']})")
                context.log.error(failed[-1])
        if failed:
            raise dg.Failure(f"{len(failed)} datasets failed", metadata={"errors": dg.MetadataValue.json(failed)})

    return pull


def _materialized(result: Record, rows: int) -> dg.MaterializeResult:
    metadata: dict[str, Any] = {
        "dagster/row_count": rows,
        "new_rows": result["records"],
        "new_blocks": result["blocks"],
        "block": result["newHead"],
        "seconds": result["seconds"],
    }
    if result["watermark"] is not None:
        metadata["watermark"] = dg.MetadataValue.timestamp(_time(result["watermark"]))
    return dg.MaterializeResult(
        asset_key=key_of(result["name"]), data_version=dg.DataVersion(result["newHead"]), metadata=metadata
    )


def freshness_checks(odf: Odf, max_age: Mapping[str, timedelta]) -> list[dg.AssetChecksDefinition]:
    """Return checks that the last rows of datasets are not older than promised.

    Args:
        odf: the command.
        max_age: the promises, by name of dataset.
    """
    return [_freshness_check(odf, name, age) for name, age in max_age.items()]


def _freshness_check(odf: Odf, name: str, max_age: timedelta) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=key_of(name), name="is_fresh", description=f"Rows came within the last {max_age}.")
    def is_fresh() -> dg.AssetCheckResult:
        updated = odf.list(name)[name]["updated"]
        age = None if updated is None else datetime.now(timezone.utc) - _time(updated)
        return dg.AssetCheckResult(
            passed=age is not None and age <= max_age,
            metadata={"last_rows": updated or "never", "max_age_seconds": max_age.total_seconds()},
        )

    return is_fresh


def head_sensor(odf: Odf, assets: dg.AssetsDefinition) -> dg.SensorDefinition:
    """Return a sensor that pulls what is derived from datasets whose heads have moved, whoever has moved them.

    Args:
        odf: the command.
        assets: the datasets.
    """

    @dg.sensor(name="odf_heads", target=assets, minimum_interval_seconds=30)
    def heads(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        found = odf.list()
        now = {name: record["head"] for name, record in found.items()}
        before = json.loads(context.cursor) if context.cursor else now
        moved = {name for name, head in now.items() if before.get(name) != head}
        derived = [name for name, record in found.items() if moved.intersection(record["inputs"])]
        requests = [
            dg.RunRequest(
                run_key="".join(sorted(now[name] for name in moved)), asset_selection=list(map(key_of, derived))
            )
        ]
        observed = [
            dg.AssetObservation(key_of(name), metadata={"block": now[name]}, tags={"dagster/data_version": now[name]})
            for name in sorted(moved)
        ]
        return dg.SensorResult(
            run_requests=requests if derived else [], asset_events=observed, cursor=json.dumps(now, sort_keys=True)
        )

    return heads


def odf_definitions(odf: Odf, max_age: Mapping[str, timedelta] | None = None) -> dg.Definitions:
    """Return all of this for one workspace, with a job `odf_pull_all`.

    Args:
        odf: the command.
        max_age: what age of the last rows is promised, by name of dataset.
    """
    assets = odf_assets(odf)
    return dg.Definitions(
        assets=[assets],
        asset_checks=freshness_checks(odf, max_age or {}),
        jobs=[dg.define_asset_job("odf_pull_all", selection=dg.AssetSelection.assets(assets))],
        sensors=[head_sensor(odf, assets)],
    )


def _time(text: str) -> datetime:
    """Return a time of odf, which may have nanoseconds."""
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", text).replace("Z", "+00:00"))
