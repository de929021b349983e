"""Response models for runs and schedules, for the OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from odfpy.serving.rest.models import HASH, ID

_RUN: dict[str, Any] = {
    "id": "0b0c4f64-7a0f-4d3c-9d4b-0d6d0a0f6f3e",
    "at": "2026-03-15T06:15:04.120Z",
    "dataset": "com.example.rates",
    "datasetId": ID,
    "job": "pull",
    "reason": "schedule",
    "dueAt": "2026-03-15T06:15:00Z",
    "startedAt": "2026-03-15T06:15:00.031Z",
    "seconds": 4.089,
    "outcome": "updated",
    "attempt": 1,
    "rows": 32,
    "blocks": 1,
    "watermark": "2026-03-15T00:00:00Z",
    "head": HASH,
    "errorCode": None,
    "errorMessage": None,
    "warnings": None,
    "peakMemory": 104857600,
    "engineMemory": None,
}


class RunModel(BaseModel):
    """A run of the scheduler, as in the dataset `odf.runs`."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RUN]})

    id: str
    at: Annotated[str, Field(description="When it ended; the current time while it is running.")]
    dataset: str
    datasetId: str  # noqa: N815
    job: Annotated[str, Field(description="pull, compact, verify or push.")]
    reason: Annotated[str, Field(description="schedule, rows, retry, manual or interrupted.")]
    dueAt: str  # noqa: N815
    startedAt: str  # noqa: N815
    seconds: float | None
    outcome: Annotated[str, Field(description="running, updated, up to date, failed, interrupted or skipped.")]
    attempt: int
    rows: int | None
    blocks: int | None
    watermark: str | None
    head: str | None
    errorCode: str | None  # noqa: N815
    errorMessage: Annotated[  # noqa: N815
        str | None, Field(description="Only for callers who may read the whole workspace: it may name files and hosts.")
    ]
    warnings: Annotated[str | None, Field(description="The same.")]
    peakMemory: Annotated[int | None, Field(description="Bytes.")]  # noqa: N815
    engineMemory: Annotated[int | None, Field(description="Bytes, of the Spark engine.")]  # noqa: N815


def run_model(row: Mapping[str, Any], *, is_own: bool) -> RunModel:
    """Convert a run for a response.

    Args:
        row: row of the run in `odf.runs`.
        is_own: whether the caller may read the whole workspace.
    """
    return RunModel(
        id=row["id"],
        at=row["at"],
        dataset=row["dataset"],
        datasetId=row["dataset_id"],
        job=row["job"],
        reason=row["reason"],
        dueAt=row["due_at"],
        startedAt=row["started_at"],
        seconds=row["seconds"],
        outcome=row["outcome"],
        attempt=row["attempt"],
        rows=row["rows"],
        blocks=row["blocks"],
        watermark=row["watermark"],
        head=row["head"],
        errorCode=row["error_code"],
        errorMessage=row["error_message"] if is_own else None,
        warnings=row["warnings"] if is_own else None,
        peakMemory=row["peak_memory"],
        engineMemory=row["engine_memory"],
    )


class UpcomingModel(BaseModel):
    """The next run of a job."""

    job: str
    trigger: Annotated[str, Field(description="The times of the job, as a description.", examples=["every 1h"])]
    at: Annotated[str | None, Field(description="In UTC; null if it depends on rows that have not arrived.")]
    local: Annotated[str | None, Field(description="The same in the time zone of the schedule.")]


class ScheduleModel(BaseModel):
    """The schedule of a dataset."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "dataset": "com.example.rates",
                    "yaml": "schedule:\n  pull:\n    every: 1h\n  maxAge: 2d\n",
                    "isPaused": False,
                    "maxAge": "2d",
                    "isLate": False,
                    "upcoming": [
                        {
                            "job": "pull",
                            "trigger": "every 1h",
                            "at": "2026-03-15T07:00:00Z",
                            "local": "2026-03-15T07:00:00+00:00",
                        }
                    ],
                }
            ]
        }
    )

    dataset: str
    yaml: Annotated[str | None, Field(description="The YAML of a manifest, beside `content`; null if there is none.")]
    isPaused: bool  # noqa: N815
    maxAge: Annotated[str | None, Field(description="The promised maximum age of its last rows.")]  # noqa: N815
    isLate: Annotated[bool, Field(description="Whether the last rows are older than promised.")]  # noqa: N815
    problem: Annotated[str | None, Field(description="Why the schedule cannot be read.")] = None
    upcoming: list[UpcomingModel] = []


class NewScheduleModel(BaseModel):
    """A schedule to save."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"yaml": "schedule:\n  pull: {every: 1h}\n"}]}
    )

    yaml: Annotated[str, Field(max_length=20_000, description="The YAML of a manifest, beside `content`.")]


class LateModel(BaseModel):
    """A dataset whose last rows are older than promised."""

    dataset: str
    maxAge: str  # noqa: N815
    updatedAt: str | None  # noqa: N815


class AutomationModel(BaseModel):
    """The scheduler, and the datasets that need attention."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "scheduler": "process 4711 on here",
                    "numSchedules": 2,
                    "running": [],
                    "late": [{"dataset": "com.example.rates", "maxAge": "2d", "updatedAt": "2026-03-12T06:15:04Z"}],
                    "failing": [{**_RUN, "outcome": "failed", "errorCode": "E301"}],
                }
            ]
        }
    )

    scheduler: Annotated[
        str | None,
        Field(
            description="The active scheduler; its location only for callers who may write; null if none is running."
        ),
    ]
    numSchedules: int  # noqa: N815
    running: list[RunModel]
    late: list[LateModel]
    failing: Annotated[list[RunModel], Field(description="Jobs whose last run failed, newest first.")]


class AskedModel(BaseModel):
    """A requested run."""

    id: Annotated[str, Field(description="Id of the run.", examples=[_RUN["id"]])]
