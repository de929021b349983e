"""Reading the rows of a ticket: the cells of the source that its holder may see now, as the fragment selects them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import did_you_mean
from odfpy.federation.errors import WebObjectNotFound
from odfpy.federation.model.documents import DataSource, LocalData
from odfpy.federation.model.relations import relation_sql
from odfpy.federation.relay.catalog import LocalRows, seen_by_all
from odfpy.federation.relay.errors import TicketRefused
from odfpy.federation.relay.requesters import Identity
from odfpy.federation.relay.stored_catalog import StoredCatalog
from odfpy.federation.relay.tickets import Ticket
from odfpy.federation.sources.contract import BATCH_ROWS, ReadLimits, Source
from odfpy.federation.sources.opening import SourceContext, open_source
from odfpy.federation.sql.expressions import Column
from odfpy.federation.sql.fragment import Fragment, Output
from odfpy.federation.sql.source import source_sql
from odfpy.sharing.decisions import View

_GONE = "Run the query again: the configuration of the relay has changed."


class SourceReader:
    """A reader of the sources of a relay, under the grants of the ticket's holder; thread-safe."""

    def __init__(self, catalog: StoredCatalog, context: SourceContext, limits: ReadLimits) -> None:
        """
        Args:
            catalog: catalog of the relay.
            context: the resources that sources need.
            limits: limits of one read.
        """
        self._catalog = catalog
        self._context = context
        self._limits = limits
        self._lock = threading.Lock()
        self._open: dict[str, tuple[LocalData, Source]] = {}

    def close(self) -> None:
        """Release what is held between reads."""
        with self._lock:
            for _, source in self._open.values():
                source.close()
            self._open.clear()

    def read(self, ticket: Ticket, control: CancellationToken) -> pa.RecordBatchReader:
        """Read the rows of a ticket, lazily.

        Args:
            ticket: the ticket.
            control: lets another thread cancel it.

        Raises:
            TicketRefused: its holder may no longer see anything of the source, or the source was removed.
            SourceFailed: the source cannot be read; may also be raised while rows are consumed.
        """
        data, data_source, rows, columns = self._found(ticket)
        view = self.view(ticket)
        fragment = Fragment.parse(ticket.fragment.to_json(), columns)
        source = self._source(data)
        relation = relation_sql(data, data_source)
        schema = source.schema(relation, control)
        sql = source_sql(fragment, rows.expressions, relation, view, {}, source.engine, schema=schema)
        batches = source.read(sql, fragment.schema, self._limits, control)
        return pa.RecordBatchReader.from_batches(fragment.schema, self._while_granted(ticket, view, even(batches)))

    def _while_granted(self, ticket: Ticket, view: View, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches as long as the holder of their ticket may see the same cells as at the start."""
        for batch in batches:
            if self.view(ticket) != view:
                raise TicketRefused("The permissions for the source have changed", hint=_GONE)
            yield batch

    def view(self, ticket: Ticket) -> View:
        """Return the cells that the holder of a ticket may see now.

        Args:
            ticket: the ticket.

        Raises:
            TicketRefused: there are none.
        """
        view = seen_by_all([self._catalog.view(ticket.source, identity) for identity in ticket.seen_by])
        if view is None:
            raise TicketRefused("The source may no longer be read", hint=_GONE)
        return view

    def _found(self, ticket: Ticket) -> tuple[LocalData, DataSource, LocalRows, pa.Schema]:
        """Return the source of a ticket, its mapping, and the columns of its entity, as currently declared."""
        web = self._catalog.web
        name, _, part = ticket.source.partition("/")
        data, source = web.local_data.get(name), web.data_source(name, part)
        columns = self._catalog.columns(ticket.fragment.entity)
        mapped = self._catalog.local(ticket.fragment.entity)
        rows = next((local_rows for local_rows in mapped if local_rows.source == ticket.source), None)
        if data is None or source is None or columns is None or rows is None:
            raise TicketRefused("The source of the ticket no longer exists", hint=_GONE)
        return data, source, rows, columns

    def _source(self, data: LocalData) -> Source:
        with self._lock:
            known = self._open.get(data.name)
            if known is None or known[0] != data:
                # A source whose declaration was replaced is not closed here: another thread may be reading it.
                known = self._open[data.name] = data, open_source(data, self._context)
            return known[1]


def even(batches: Iterable[pa.RecordBatch], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Rebatch rows to one size, except for the last batch: a source's own batches reveal where hidden rows were
    removed.

    Args:
        batches: batches of one schema.
        rows: rows per batch.
    """
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        while count >= rows:
            joined = waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)
            yield joined.slice(0, rows)
            waiting, count = [joined.slice(rows)], count - rows
    if count:
        yield pa.concat_batches(waiting)


def names_of(catalog: StoredCatalog, wanted: str, caller: Identity) -> Sequence[str]:
    """Return the names of entities of which the caller may see something here, or perhaps at a peer.

    Args:
        catalog: catalog of the relay.
        wanted: substring of the names.
        caller: who makes the request.
    """

    def may_show(entity: str) -> bool:
        views = (catalog.view(source, caller) for source in catalog.sources(entity))
        return catalog.is_at_peers(entity) or any(view is not None for view in views)

    return sorted(name for name in catalog.web.entities if wanted in name and may_show(name))


def entities_of(catalog: StoredCatalog, wanted: str, caller: Identity) -> dict[str, pa.Schema]:
    """Return the columns of the entities that `names_of` returns, by name.

    Args:
        catalog: catalog of the relay.
        wanted: substring of the names.
        caller: who makes the request.
    """
    columns_by_name = {name: catalog.columns(name) for name in names_of(catalog, wanted, caller)}
    return {name: columns for name, columns in columns_by_name.items() if columns is not None}


def columns_of(catalog: StoredCatalog, entity: str, caller: Identity) -> pa.Schema:
    """Return the columns of an entity. An entity of which nothing is visible is indistinguishable from a missing one.

    Args:
        catalog: catalog of the relay.
        entity: name of the entity.
        caller: who makes the request.

    Raises:
        WebObjectNotFound: it does not exist; the message suggests a similar name.
    """
    entities = entities_of(catalog, "", caller)
    if entity not in entities:
        raise WebObjectNotFound(f"This relay has no entity {entity!r}", hint=did_you_mean(entity, list(entities)))
    return entities[entity]


def whole_entity(catalog: StoredCatalog, entity: str, caller: Identity) -> Fragment:
    """Return the question for all rows and columns of an entity.

    Args:
        catalog: catalog of the relay.
        entity: name of the entity.
        caller: who makes the request.

    Raises:
        WebObjectNotFound: it does not exist; the message suggests a similar name.
    """
    columns = columns_of(catalog, entity, caller)
    return Fragment(entity, tuple(Output(column.name, Column(column.name, column.type)) for column in columns))
