"""Events of OpenLineage about datasets that are pulled.

A dataset is a job of the same name, which writes it. Its version is the hash of its head, so an event identifies
exactly which rows were derived from which. A second name (`symlinks`) is its id, which is the same in every workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    JobFacet,
    RunFacet,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    nominal_time_run,
    output_statistics_output_dataset,
    parent_run,
    schema_dataset,
    sql_job,
    symlinks_dataset,
)
from openlineage.client.uuid import generate_new_uuid

from odfpy import __version__
from odfpy.chain.events import SetPollingSource
from odfpy.chain.sources import FetchFilesGlob, FetchUrl
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.schema import DataField, Option, Struct
from odfpy.data.schemas.type_text import type_text
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.errors import OdfError
from odfpy.http.url import shown_url

PRODUCER: Final = f"https://opendatafabric.org/#odfpy-{__version__}"

MAX_MESSAGE_LENGTH: Final = 10_000
"""Maximum number of characters of an error; it may quote a long row."""

ID_NAMESPACE: Final = "did:odf"

_JOB_TYPE: Final = {
    "jobType": job_type_job.JobTypeJobFacet(
        processingType="BATCH", integration="ODF", jobType="PULL", producer=PRODUCER
    )
}
_STATES: Final = {
    PullOutcome.UPDATED: RunState.COMPLETE,
    PullOutcome.UP_TO_DATE: RunState.COMPLETE,
    PullOutcome.FAILED: RunState.FAIL,
    PullOutcome.SKIPPED: RunState.ABORT,
}


@dataclass(frozen=True, slots=True)
class PullRun:
    """A running pull of one dataset, or of all.

    Attributes:
        name: name of the job.
        dataset: the dataset before the pull; None for the pull of all.
        id: id of the run.
    """

    name: str
    dataset: StoredDataset | None
    id: str


class EventMaker:
    """Builder for the events of one pull."""

    def __init__(self, namespace: str, storage: Storage, *, parent: str | None = None) -> None:
        """
        Args:
            namespace: namespace of jobs and datasets.
            storage: the workspace's files.
            parent: name of the parent job of all datasets; None for no parent job.
        """
        self._namespace = namespace
        self._storage = storage
        self._nominal = nominal_time_run.NominalTimeRunFacet(str(Timestamp.now()), producer=PRODUCER)
        self.parent = None if parent is None else PullRun(parent, None, str(generate_new_uuid()))

    def begin(self, dataset: StoredDataset) -> PullRun:
        """Return the run of a dataset, before its pull begins.

        Args:
            dataset: the dataset before the pull.
        """
        return PullRun(str(dataset.handle), dataset, str(generate_new_uuid()))

    def start(self, run: PullRun) -> RunEvent:
        """Return the START event of a run.

        Args:
            run: the run.
        """
        return self._event(run, RunState.START)

    def abort(self, run: PullRun) -> RunEvent:
        """Return the ABORT event of an interrupted run.

        Args:
            run: the run.
        """
        return self._event(run, RunState.ABORT)

    def end_of_all(self, run: PullRun, failed: int) -> RunEvent:
        """Return the final event of a pull of all datasets.

        Args:
            run: the run of that pull.
            failed: number of failed datasets.
        """
        if not failed:
            return self._event(run, RunState.COMPLETE)
        return self._event(run, RunState.FAIL, _error_facet(f"{failed} of the datasets failed"))

    def end(self, run: PullRun, result: PullResult) -> RunEvent:
        """Return the final event of a dataset's pull, with the data that it read and wrote.

        Args:
            run: the run of the dataset.
            result: the result of its pull.
        """
        error = result.error
        facets = {} if error is None else _error_facet(f"{error.message} ({error.code})")
        return self._event(run, _STATES[result.outcome], facets, result)

    def _event(
        self, run: PullRun, state: RunState, facets: dict[str, RunFacet] | None = None, result: PullResult | None = None
    ) -> RunEvent:
        run_facets: dict[str, RunFacet] = {"nominalTime": self._nominal, **(facets or {})}
        if self.parent is not None and run is not self.parent:
            above = parent_run.Job(self._namespace, self.parent.name)
            run_facets["parent"] = parent_run.ParentRunFacet(parent_run.Run(self.parent.id), above, producer=PRODUCER)
        job_facets: dict[str, JobFacet] = {**_JOB_TYPE}
        inputs: list[InputDataset] = []
        outputs: list[OutputDataset] = []
        if run.dataset is not None:
            job_facets |= _sql_facet(run.dataset)
            now = run.dataset if result is None else run.dataset.reloaded()
            inputs = list(self._inputs(now))
            outputs = [self._output(run.dataset, now, result)]
        return RunEvent(
            eventTime=str(Timestamp.now()),
            eventType=state,
            run=Run(run.id, run_facets),
            job=Job(self._namespace, run.name, job_facets),
            inputs=inputs,
            outputs=outputs,
            producer=PRODUCER,
        )

    def _inputs(self, dataset: StoredDataset) -> Iterator[InputDataset]:
        """Yield the inputs of a dataset: other datasets, with the last block read, or the location of its source."""
        state = dataset.state
        blocks = {item.dataset_id: item.last_block_hash for item in state.query_inputs}
        for id_ in dataset.input_ids:
            yield InputDataset(self._namespace, self._name_of(id_), facets=_identity_facets(id_, blocks.get(id_)))
        source = state.polling_source
        if isinstance(source, SetPollingSource):
            place = _place_of(source)
            if place is not None:
                yield InputDataset(*place)

    def _output(self, before: StoredDataset, now: StoredDataset, result: PullResult | None) -> OutputDataset:
        state = now.state
        head = state.head if result is None or result.new_head is None else result.new_head
        facets = _identity_facets(now.handle.id, head)
        if state.schema is not None:
            fields = [_field_facet(field, number) for number, field in enumerate(state.schema.fields, 1)]
            facets["schema"] = schema_dataset.SchemaDatasetFacet(fields, producer=PRODUCER)
        output = OutputDataset(self._namespace, str(now.handle), facets=facets)
        if result is not None and result.error is None:
            statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=result.num_records, size=max(0, state.data_bytes - before.state.data_bytes), producer=PRODUCER
            )
            output.outputFacets = {"outputStatistics": statistics}
        return output

    def _name_of(self, id_: DatasetId) -> str:
        try:
            return str(self._storage.get(id_).handle)
        except OdfError:  # the input is not in this workspace
            return str(id_)


def _identity_facets(id_: DatasetId, block: Multihash | None) -> dict[str, DatasetFacet]:
    known = symlinks_dataset.Identifier(ID_NAMESPACE, str(id_), "TABLE")
    facets: dict[str, DatasetFacet] = {"symlinks": symlinks_dataset.SymlinksDatasetFacet([known], producer=PRODUCER)}
    if block is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(str(block), producer=PRODUCER)
    return facets


def _field_facet(field: DataField, number: int) -> schema_dataset.SchemaDatasetFacetFields:
    inner = field.type.inner if isinstance(field.type, Option) else field.type
    below = inner.fields if isinstance(inner, Struct) else ()
    fields = [_field_facet(child, place) for place, child in enumerate(below, 1)]
    return schema_dataset.SchemaDatasetFacetFields(
        field.name, type_text(field.type), ordinal_position=number, fields=fields
    )


def _sql_facet(dataset: StoredDataset) -> dict[str, JobFacet]:
    event = dataset.state.set_transform
    if event is None:
        return {}
    steps = [step.query for step in event.transform.queries or ()]
    query = ";\n".join(steps or [event.transform.query or ""])
    return {"sql": sql_job.SQLJobFacet(query, dialect=event.transform.engine, producer=PRODUCER)}


def _error_facet(message: str) -> dict[str, RunFacet]:
    cut = message[:MAX_MESSAGE_LENGTH]
    return {"errorMessage": error_message_run.ErrorMessageRunFacet(cut, "python", producer=PRODUCER)}


def _place_of(source: SetPollingSource) -> tuple[str, str] | None:
    """Return namespace and name of a source's location, without user and query, which may be secret."""
    match source.fetch:
        case FetchUrl(url=url):
            parts = urlsplit(shown_url(url))
            return (f"{parts.scheme}://{parts.netloc}", parts.path or "/")
        case FetchFilesGlob(path=path):
            return ("file", path)
    return None
