"""What the engine says of a query before there is anything to run it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from odfpy.chain.events import SetTransform
from odfpy.chain.state import ChainState
from odfpy.coordinator.slices import schema_file
from odfpy.coordinator.storage import Storage
from odfpy.data.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.engine import contract
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.responses import as_error
from odfpy.errors import OdfError

if TYPE_CHECKING:
    from pathlib import Path

StateOf = Callable[[DatasetId], ChainState]


def analyze(
    storage: Storage, engines: EngineRegistry, transform: SetTransform, state: ChainState, state_of: StateOf
) -> contract.AnalyzeResponseSuccess | None:
    """Let the engine look at a query; None when the schema of an input cannot be known yet.

    Args:
        storage: where files for the engine go.
        engines: the registry.
        transform: the normalized transform.
        state: the chain of the derivative dataset, for its vocabulary.
        state_of: the chain of an input.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: the engine refuses it.
    """
    engine = engines.get(transform.transform.engine)
    inputs = []
    for item in transform.inputs:
        if not isinstance(item.dataset_ref, DatasetId):
            return None
        source = state_of(item.dataset_ref)
        schema = expected_schema(storage, engines, source, state_of)
        if schema is None:
            return None
        file = schema_file(storage, schema)
        inputs.append(contract.InputSchema(item.alias or str(item.dataset_ref), source.vocab, str(file)))
    response = engine.analyze(contract.AnalyzeRequest(transform.transform, state.vocab, tuple(inputs)))
    if isinstance(response, contract.AnalyzeResponseSuccess):
        return response
    raise as_error(response)


def expected_schema(
    storage: Storage, engines: EngineRegistry, state: ChainState, state_of: StateOf
) -> DataSchema | None:
    """The schema that a dataset has, or will have once data comes; None when only the data can tell."""
    if state.schema is not None:
        return state.schema
    if state.kind is DatasetKind.DERIVATIVE:
        if state.set_transform is None:
            return None
        analysis = analyze(storage, engines, state.set_transform, state, state_of)
        return analysis.output_schema if analysis else None
    with storage.scratch() as scratch:
        try:
            return _schema_of_source(engines, state, scratch / "data")
        except OdfError:
            return None  # what is wrong with the source is for its own pull to say


def _schema_of_source(engines: EngineRegistry, state: ChainState, out: Path) -> DataSchema | None:
    """What an empty input would give."""
    from odfpy.data.arrow import to_arrow
    from odfpy.ingest.pipeline import ingest_rows
    from odfpy.ingest.preprocess import preprocess
    from odfpy.ingest.read import schema_of

    source = state.polling_source or next(iter(state.push_sources), None)
    schema = schema_of(source.read) if source else None
    if source is None or schema is None:
        return None
    rows, _ = preprocess(source.preprocess, to_arrow(schema).empty_table(), engines)
    epoch = Timestamp(0)
    ingested = ingest_rows(
        rows,
        strategy=source.merge,
        vocab=state.vocab,
        schema=None,
        slices=(),
        next_offset=0,
        system_time=epoch,
        source_event_time=epoch,
        out=out,
    )
    return ingested.schema
