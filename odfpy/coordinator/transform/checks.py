"""Checks of a dataset before it is created or changed: its queries are analyzed, or run on empty inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from odfpy.chain.events import SetTransform, Source
from odfpy.chain.sources import MergeAppend, MergeLedger
from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.transform.analysis import StateOf, analyze, schema_from_source
from odfpy.coordinator.transform.run import OUR_ENGINES
from odfpy.data.schemas.evolution import extend_with_result, new_fields_optional
from odfpy.data.schemas.schema import DataSchema
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.engine.contract import ROW_BY_ROW, AnalyzeResponseSuccess
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.sql.dialects import KNOWN
from odfpy.errors import DatasetNotFound, EngineNotFound, OdfError

_LATER: Final = "the query will be checked when all inputs exist"


def check_sources(state: ChainState, engines: EngineRegistry, storage: Storage) -> tuple[str, ...]:
    """Check the sources of a root dataset: schema, preprocessing query, merge strategy, and the recorded schema.

    A new dataset may have a source that cannot be ingested yet: it is added, with a remark. A dataset with data must
    remain usable.

    Args:
        state: the state of its chain.
        engines: the engines of the workspace.
        storage: the workspace.

    Returns:
        Remarks for the user.

    Raises:
        EngineError, IngestError, SchemaError: an error that would make the next pull fail for any data.
    """
    remarks = [remark for source in state.sources for remark in _remarks(source, state, engines, storage.root)]
    return tuple(dict.fromkeys(remarks))


def _remarks(source: Source, state: ChainState, engines: EngineRegistry, root: Path) -> tuple[str, ...]:
    try:
        return schema_from_source(source, state, engines, root)[1]
    except OdfError as error:
        if state.schema is not None:
            raise
        return (
            f"no data can be ingested like this: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""),
        )


def remarks_on_sources(before: ChainState, after: ChainState) -> tuple[str, ...]:
    """Return remarks on the effect of changed sources on data that was already ingested.

    Args:
        before: the state of a root dataset.
        after: the state with the new sources.
    """
    return (*_on_other_sources(before, after), *_on_coarser_key(before, after))


def _on_other_sources(before: ChainState, after: ChainState) -> tuple[str, ...]:
    if before.polling_source is not None and after.polling_source is None:
        return ("the polling source is disabled: the manifest has push sources instead",)
    names = {source.source_name for source in after.push_sources}
    gone = [source.source_name for source in before.push_sources if source.source_name not in names]
    remarks = tuple(f"the push source {name!r} is disabled: the manifest does not have it" for name in gone)
    if len(after.source_states) < len(before.source_states) and after.polling_source is not None:
        return (*remarks, "the source fetches from another location: the next pull ingests everything from there")
    old, new = before.polling_source, after.polling_source
    if old is not None and new is not None and old.merge != new.merge and before.source_states:
        return (*remarks, "only `odf pull --force` merges previously ingested rows again")
    return remarks


def _on_coarser_key(before: ChainState, after: ChainState) -> tuple[str, ...]:
    """Return a remark if current rows may have equal new keys, so that later rows correct only one of them."""
    if not before.num_records or all(isinstance(source.merge, MergeLedger) for source in after.sources):
        return ()
    old, new = before.primary_key, after.primary_key
    if after.kind is not DatasetKind.ROOT or new is None or (old is not None and set(old) <= set(new)):
        return ()
    remark = (
        f"the primary key is now {', '.join(new)}: of current rows with the same key, only the last one counts from"
        " now on. The others are not retracted, so datasets derived from this one keep them. If there are such rows,"
        " use a new dataset"
    )
    return (remark,)


def check_transform(
    state: ChainState,
    engines: EngineRegistry,
    storage: Storage,
    state_of: StateOf,
    absent: Mapping[DatasetId, str],
    known: dict[DatasetId, DataSchema | None],
) -> tuple[str, ...]:
    """Analyze the query of a derivative dataset with the engine.

    Args:
        state: the state of the dataset.
        engines: the engines of the workspace.
        storage: the workspace, for scratch files.
        state_of: returns the chain state of an input.
        absent: remarks on missing inputs, by placeholder id.
        known: known schemas of datasets; schemas determined here are added.

    Returns:
        Remarks for the user.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: the engine rejects the query.
        EngineNotFound: the engine does not exist.
        SchemaError: the result does not fit the schema of the dataset; the message names the field.
    """
    transform = state.set_transform
    if transform is None:
        return ()
    remarks = tuple(remark for item in transform.inputs for key, remark in absent.items() if key == item.dataset_ref)
    try:
        engines.get(transform.transform.engine)
    except EngineNotFound:
        if transform.transform.engine.lower() not in KNOWN:
            raise
        name = transform.transform.engine
        return (*remarks, f"the engine {name} is not part of odfpy: the dataset can be copied, but not pulled here")
    if remarks:
        return (*remarks, _LATER)
    try:
        analysis = analyze(storage, engines, transform, state, state_of, known)
    except DatasetNotFound:
        if not absent:
            raise
        return (_LATER,)  # a dataset that its inputs are derived from is missing
    if analysis is None:
        return ("the query will be checked at the first pull, when the schema of its inputs is known",)
    if state.schema is not None and analysis.output_schema is not None:
        system_columns = (
            state.vocab.offset_column,
            state.vocab.operation_type_column,
        )  # the types of these are retained
        recorded, result = _without(state.schema, system_columns), _without(analysis.output_schema, system_columns)
        extend_with_result(recorded, new_fields_optional(recorded, result))
    may_correct = any(
        _may_correct(state_of(item.dataset_ref)) for item in transform.inputs if isinstance(item.dataset_ref, DatasetId)
    )
    return (*analysis.notes, *_on_change(state, analysis, may_correct=may_correct), *_on_version(transform, engines))


def _on_version(transform: SetTransform, engines: EngineRegistry) -> tuple[str, ...]:
    """Return a remark if the manifest requests another version of the engine."""
    asked, engine = transform.transform.version, engines.get(transform.transform.engine)
    if asked is None or asked.startswith(OUR_ENGINES):
        return ()
    wanted = asked if "/" in asked else f"{engine.name}/{asked}"  # 4.3 matches any 4.3.x, but not 14.3
    if any(f"{part}.".startswith(f"{wanted}.") for part in engine.version.split()):
        return ()
    return (f"the query asks for version {asked} of {engine.name}; it will be run with {engine.version}",)


def _on_change(state: ChainState, analysis: AnalyzeResponseSuccess, *, may_correct: bool) -> tuple[str, ...]:
    """Return remarks on the effect of a changed query on existing rows."""
    if not state.query_changed:
        return ()
    if any(step.query_class != ROW_BY_ROW for step in analysis.steps):
        return ("the query has changed: the next pull corrects the rows so far",)
    stays = "the query has changed, row by row: it applies to new rows; earlier rows stay"
    return (stays, _TAKES_BACK_OTHERS) if may_correct else (stays,)


_TAKES_BACK_OTHERS: Final = (
    "an input may correct earlier rows: such corrections take back what the new query makes of these rows, not the rows"
    " that are here. `odf compact --keep-metadata-only` lets the next pull apply the query to all rows"
)


def _may_correct(state: ChainState) -> bool:
    """Return whether a dataset may retract or correct rows; datasets with append-only sources never do."""
    if state.kind is not DatasetKind.ROOT:
        return True
    return any(not isinstance(source.merge, (MergeAppend, MergeLedger)) for source in state.sources)


def _without(schema: DataSchema, names: Collection[str]) -> DataSchema:
    return DataSchema(tuple(field for field in schema.fields if field.name not in names))
