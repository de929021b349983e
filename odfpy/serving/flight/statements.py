"""Planning answers: their columns, the blocks that are read, and the parts in which they can be fetched.

Nothing is executed for that, unless only an engine knows the columns: then it runs the query without rows.
"""

from __future__ import annotations

import hashlib
import secrets
import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.data.sql_text import OF_STRANGERS
from odfpy.query.dialects import dialect_named
from odfpy.query.plan import QueryPlan, plan
from odfpy.query.query import Query
from odfpy.query.service import QueryService
from odfpy.serving.flight.errors import UnknownStatement
from odfpy.serving.flight.parameters import parameter_schema
from odfpy.serving.flight.tickets import QueryTicket, Ticket
from odfpy.serving.http.budget import BudgetHolder

if TYPE_CHECKING:
    from odfpy.data.multihash import Multihash
    from odfpy.dataset.identity import DatasetId

_MAX_PARTS: Final = 8
_MIN_ROWS: Final = 500_000
"""Rows that are worth a connection of their own."""
_MAX_STATEMENTS: Final = 20_000
_MAX_BYTES: Final = 32 << 20
_MAX_BYTES_EACH: Final = 8 << 20
_MIN_SIZE: Final = 1000
_MAX_SCHEMAS: Final = 1000
_MAX_SCHEMA_SIZE: Final = 64 * 1024
"""Maximum serialized size of a cached schema in bytes."""


@dataclass(frozen=True)
class PlannedStatement:
    """The plan of a statement.

    Attributes:
        question: the question.
        schema: columns of the answer.
        parameters: schema of its parameters.
        pins: the block at which each dataset is read.
        parts: rows to skip and rows to return, for each part of the answer; None for a single part.
    """

    question: QueryTicket
    schema: pa.Schema
    parameters: pa.Schema
    pins: dict[DatasetId, Multihash]
    parts: tuple[tuple[int, int], ...] | None

    @property
    def num_rows(self) -> int:
        """Return the number of rows, -1 if unknown."""
        return -1 if self.parts is None else sum(rows for _, rows in self.parts)

    def tickets(self) -> list[Ticket]:
        """Return a ticket for each part."""
        name = secrets.token_hex(16)
        ticket = Ticket(name, self.question, self.pins)
        if self.parts is None:
            return [ticket]
        return [replace(ticket, skip=skip, limit=rows) for skip, rows in self.parts]


class Schemas:
    """A cache of the columns that engines have determined: the same query over the same blocks has them again.

    Thread-safe. If there are too many, the least recently used are evicted.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, pa.Schema] = OrderedDict()

    def get(self, query_plan: QueryPlan, question: QueryTicket, ask: Callable[[], pa.Schema]) -> pa.Schema:
        """Return the columns of the answer to a question.

        Args:
            query_plan: the query and the blocks it reads.
            question: the question.
            ask: determines them. Exceptions are propagated.
        """
        blocks = "".join(f"{table.input.id} {table.head}\n" for _, table in query_plan.tables)
        key = hashlib.sha256(Ticket(blocks, question).to_bytes()).digest()
        with self._lock:
            schema = self._known.pop(key, None)
        schema = ask() if schema is None else schema
        if schema.serialize().size > _MAX_SCHEMA_SIZE:
            return schema
        with self._lock:
            self._known[key] = schema
            if len(self._known) > _MAX_SCHEMAS:
                self._known.popitem(last=False)
        return schema


def plan_answer(service: QueryService, question: QueryTicket, schemas: Schemas) -> PlannedStatement:
    """Plan the answer to a question.

    Args:
        service: the query service.
        question: the question; parameters without a value are null for now.
        schemas: cache of columns.

    Raises:
        OdfError: as `QueryService.prepare`.
    """
    query = Query(
        question.text,
        dialect_named(question.dialect).name,
        parameters=question.parameters,
        text_limits=OF_STRANGERS,
    )
    query_plan = plan(service.resolver, query, is_bound=False)
    pins = {table.input.id: table.head for reference, table in query_plan.tables if "@" not in reference.dataset}
    is_plain = query_plan.path == "slices" and not query_plan.is_explained and query_plan.columns is not None
    schema = (
        query_plan.columns if is_plain else schemas.get(query_plan, question, lambda: service.prepare(query).schema)
    )
    return PlannedStatement(
        question, schema, parameter_schema(query_plan), pins, parts_of(query_plan) if is_plain else None
    )


def parts_of(query_plan: QueryPlan) -> tuple[tuple[int, int], ...] | None:
    """Divide the rows of a plain scan into parts, each of complete slices except for the first and the last.

    Returns:
        for each part, the rows before it and the rows in it; None for one that has to be read from its end.
    """
    simple, (scan,) = query_plan.simple, query_plan.scans
    if simple is None or simple.descending:
        return None
    first, last = simple.rows(scan.cut.num_rows, 0, None)
    if last < first:
        return ((0, 0),)
    ends = [slice_.data.offset_interval.end for slice_ in scan.slices]
    return tuple(cut_rows(first, last, ends))


def cut_rows(first: int, last: int, ends: Sequence[int]) -> list[tuple[int, int]]:
    """Cut a range of offsets at the ends of slices, into a few parts of reasonable size.

    Args:
        first: offset of the first row.
        last: offset of the last row.
        ends: offsets of the last rows of slices, ascending.
    """
    least = max(_MIN_ROWS, -(-(last - first + 1) // _MAX_PARTS))
    parts, start = [], first
    for end in [*(end for end in ends if end < last), last]:
        if end - start + 1 >= least or end == last:
            parts.append((start - first, end - start + 1))
            start = end + 1
    return parts


@dataclass(frozen=True)
class Statement:
    """A prepared statement.

    Attributes:
        session: the session that it belongs to, if any.
        who: its owner.
        question: the query, with the parameters bound so far.
    """

    session: str
    who: BudgetHolder
    question: QueryTicket

    @cached_property
    def size(self) -> int:
        """Return its approximate size in bytes."""
        return _MIN_SIZE + sum(map(sys.getsizeof, (self.question.text, *self.question.parameters)))


class Statements:
    """The prepared statements, by unguessable handles; thread-safe.

    If there are too many, or too large ones, the least recently used are evicted: first those of a caller who exceeds a
    fair share.
    """

    def __init__(self, most_bytes: int = _MAX_BYTES, most_bytes_each: int = _MAX_BYTES_EACH) -> None:
        """
        Args:
            most_bytes: maximum bytes of all of them.
            most_bytes_each: maximum bytes of those of one caller.
        """
        self._most_bytes = most_bytes
        self._most_bytes_each = most_bytes_each
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, Statement] = OrderedDict()
        self._sizes: Counter[BudgetHolder] = Counter()

    def add(self, statement: Statement) -> bytes:
        """Store a statement; returns its handle."""
        handle = secrets.token_hex(16).encode()
        with self._lock:
            self._put(handle, statement)
        return handle

    def get(self, handle: bytes) -> Statement:
        """Return the statement of a handle.

        Raises:
            UnknownStatement: it does not exist.
        """
        with self._lock:
            if handle not in self._known:
                raise UnknownStatement("There is no such prepared statement, or not any more", hint="Prepare it again.")
            self._known.move_to_end(handle)
            return self._known[handle]

    def replace(self, handle: bytes, statement: Statement) -> None:
        """Bind parameters of a statement; does nothing if it was closed in the meantime."""
        with self._lock:
            if handle in self._known:
                self._drop(handle)
                self._put(handle, statement)

    def close(self, handle: bytes) -> None:
        """Remove a statement."""
        with self._lock:
            if handle in self._known:
                self._drop(handle)

    def close_all(self, sessions: Collection[str]) -> None:
        """Remove the statements of some sessions."""
        with self._lock:
            for handle in [key for key, statement in self._known.items() if statement.session in sessions]:
                self._drop(handle)

    def _put(self, handle: bytes, statement: Statement) -> None:
        who = statement.who
        while self._sizes[who] and self._sizes[who] + statement.size > self._most_bytes_each:
            self._drop(next(key for key, prepared in self._known.items() if prepared.who == who))
        while self._known and (
            len(self._known) >= _MAX_STATEMENTS or self._sizes.total() + statement.size > self._most_bytes
        ):
            self._drop(next(iter(self._known)))
        self._known[handle] = statement
        self._sizes[who] += statement.size

    def _drop(self, handle: bytes) -> None:
        gone = self._known.pop(handle)
        self._sizes[gone.who] -= gone.size
        if not self._sizes[gone.who]:
            del self._sizes[gone.who]

    @property
    def size(self) -> int:
        """Return the total size in bytes."""
        return self._sizes.total()

    def __len__(self) -> int:
        return len(self._known)
