"""Requests of queries as JSON in the format of the reference node, as REST accepts and commitments sign them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from odfpy.codec.tree import from_tree, to_tree
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import U64
from odfpy.data.sql_text import OF_STRANGERS
from odfpy.dataset.identity import DatasetId
from odfpy.errors import EngineNotFound, UsageError
from odfpy.query.answer import QueryInput
from odfpy.query.query import Query
from odfpy.query.wire.layouts import DataFormat
from odfpy.query.wire.schema_formats import SchemaFormat

DEFAULT_LIMIT: Final = 100
MAX_ROWS: Final = 100_000_000
"""Maximum limit of a request."""

_ENGINES: Final = {"SqlSpark": "spark", "SqlDataFusion": "datafusion"}
_DIALECTS: Final = {engine: dialect for dialect, engine in _ENGINES.items()}
_OTHERS: Final = ("SqlFlink", "SqlRisingWave")


class Include(Enum):
    """An optional part of an answer, besides its rows."""

    INPUT = "Input"
    PROOF = "Proof"
    SCHEMA = "Schema"


@dataclass(frozen=True, slots=True)
class DatasetState:
    """A dataset under its name in the query.

    Attributes:
        alias: the name in the query.
        block_hash: the block at which it is read, None for the head.
    """

    id: DatasetId
    alias: str
    block_hash: Multihash | None = None

    @property
    def says_block(self) -> bool:
        """True if the name contains a block reference (`rates@v1`): then `block_hash` only applies to that name."""
        return "@" in self.alias


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """A query with the format of its answer, as accepted by REST and hashed in commitments.

    Attributes:
        query: SQL.
        query_dialect: `SqlDataFusion` or `SqlSpark`.
        data_format: layout of the rows.
        include: optional parts of the answer, in order, each once.
        schema_format: notation of the schema.
        datasets: names in the query with their blocks; other names are those of the workspace, at their heads.
        skip: number of rows to skip.
        limit: maximum number of rows.
    """

    query: str
    query_dialect: str
    data_format: DataFormat
    include: tuple[Include, ...]
    schema_format: SchemaFormat | None
    datasets: tuple[DatasetState, ...] | None
    skip: U64
    limit: U64

    @classmethod
    def to(
        cls,
        query: str,
        *,
        engine: str = "datafusion",
        data_format: DataFormat = DataFormat.ARRAY_OF_STRUCTURES,
        include: Iterable[Include] = (),
        schema_format: SchemaFormat | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> QueryRequest:
        """Return a request to an engine, with datasets at their heads.

        Args:
            query: the text.
            engine: name of the engine.
            data_format: layout of the rows.
            include: optional parts of the answer.
            schema_format: notation of the schema, None for none.
            limit: maximum number of rows.
        """
        dialect = _DIALECTS[engine]
        return cls(query, dialect, data_format, tuple(include), schema_format, None, 0, limit).completed()

    @classmethod
    def parse(cls, tree: Any) -> QueryRequest:
        """Parse a request from JSON; everything except the query is optional.

        Raises:
            TreeError: the JSON does not have the form of a request; the message names the position.
        """
        absent: dict[str, Any] = {
            "queryDialect": "SqlDataFusion",
            "dataFormat": DataFormat.ARRAY_OF_STRUCTURES.value,
            "include": [],
            "skip": 0,
            "limit": DEFAULT_LIMIT,
        }
        return from_tree(cls, {**absent, **tree} if isinstance(tree, dict) else tree, ("input",)).completed()

    def completed(self) -> QueryRequest:
        """Return the request with implied parts: a proof requires the input, and a schema format the schema."""
        wanted = {*self.include}
        wanted |= {Include.INPUT} if Include.PROOF in wanted else set()
        wanted |= {Include.SCHEMA} if self.schema_format is not None else set()
        form = self.schema_format
        if form is None and Include.SCHEMA in wanted:
            form = SchemaFormat.ARROW_JSON
        dialect = next(
            (engine for engine in _ENGINES if engine.lower() == self.query_dialect.lower()), self.query_dialect
        )
        return replace(
            self, query_dialect=dialect, include=tuple(part for part in Include if part in wanted), schema_format=form
        )

    def tree(self) -> dict[str, Any]:
        """Return the request as JSON, the form that a commitment hashes."""
        found: dict[str, Any] = to_tree(self)
        return found

    @property
    def engine(self) -> str:
        """The name of the engine.

        Raises:
            EngineNotFound: this release has no engine for the dialect.
        """
        found = _ENGINES.get(self.query_dialect)
        if found is not None:
            return found
        known = f"One of: {', '.join(_ENGINES)}."
        if self.query_dialect in _OTHERS:
            raise EngineNotFound(f"There is no engine here for the dialect {self.query_dialect}", hint=known)
        raise EngineNotFound(f"No dialect is called {self.query_dialect!r}", hint=known)

    def to_query(self, *, max_rows: int | None = None, max_bytes: int | None = None) -> Query:
        """Return the query for the query service.

        Args:
            max_rows: maximum number of rows for any caller; one more is requested, to detect that there are more.
            max_bytes: maximum number of bytes for any caller.

        Raises:
            EngineNotFound: there is no engine for the dialect.
            UsageError: the datasets are named inconsistently, or the limit is too large.
        """
        if self.limit > MAX_ROWS or self.skip > MAX_ROWS:
            raise UsageError(f"skip and limit are {MAX_ROWS} at most", hint="Read by offset instead.")
        states = self.datasets or ()
        names = {state.alias: state.id for state in states}
        bound = [(state, state.block_hash) for state in states if state.block_hash is not None]
        pins = {state.id: block for state, block in bound if not state.says_block}
        blocks = {state.alias: block for state, block in bound if state.says_block}
        for state in states:
            block = blocks.get(state.alias) if state.says_block else pins.get(state.id)
            if names[state.alias] != state.id or block != state.block_hash:
                raise UsageError(
                    f"datasets: {state.alias} stands for two datasets, or for two blocks of one",
                    hint="Name each dataset once; odf_as_at('NAME', ...) in the query is for several moments of one.",
                )
        return Query(
            self.query,
            self.engine,
            pins,
            skip=self.skip,
            limit=self.limit if max_rows is None else min(self.limit, max_rows + 1),
            max_bytes=max_bytes,
            names=names,
            blocks=blocks,
            text_limits=OF_STRANGERS,
        )

    def bound_to(self, inputs: Iterable[QueryInput]) -> QueryRequest:
        """Return the request with its datasets bound, by id, to the blocks from which it was answered."""
        given = {state.id: state.alias for state in self.datasets or () if not state.says_block}
        states = [
            DatasetState(source.id, source.name or given.get(source.id, str(source.alias)), source.block_hash)
            for source in inputs
        ]
        return replace(self, datasets=tuple(sorted(states, key=lambda state: (str(state.id), state.alias))))
