"""Transforms: queries of derivative datasets, and of preprocessing (ODF specification, "Transform")."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, TypeAlias

from odfpy.data.scalars import SingleMemberUnion
from odfpy.errors import UsageError
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQueryStep:
    """A query; later steps can read its result under its alias. The last step has no alias and computes the output."""

    alias: str | None = None
    query: str


@dataclass(frozen=True, slots=True)
class TemporalTable:
    """An input that the query reads as a temporal table."""

    name: str
    primary_key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TransformSql:
    """SQL for a named engine.

    Attributes:
        engine: name in the registry of engines.
        version: version of the engine that the author requests.
        query: shorthand for a single step; never stored in a chain, see `normalized`.
        queries: the steps.
        temporal_tables: inputs that the queries read as temporal tables.
    """

    KIND: ClassVar[str] = "Sql"

    engine: str
    version: str | None = None
    query: str | None = None
    queries: tuple[SqlQueryStep, ...] | None = None
    temporal_tables: tuple[TemporalTable, ...] | None = None

    def normalized(self) -> TransformSql:
        """Return the stored form: `query` unset, `queries` not empty.

        Raises:
            UsageError: both or neither of `query` and `queries` are given, or the aliases are inconsistent.
        """
        if self.query is not None:
            if self.queries:
                raise UsageError("A transform has either `query` or `queries`, not both")
            return replace(self, query=None, queries=(SqlQueryStep(query=self.query),))
        steps = self.queries or ()
        if not steps:
            raise UsageError("A transform needs a `query`, or `queries` with at least one step")
        return self

    @property
    def steps(self) -> tuple[SqlQueryStep, ...]:
        """The steps of the normalized form."""
        return self.normalized().queries or ()


Transform: TypeAlias = Annotated[TransformSql, SingleMemberUnion()]
