"""A query from its SQL to its answer, over any way to the relays.

1. The query is split into fragments and a rest.
2. The fragments are asked, all at the same time; answers name parts.
3. The parts are read into files, several at the same time; one that breaks off is missing as a whole.
4. The rest runs over the files, in a process apart.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa

from odfpy.engine.control import Control
from odfpy.engine.datafusion.apart import IsolatedQuery, fork_server
from odfpy.engine.row_stream import RowStream
from odfpy.engine.sql.files import FilesRequest, FileTable
from odfpy.errors import OdfError
from odfpy.federation.asking.answer import WebAnswer
from odfpy.federation.asking.asker import Asker
from odfpy.federation.asking.explain import explained, without_explain
from odfpy.federation.asking.options import DEFAULTS, AskOptions
from odfpy.federation.asking.parts import PartReader, ReadPart
from odfpy.federation.relay.bounds import Received
from odfpy.federation.relay.errors import IncompleteAnswer
from odfpy.federation.relay.question import Answer, Missing, Part, Wants
from odfpy.federation.sources.contract import Batches
from odfpy.federation.sql.expressions import Constant
from odfpy.federation.sql.fragment import Fragment, Output
from odfpy.federation.sql.split import split

AT_ONCE: Final = 16
"""Parts that are read at the same time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query whose parts are known.

    Attributes:
        query: its id.
        sql: as it was asked.
        fragments: by name.
        rest: SQL over the fragments that gives the answer.
        answers: of the relays, by fragment.
    """

    query: str
    sql: str
    fragments: Mapping[str, Fragment]
    rest: str
    answers: Mapping[str, Answer]

    @property
    def missing(self) -> tuple[Missing, ...]:
        """The relays that could not be asked."""
        return tuple(dict.fromkeys(one for answer in self.answers.values() for one in answer.missing))

    @property
    def relays(self) -> tuple[str, ...]:
        """The relays of all parts."""
        return tuple(part.relay for answer in self.answers.values() for part in answer.parts)


def asked(
    asker: Asker,
    sql: str,
    ends: float,
    wants: Wants,
    query: str | None = None,
    *,
    dialect: str = "datafusion",
    prefix: str = "f",
) -> Asked:
    """Split a query, and ask its fragments.

    Args:
        asker: the way to the relays.
        sql: over the entities.
        ends: when the time is over, by the monotonic clock.
        wants: what is wished for beside the rows.
        query: its id; a new one by default.
        dialect: of the query: `datafusion` or `spark`.
        prefix: names of fragments begin with it.

    Raises:
        InvalidQuery: the query is none.
        OdfError: the relay does not answer, or refuses.
    """
    entities = asker.entities(_left(ends))
    parts = split(sql, entities, dialect, prefix)
    fragments = {name: _with_rows(fragment) for name, fragment in parts.fragments.items()}
    query = query or secrets.token_hex(16)
    answers = asker.ask(query, fragments, wants, _left(ends)) if fragments else {}
    return Asked(query, sql, fragments, parts.rest, answers)


def answered(asker: Asker, sql: str, options: AskOptions = DEFAULTS, control: Control | None = None) -> WebAnswer:
    """Answer a query, or explain it.

    Args:
        asker: the way to the relays.
        sql: of DataFusion, over the entities; perhaps with EXPLAIN or EXPLAIN ANALYZE before it.
        options: bounds, and what is wanted beside.
        control: stops it from elsewhere; then the relays are told.

    Raises:
        InvalidQuery: the query is none.
        IncompleteAnswer: a relay is missing, and that is not wanted.
        QueryCancelled, QueryTimedOut: it was stopped.
        OdfError: the relay does not answer, or refuses.
    """
    sql, how = without_explain(sql)
    ends = time.monotonic() + options.seconds
    wants = Wants(explained=how is not None, single_use=options.single_use, signed=options.signed)
    query = secrets.token_hex(16)
    with ExitStack() as stack:
        inner = stack.enter_context(Control(options.seconds, within=control))
        with _TellingRelays(asker, query, inner):
            try:
                found = asked(asker, sql, ends, wants, query)
            except OdfError:
                inner.check()  # relays refuse what was cancelled
                raise
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="odf-web-")))
            read: Sequence[ReadPart] = ()
            if how != "plan":
                reader = PartReader(asker, folder, ends, Received(options.received), inner, options.signed)
                read = read_parts(reader, found)
        missing = all_missing(found, read, require_complete=options.require_complete)
        rows: RowStream
        if how is not None:
            table = explained(found.answers, read, found.rest)
            rows = Batches(table.schema, iter(table.to_batches()))
        else:
            rows = rest_rows(found, read, options.memory, inner)
        stack.callback(rows.close)
        return WebAnswer(query, rows, found.relays, missing, read, stack.pop_all())


def read_parts(reader: PartReader, found: Asked) -> list[ReadPart]:
    """Read all parts of a query, several at the same time.

    Args:
        reader: reads one.
        found: the query.

    Raises:
        QueryCancelled, QueryTimedOut: it was stopped.
    """
    wanted = [
        (name, number, part, found.fragments[name].schema)
        for name, answer in found.answers.items()
        for number, part in enumerate(answer.parts)
    ]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        try:
            begun = {at: threads.submit(reader.read, *wanted[at]) for at in _in_turn([one[2] for one in wanted])}
            return [begun[at].result() for at in range(len(wanted))]
        except BaseException:
            reader.control.cancel()  # or the threads would read on, and be waited for
            raise


def _in_turn(parts: Sequence[Part]) -> list[int]:
    """Numbers of parts by turns of their places: one place with many, which are slow, does not stand before others."""
    turns: dict[str, int] = {}
    numbered = []
    for at, part in enumerate(parts):
        turns[part.location] = turns.get(part.location, -1) + 1
        numbered.append((turns[part.location], at))
    return [at for _, at in sorted(numbered)]


def rest_rows(found: Asked, read: Sequence[ReadPart], memory: int, control: Control) -> RowStream:
    """The rows of the answer, made of the parts.

    Args:
        found: the query.
        read: its parts.
        memory: bytes that it may take.
        control: stops it from elsewhere.

    Raises:
        OdfError: the rest of the query cannot be run.
    """
    tables = []
    for name, fragment in found.fragments.items():
        paths = tuple(str(path) for one in read if one.fragment == name for path in one.paths)
        tables.append(FileTable(name, "parquet", paths, fragment.schema.serialize().to_pybytes()))
    return IsolatedQuery(fork_server(memory), FilesRequest(found.rest, tuple(tables)), control)


class _TellingRelays:
    """Tell the relays when a query is stopped, as long as the block lasts."""

    def __init__(self, asker: Asker, query: str, control: Control) -> None:
        self._tell = lambda: asker.cancel(query)
        self._control = control

    def __enter__(self) -> None:
        self._control.on_stop(self._tell)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, Exception):  # Ctrl-C
            self._control.cancel()
        self._control.forget(self._tell)


def all_missing(found: Asked, read: Sequence[ReadPart], *, require_complete: bool) -> tuple[Missing, ...]:
    """The relays whose rows are not there.

    Args:
        found: the query.
        read: its parts.
        require_complete: whether there may be none.

    Raises:
        IncompleteAnswer: there are some, and may not be.
    """
    missing = tuple(dict.fromkeys([*found.missing, *(one.missing for one in read if one.missing is not None)]))
    if missing and require_complete:
        raise IncompleteAnswer(
            f"Rows are missing: {'; '.join(f'{one.relay}: {one.why}' for one in missing)}",
            hint="Without --require-complete, the answer has the rows of all others.",
        )
    return missing


def _left(ends: float) -> float:
    return max(0.1, ends - time.monotonic())


def _with_rows(fragment: Fragment) -> Fragment:
    """The fragment with something to count, where only the number of its rows matters: files need a column."""
    if fragment.outputs:
        return fragment
    return replace(fragment, outputs=(Output("row", Constant(True, pa.bool_())),))
