"""Execution of a query from SQL to its answer, over any implementation of the relay client.

1. The query is split into fragments and a rest.
2. The relays are queried for all fragments at the same time; their answers name parts.
3. The parts are read into files concurrently; a part whose stream breaks off counts as missing altogether.
4. The rest runs over the files, in a separate process.

Planning may use 4/5 of the remaining time, then reading 4/5 of what is left; relays that are late count as
missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.datafusion.isolated import IsolatedQuery, fork_server
from odfpy.engine.row_stream import RowStream
from odfpy.engine.sql.files import FilesRequest, FileTable
from odfpy.errors import OdfError
from odfpy.federation.execution.answer import WebAnswer
from odfpy.federation.execution.concurrent_calls import call_concurrently
from odfpy.federation.execution.explain import explained, without_explain
from odfpy.federation.execution.options import DEFAULTS, QueryOptions
from odfpy.federation.execution.parts import PartReader, ReadPart
from odfpy.federation.execution.plan import StartedQuery, WebPlan, planned
from odfpy.federation.execution.relay_client import RelayClient
from odfpy.federation.relay.bounds import Received
from odfpy.federation.relay.errors import IncompleteAnswer
from odfpy.federation.relay.question import MAX_WAIT, AnswerOptions, MissingRelay, Part
from odfpy.federation.relay.relay import MARGIN
from odfpy.federation.sources.contract import SourceBatches
from odfpy.federation.sql.splitting.own_names import with_own_names

AT_ONCE: Final = 16
"""Parts that are read at the same time."""


def start_query(
    client: RelayClient,
    sql: str,
    ends: float,
    options: AnswerOptions,
    query: str | None = None,
    *,
    dialect: str = "datafusion",
    prefix: str = "f",
) -> StartedQuery:
    """Split a query, and send its fragments.

    Args:
        client: the client of the relays.
        sql: over the entities.
        ends: deadline, by the monotonic clock.
        options: requested additions to the rows.
        query: its id; by default that of its plan.
        dialect: dialect of the query: `datafusion` or `spark`.
        prefix: prefix of the names of fragments.

    Raises:
        InvalidQuery: the query is invalid.
        OdfError: the relay does not answer, or refuses.
    """
    plan = planned(sql, client.entities(_left(ends)), dialect=dialect, prefix=prefix)
    return start_plan(client, plan, ends, options, query)


def start_plan(
    client: RelayClient, plan: WebPlan, ends: float, options: AnswerOptions, query: str | None = None
) -> StartedQuery:
    """Send the fragments of a query.

    Args:
        client: the client of the relays.
        plan: the query.
        ends: deadline, by the monotonic clock.
        options: requested additions to the rows.
        query: its id; by default that of the plan.

    Raises:
        OdfError: the relay does not answer, or refuses.
    """
    query = query or plan.query
    seconds = min(_left(ends) * (1 - MARGIN), MAX_WAIT)
    answers = client.ask(query, plan.fragments, options, seconds) if plan.fragments else {}
    return StartedQuery(plan, query, answers)


def execute(
    client: RelayClient,
    sql: str,
    options: QueryOptions = DEFAULTS,
    control: CancellationToken | None = None,
    *,
    check: Callable[[WebPlan], object] = lambda _: None,
) -> WebAnswer:
    """Answer a query, or explain it.

    Args:
        client: the client of the relays.
        sql: a DataFusion query over the entities, optionally prefixed with EXPLAIN or EXPLAIN ANALYZE.
        options: limits, and requested additions.
        control: lets another thread cancel it; the relays are then notified.
        check: called with the query before it is sent.

    Raises:
        InvalidQuery: the query is invalid.
        IncompleteAnswer: a relay is missing, and the answer must be complete.
        QueryCancelled, QueryTimedOut: the query was stopped.
        OdfError: the relay does not answer, or refuses.
    """
    sql, how = without_explain(sql)
    ends = time.monotonic() + options.seconds
    beside = AnswerOptions(explained=how is not None, single_use=options.single_use, signed=options.signed)
    with ExitStack() as stack:
        inner = stack.enter_context(CancellationToken(options.seconds, parent=control))
        plan = planned(sql, client.entities(_left(ends)))
        check(plan)
        if how is None:
            fork_server(options.memory).begin()  # started early, to be ready when the parts are
        with _NotifyingRelays(client, plan.query, inner):
            try:
                inner.check()
                started = start_plan(client, plan, ends, beside)
            except OdfError:
                inner.check()  # relays reject canceled queries
                raise
            # An abandoned thread may be about to write into it.
            temporary = TemporaryDirectory(prefix="odf-web-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(temporary))
            read: Sequence[ReadPart] = ()
            if how != "plan":
                until = time.monotonic() + _left(ends) * (1 - MARGIN)
                reader = PartReader(client, folder, until, Received(options.received), inner, options.signed)
                read = read_parts(reader, started)
        missing = missing_relays(started, read, require_complete=options.require_complete)
        rows: RowStream
        if how is not None:
            table = explained(started.answers, read, started.rest)
            rows = SourceBatches(table.schema, iter(table.to_batches()))
        else:
            rows = rest_rows(started, read, options.memory, inner)
        stack.callback(rows.close)
        return WebAnswer(started, rows, started.relays, missing, read, stack.pop_all())


def read_parts(reader: PartReader, started: StartedQuery) -> list[ReadPart]:
    """Read all parts of a query, several at the same time.

    Args:
        reader: reads one part.
        started: the started query.

    Raises:
        QueryCancelled, QueryTimedOut: the query was stopped.
    """
    wanted = [
        (name, number, part, started.fragments[name].schema)
        for name, answer in started.answers.items()
        for number, part in enumerate(answer.parts)
    ]
    order = _in_turn([item[2] for item in wanted])
    calls = [partial(reader.read, *wanted[at]) for at in order]
    read = dict(zip(order, call_concurrently(calls, AT_ONCE, lambda _: reader.control.cancel()), strict=True))
    return [read[at] for at in range(len(wanted))]


def _in_turn(parts: Sequence[Part]) -> list[int]:
    """Order parts round-robin by location, so that one location with many slow parts does not delay the others."""
    turns: dict[str, int] = {}
    numbered = []
    for at, part in enumerate(parts):
        turns[part.location] = turns.get(part.location, -1) + 1
        numbered.append((turns[part.location], at))
    return [at for _, at in sorted(numbered)]


def rest_rows(started: StartedQuery, read: Sequence[ReadPart], memory: int, control: CancellationToken) -> RowStream:
    """Return the rows of the answer, computed from the parts.

    Args:
        started: the started query.
        read: the parts that were read.
        memory: memory limit in bytes.
        control: lets another thread cancel it.

    Raises:
        OdfError: the rest of the query cannot be run.
    """
    files = {
        name: [path for part in read if part.fragment == name for path in part.paths] for name in started.fragments
    }
    return rows_of_files(started.plan, files, memory, control)


def rows_of_files(
    plan: WebPlan, files: Mapping[str, Sequence[Path]], memory: int, control: CancellationToken
) -> RowStream:
    """Return the rows of an answer, computed from files.

    Args:
        plan: the query's plan.
        files: for each fragment, the files with its rows.
        memory: memory limit in bytes.
        control: lets another thread cancel it.

    Raises:
        OdfError: the rest of the query cannot be run.
    """
    tables = tuple(
        FileTable(name, "parquet", tuple(map(str, files[name])), fragment.schema.serialize().to_pybytes())
        for name, fragment in plan.fragments.items()
    )
    return IsolatedQuery(fork_server(memory), FilesRequest(with_own_names(plan.rest), tables), control)


class _NotifyingRelays:
    """Notifies the relays if a query is stopped while the `with` block runs; on Ctrl-C, the client itself notifies
    them.
    """

    def __init__(self, client: RelayClient, query: str, control: CancellationToken) -> None:
        self._notify = lambda: client.cancel(query)
        self._control = control

    def __enter__(self) -> None:
        self._control.on_stop(self._notify)

    def __exit__(self, *_: object) -> None:
        self._control.forget(self._notify)


def missing_relays(
    started: StartedQuery, read: Sequence[ReadPart], *, require_complete: bool
) -> tuple[MissingRelay, ...]:
    """Return the relays whose rows are missing.

    Args:
        started: the started query.
        read: the parts that were read.
        require_complete: whether missing relays are an error.

    Raises:
        IncompleteAnswer: relays are missing, although the answer must be complete.
    """
    missing = tuple(dict.fromkeys([*started.missing, *(part.missing for part in read if part.missing is not None)]))
    require_complete_answer(missing, require_complete=require_complete)
    return missing


def require_complete_answer(missing: Sequence[MissingRelay], *, require_complete: bool) -> None:
    """Check that no relay is missing, if completeness is required.

    Args:
        missing: the relays whose rows are missing.
        require_complete: whether missing relays are an error.

    Raises:
        IncompleteAnswer: relays are missing, although the answer must be complete.
    """
    if missing and require_complete:
        raise IncompleteAnswer(
            f"Rows are missing: {'; '.join(f'{absent.relay}: {absent.why}' for absent in missing)}",
            hint="Without --require-complete, the answer contains the rows of all others.",
        )


def _left(ends: float) -> float:
    return max(0.1, ends - time.monotonic())
