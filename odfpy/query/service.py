"""One service answers questions, whoever asks: command line, Python, REST, Flight SQL.

with workspace.query_service.run(Query("select count(*) from rates")) as answer:
    for batch in answer: ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from odfpy.chain.slices import slice_paths, slices_of
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.engine import contract
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.responses import as_error
from odfpy.errors import DatasetNotFound, EngineNotFound, InvalidValue, SchemaError, did_you_mean
from odfpy.query.answer import Answer, Input, Path, Prepared
from odfpy.query.catalogue import Catalogue, Dataset
from odfpy.query.tables import table_names

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Answer", "Dialect", "Input", "Prepared", "Query", "QueryService", "dialect_of"]

Dialect = Literal["spark", "datafusion"]
_GRAMMARS = {"spark": "spark", "datafusion": "postgres"}


@dataclass(frozen=True, slots=True)
class Query:
    """A question.

    Attributes:
        text: SQL; every dataset is a table under its name.
        dialect: which SQL, and which engine answers what is not answered at once.
        pins: the blocks as of which datasets are read; the others are read as they are now.
        skip: rows to leave out first.
        limit: rows at most.
        max_bytes: bytes of Arrow data at most; a larger answer is an error.
        timeout: seconds at most.
        parameters: values for `?`, in order.
        names: datasets under other names than those of the workspace.
    """

    text: str
    dialect: Dialect = "spark"
    pins: Mapping[DatasetId, Multihash] = field(default_factory=dict)
    skip: int = 0
    limit: int | None = None
    max_bytes: int | None = None
    timeout: float | None = None
    parameters: tuple[Any, ...] = ()
    names: Mapping[str, DatasetId] = field(default_factory=dict)


def dialect_of(engine: str | None) -> Dialect:
    """The dialect of an engine, by its name; None means the default.

    Raises:
        EngineNotFound: there is none of that name.
    """
    known: dict[str, Dialect] = {"spark": "spark", "datafusion": "datafusion"}
    name = (engine or "spark").lower()
    if name not in known:
        raise EngineNotFound(
            f"No engine is called {engine!r}",
            hint=did_you_mean(name, known, otherwise=f"Engines of this release: {', '.join(sorted(known))}."),
        )
    return known[name]


class QueryService:
    """Answers queries over the datasets of a catalogue.

    Attributes:
        catalogue: the datasets.
        engines: who answers what needs an engine.
    """

    def __init__(self, catalogue: Catalogue, engines: EngineRegistry) -> None:
        self.catalogue = catalogue
        self.engines = engines

    def run(self, query: Query) -> Answer:
        """Begin to answer; use it as a context manager.

        Raises:
            InvalidQuery: as the engine says.
            DatasetNotFound: with a suggestion.
        """
        with ExitStack() as stack:
            scratch = stack.enter_context(self.catalogue.scratch())
            tables, inputs = self._tables(query)
            out = scratch / "result"
            end = None if query.limit is None else query.skip + query.limit
            response = self.engines.get(query.dialect).sql(
                contract.SqlRequest(query.text, tuple(tables), str(out), end)
            )
            if not isinstance(response, contract.SqlResponseSuccess):
                raise as_error(response)
            rows = _Spooled(str(out), query.skip, stack.pop_all())
        return Answer(rows, tuple(inputs), cast("Path", query.dialect))

    def prepare(self, query: Query) -> Prepared:
        """What a query would give; it is planned and not run. Raises as `run` does."""
        with self.run(replace(query, skip=0, limit=0)) as answer:
            return Prepared(answer.schema, answer.inputs)

    def explain(self, query: Query) -> str:
        """How a query would be answered, for people; raises as `run` does."""
        prepared = self.prepare(query)
        return "\n".join([f"path: {query.dialect}", *(f"input: {one.alias}" for one in prepared.inputs)])

    def _tables(self, query: Query) -> tuple[list[contract.SqlTable], list[Input]]:
        tables, inputs = [], []
        for name in table_names(query.text, _GRAMMARS.get(query.dialect, query.dialect)):
            try:
                dataset: Dataset = self.catalogue.find(query.names.get(name, name))
            except (DatasetNotFound, InvalidValue):
                continue  # defined by the query itself, or unknown: the engine says so
            if (pin := query.pins.get(dataset.handle.id)) is not None:
                dataset = self.catalogue.at(dataset, pin)
            state = dataset.state
            if state.schema is None:
                raise SchemaError(f"{name} has no data yet, and no schema", hint="Pull or ingest something first.")
            paths = slice_paths(dataset.layout.data, slices_of(dataset.chain.in_order()))
            file = self.catalogue.schema_file(state.schema)
            tables.append(contract.SqlTable(name, str(file), tuple(map(str, paths)), state.vocab))
            inputs.append(Input(dataset.handle.id, dataset.handle.alias, dataset.chain.head()))
        return tables, inputs


class _Spooled:
    """Rows in a file."""

    def __init__(self, path: str, skip: int, files: ExitStack) -> None:
        import pyarrow as pa

        self._files = files
        self._skip = skip
        self._reader = files.enter_context(pa.ipc.open_stream(files.enter_context(pa.OSFile(path))))
        self.schema: pa.Schema = self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        left = self._skip
        for batch in self._reader:
            rows = batch.slice(left)
            left -= min(left, batch.num_rows)
            if rows.num_rows:
                yield rows

    def cancel(self) -> None:
        pass

    def close(self) -> None:
        self._files.close()
