"""A local workspace as a backend."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from odfpy.client.backend import DatasetFacts, RowStream
from odfpy.coordinator.storage.results import DatasetSummary, LineageNode
from odfpy.coordinator.workspace import Workspace
from odfpy.provenance.model import Provenance
from odfpy.query.moments import PointInTime, moment_word
from odfpy.query.query import Query
from odfpy.query.stored_rows import StoredRows, stored_rows


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """The backend for a local workspace."""

    workspace: Workspace

    @property
    def place(self) -> str:
        """The name of the folder without its path, since notebook output may be shared."""
        return f"workspace {self.workspace.root.name}"

    def ask(self, query: Query) -> AbstractContextManager[RowStream]:
        """Implement `Backend`."""
        return self.workspace.queries.service.run(query)

    def stored_rows(self, query: Query) -> StoredRows | None:
        """Implement `Backend`."""
        return stored_rows(self.workspace.queries.service.resolver, query)

    def as_at(self, query: Query, moment: PointInTime) -> Query:
        """Implement `Backend`."""
        from odfpy.query.pinning import pinned_as_at

        return pinned_as_at(self.workspace.queries.service.resolver, query, moment_word(moment))

    def datasets(self) -> list[DatasetFacts]:
        """Implement `Backend`."""
        return [_facts(summary) for summary in self.workspace.datasets.all()]

    def dataset(self, name: str) -> DatasetFacts:
        """Implement `Backend`."""
        state = self.workspace.datasets.state(name)
        info = state.info
        return replace(
            _facts(self.workspace.datasets.summary(name)),
            schema=state.schema,
            vocabulary=state.vocab,
            description=info.description if info else None,
        )

    def lineage(self, name: str) -> LineageNode:
        """Implement `Backend`."""
        return self.workspace.graph.lineage(name)

    def provenance(self, name: str, offset: int, column: str | None, depth: int | None, check: bool) -> Provenance:
        """Implement `Backend`."""
        return self.workspace.queries.provenance(name, offset, column=column, depth=depth, check=check)

    def close(self) -> None:
        """Do nothing: engines are shared, and stop by themselves."""


def _facts(summary: DatasetSummary) -> DatasetFacts:
    return DatasetFacts(
        name=str(summary.handle),
        id=str(summary.handle.id),
        kind=summary.kind.value,
        head=str(summary.head),
        num_records=summary.num_records,
        watermark=None if summary.watermark is None else str(summary.watermark),
    )
