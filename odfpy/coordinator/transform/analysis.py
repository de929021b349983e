"""Analysis of a query by its engine, before there is data to run it on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from odfpy.chain.events import AddPushSource, SetPollingSource, SetTransform, Source
from odfpy.chain.read_steps import ReadParquet
from odfpy.chain.sources import FetchEthereumLogs, FetchFilesGlob, FetchStep, FetchUrl
from odfpy.chain.state import ChainState
from odfpy.coordinator.ingest.event_times import remarks_on_columns
from odfpy.coordinator.lineage.graph import DependencyOrder
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.storage.stored_dataset import inputs_in
from odfpy.coordinator.transform.slices import schema_file
from odfpy.data.schemas.primary_key import primary_key_of
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.transform import TransformSql
from odfpy.engine import contract
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.responses import as_error
from odfpy.errors import EngineNotFound, IngestError, OdfError
from odfpy.query.dialects import DIALECTS, dialect_named
from odfpy.query.quoting import quote_datasets, quotes_missing

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

StateOf = Callable[[DatasetId], ChainState]


def analyze(
    storage: Storage,
    engines: EngineRegistry,
    transform: SetTransform,
    state: ChainState,
    state_of: StateOf,
    known: dict[DatasetId, DataSchema | None] | None = None,
) -> contract.AnalyzeResponseSuccess | None:
    """Analyze a query with the engine; return None if the schema of an input is not known yet.

    Args:
        storage: the workspace, for scratch files.
        engines: the engines of the workspace.
        transform: the normalized transform.
        state: the state of the derivative dataset's chain, for its vocabulary.
        state_of: returns the chain state of an input.
        known: known schemas of datasets; schemas determined here are added.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: the engine rejects the query.
    """
    return _Expected(storage, engines, state_of, {} if known is None else known).analyzed(transform, state)


@dataclass(frozen=True)
class _Expected:
    """Current or future schemas of datasets; None if a schema depends on data that has not arrived.

    A derivative without data gets the schema of its query, which depends on the schemas of its inputs. In chains of
    derivatives, each query is analyzed once.
    """

    storage: Storage
    engines: EngineRegistry
    state_of: StateOf
    known: dict[DatasetId, DataSchema | None]

    def analyzed(self, transform: SetTransform, state: ChainState) -> contract.AnalyzeResponseSuccess | None:
        """Return the engine's analysis of a query."""
        engine = self.engines.get(transform.transform.engine)
        inputs = []
        for item in transform.inputs:
            if not isinstance(item.dataset_ref, DatasetId):
                return None
            schema = self._schema_of(item.dataset_ref)
            if schema is None:
                return None
            file, source = schema_file(self.storage, schema), self.state_of(item.dataset_ref)
            key = primary_key_of(schema) if source.kind is DatasetKind.DERIVATIVE else source.primary_key
            inputs.append(contract.InputSchema(item.alias or str(item.dataset_ref), source.vocab, str(file), key))
        request = contract.AnalyzeRequest(transform.transform, state.vocab, tuple(inputs))
        response = engine.analyze(request)
        if isinstance(response, contract.AnalyzeResponseSuccess):
            return response
        error = as_error(response)
        quoted, hint = _with_quotes(transform)
        if hint is None:
            raise error
        again = engine.analyze(replace(request, transform=quoted))
        raise (
            error
            if not isinstance(again, contract.AnalyzeResponseSuccess)
            else error.with_message(error.message, hint=hint)
        )

    def _schema_of(self, dataset_id: DatasetId) -> DataSchema | None:
        if dataset_id not in self.known:
            order = DependencyOrder(self._derived_from, [dataset_id])
            for item in order.nodes:
                if item not in self.known:
                    self.known[item] = None if order.cycle_of(item) else self._found_out(self.state_of(item))
        return self.known[dataset_id]

    def _derived_from(self, dataset_id: DatasetId) -> list[DatasetId]:
        """Return the datasets whose schemas are needed to determine the schema of a dataset."""
        if dataset_id in self.known:
            return []
        state = self.state_of(dataset_id)
        return [] if state.schema is not None else inputs_in(state)

    def _found_out(self, state: ChainState) -> DataSchema | None:
        """Determine the schema of a dataset; the schemas of its inputs are known."""
        if state.schema is not None:
            return state.schema
        try:
            if state.set_transform is not None:
                analysis = self.analyzed(state.set_transform, state)
                return analysis.output_schema if analysis else None
        except EngineNotFound:
            return None  # cannot be analyzed, like datasets derived from it
        for source in state.sources:
            try:
                return schema_from_source(source, state, self.engines, self.storage.root)[0]
            except OdfError:
                return None  # the pull of the source reports its errors
        return None


def _with_quotes(transform: SetTransform) -> tuple[TransformSql, str | None]:
    """Return a transform with quoted input names, and a hint about unquoted ones; None if all are quoted."""
    sql = transform.transform
    if sql.engine.lower() not in DIALECTS:
        return sql, None
    dialect = dialect_named(sql.engine)
    names = {str(item.alias or item.dataset_ref).lower() for item in transform.inputs}
    hints = [quotes_missing(step.query, dialect, lambda name: name.lower() in names) for step in sql.steps]
    steps = tuple(
        replace(step, query=quote_datasets(step.query, dialect, lambda name: name.lower() in names))
        for step in sql.steps
    )
    return replace(sql.normalized(), queries=steps), " ".join(hint for hint in hints if hint is not None) or None


def schema_from_source(
    source: Source, state: ChainState, engines: EngineRegistry, root: Path
) -> tuple[DataSchema | None, tuple[str, ...]]:
    """Return the schema of a dataset after its first rows from a source, as far as it follows from the source alone.

    Args:
        source: the source of the dataset.
        state: the state of the dataset, which may already have a schema.
        engines: the engines, for preprocessing; the query is run on an empty input.
        root: the folder that relative paths of the source refer to.

    Returns:
        The schema, None if it depends on the data, and remarks for the user.

    Raises:
        EngineError: the engine rejects the preprocessing query.
        IngestError: the columns of the result cannot be merged; the message names the column.
        SchemaError: the columns do not fit the schema of the dataset; the message names the field.
    """
    from odfpy.data.schemas.arrow import to_arrow
    from odfpy.ingest.evolve import first_schema, next_schema
    from odfpy.ingest.normalize import normalize_rows
    from odfpy.ingest.preprocess import preprocess

    given = _read_schema(source, root)
    if given is None:
        return None, _remarks_on_unread(source)
    rows, remarks = preprocess(source.preprocess, given.empty_table(), engines)
    remarks += remarks_on_columns(source, rows.schema, state.vocab)
    recorded = state.schema
    known = {} if recorded is None else {field.name: field.type for field in to_arrow(recorded)}
    columns = normalize_rows(
        rows,
        strategy=source.merge,
        vocabulary=state.vocab,
        source_event_time=Timestamp(0),
        event_time_type=known.get(state.vocab.event_time_column),
    ).columns.schema
    if recorded is None:
        return first_schema(columns, state.vocab), remarks
    return next_schema(columns, recorded, state.vocab), remarks


def _read_schema(source: Source, root: Path) -> pa.Schema | None:
    """Return the columns as read: as declared, as fixed for the kind of source, or from a local Parquet file."""
    from odfpy.data.schemas.arrow import to_arrow
    from odfpy.ingest.read import schema_of

    is_of_ethereum = isinstance(source, SetPollingSource) and isinstance(source.fetch, FetchEthereumLogs)
    if is_of_ethereum and not isinstance(source.read, ReadParquet):
        raise IngestError(
            f"EthereumLogs give Parquet, which {source.read.KIND} does not read", hint="Say `read: {kind: Parquet}`."
        )
    declared = schema_of(source.read)
    if declared is not None:
        return to_arrow(declared)
    if isinstance(source, AddPushSource) or source.prepare or not isinstance(source.read, ReadParquet):
        return None
    if isinstance(source.fetch, FetchEthereumLogs):
        from odfpy.ingest.fetch.ethereum.step import columns_of

        return columns_of(source.fetch)
    return _schema_of_file(source.fetch, root)


def _schema_of_file(fetch_step: FetchStep, root: Path) -> pa.Schema | None:
    """Return the schema of the first file of a source, if it can be read without a transfer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from odfpy.data.schemas.arrow import plain_schema
    from odfpy.ingest.fetch import FetchContext, fetch

    if not isinstance(fetch_step, FetchFilesGlob) and not (
        isinstance(fetch_step, FetchUrl) and fetch_step.url.startswith("file:")
    ):
        return None
    try:
        context = FetchContext(now=Timestamp(0), root=root, scratch=root, environment=os.environ)
        first = next(iter(fetch(fetch_step, context)), None)
        return None if first is None else plain_schema(pq.read_schema(first.path))
    except (OdfError, OSError, pa.ArrowException):
        return None  # the pull reports missing or damaged files


def _remarks_on_unread(source: Source) -> tuple[str, ...]:
    """Return remarks on a preprocessing query whose input columns are not known yet."""
    if source.preprocess is None:
        return ()
    from odfpy.engine.sql.dialects import translate

    _, remarks = translate(source.preprocess.normalized())
    return (*remarks, "the preprocessing query will be checked when data arrives: the source declares no schema")
