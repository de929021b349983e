"""One query over one history: checked after each pull for which plain Spark can compute the expected output.

Plain Spark does not support watermarks and temporal tables: for these, the rules of `odf verify --against-batch` decide
which rows are closed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from support.engine.requests import queries as transform_of
from support.queries.batch_cases import Compared
from support.queries.cases import QUICK, Case, Pull, Row, Runner, Tuned
from support.queries.oracle import Oracle, net, state_of
from support.search.histories import END
from support.search.queries import Query

from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.engine.contract import (
    AnalyzeRequest,
    AnalyzeResponseSuccess,
    TransformRequest,
    TransformResponse,
    TransformResponseNeedsHistory,
    TransformResponseSuccess,
)
from odfpy.engine.spark.execution import operations


class Outcome(Enum):
    """The outcome of a trial."""

    RIGHT = "right"
    REFUSED = "refused"
    UNANSWERABLE = "plain Spark fails, too"
    WRONG = "wrong"


@dataclass(frozen=True)
class Verdict:
    """The result of a trial.

    Attributes:
        outcome: outcome of the trial.
        what: the reason of a rejection, or what is wrong.
        detail: rows, for a human reader.
        pulls: number of pulls after which it showed.
    """

    outcome: Outcome
    what: str = ""
    detail: str = ""
    pulls: int = 0


RIGHT = Verdict(Outcome.RIGHT)


class _Failed(Exception):
    """A pull failed."""


class _Runner(Compared):
    """Runs a query; some of its inputs have primary keys."""

    keys: Any = None

    def respond(self, request: TransformRequest) -> TransformResponse:
        """Return the response of the engine; raise errors as exceptions."""
        inputs = tuple(
            replace(source, primary_key=self.keys.get(source.query_alias)) for source in request.query_inputs
        )
        response = super().respond(replace(request, query_inputs=inputs))
        if not isinstance(response, (TransformResponseSuccess, TransformResponseNeedsHistory)):
            raise _Failed(getattr(response, "message", str(response)))
        return response


def tried(spark: Any, query: Query, pulls: Sequence[Pull]) -> Verdict:
    """Run a query over a history, and compare.

    Raises:
        Exception: any unexpected exception of the engine; this is a finding, too.
    """
    case = Case("found", "", query.steps, query.inputs, {}, pulls)
    with TemporaryDirectory(prefix="search-") as folder:
        refusal = _refusal(spark, query, Path(folder))
        if refusal is not None:
            return Verdict(Outcome.REFUSED, refusal)
        runner = _Runner(Tuned(spark, **QUICK), case, Path(folder), temporal=query.temporal)
        runner.keys = query.keys
        oracle = Oracle(Tuned(spark, **QUICK), Path(folder))
        return _compared(runner, oracle, query, case)


def _refusal(spark: Any, query: Query, folder: Path) -> str | None:
    sources = Runner(spark, Case("", "", query.steps, query.inputs, {}, ()), folder).sources
    inputs = tuple(replace(source.analyzed(), primary_key=query.keys.get(alias)) for alias, source in sources.items())
    session = Tuned(spark, **QUICK)
    transform = replace(transform_of(query.steps), temporal_tables=query.temporal or None)
    answer = operations.analyze(session, AnalyzeRequest(transform, DEFAULT_VOCABULARY, inputs))
    return None if isinstance(answer, AnalyzeResponseSuccess) else getattr(answer, "message", str(answer))


def _compared(runner: _Runner, oracle: Oracle, query: Query, case: Case) -> Verdict:
    emitted: list[Row] = []
    given: dict[str, list[Row]] = {alias: [] for alias in query.inputs}
    reached: str | None = None
    for number, pull in enumerate(case.pulls, start=1):
        for alias, rows in pull.rows.items():
            given[alias] += rows
        whole = all(count > 0 for rows in given.values() for count in net(rows).values())
        answerable = whole and not query.temporal
        answerable &= not query.waits or set(pull.watermarks.values()) == {END}
        try:
            made = runner.pull(pull)
        except _Failed as error:
            return _of_failure(oracle, query, case, given, str(error), number)
        emitted += made.rows
        state = state_of(emitted)
        if whole and any(count < 0 for count in state.values()):
            taken = [line for line, count in state.items() if count < 0]
            return Verdict(Outcome.WRONG, "it retracts what is not there", "\n".join(taken), number)
        if reached is not None and (made.reaches is None or made.reaches < reached):
            return Verdict(Outcome.WRONG, "the watermark goes back", f"{reached} -> {made.reaches}", number)
        reached = made.reaches
        if answerable:
            try:
                right = oracle.answer(case, given, {})
            except Exception as error:  # noqa: BLE001 (whatever Spark raises)
                return Verdict(Outcome.UNANSWERABLE, _first_line(error))
            if state != right:
                return Verdict(Outcome.WRONG, "it is not what the batch query gives", _difference(state, right), number)
        elif query.temporal or number == len(case.pulls) - 1:
            answer = runner.compare()
            if answer.obstacle is None and not answer.is_equal and not answer.taken_back:
                listed = [f"{one.kind.value} {one.key} {one.expected} {one.found}" for one in answer.differences]
                return Verdict(Outcome.WRONG, "it is not what --against-batch gives", "\n".join(listed), number)
    return RIGHT


def _of_failure(
    oracle: Oracle, query: Query, case: Case, given: Mapping[str, Sequence[Row]], message: str, number: int
) -> Verdict:
    if not query.temporal:
        try:
            oracle.answer(case, given, {})
        except Exception as error:  # noqa: BLE001 (whatever Spark raises)
            return Verdict(Outcome.UNANSWERABLE, _first_line(error))
    return Verdict(Outcome.WRONG, f"a pull fails: {_first_line(message)}", message, number)


def _first_line(error: object) -> str:
    return re.sub(r"#\d+L?", "#", str(error).strip().partition("\n")[0])[:200]


def _difference(state: Counter[str], right: Counter[str]) -> str:
    missing, wrong = right - state, state - right
    return "\n".join(
        [
            *(f"missing {line}" for line in sorted(missing.elements())),
            *(f"too many {line}" for line in sorted(wrong.elements())),
        ]
    )
