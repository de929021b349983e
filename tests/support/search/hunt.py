"""The search: generates queries and histories, counts outcomes, and minimizes findings."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from support.queries.cases import Pull
from support.search.findings import smallest, write
from support.search.histories import WORLDS, history
from support.search.queries import Query, queries
from support.search.trial import Outcome, Verdict

_IN_ONE_ROUND = 100


@dataclass
class Tally:
    """Statistics of the trials.

    Attributes:
        outcomes: numbers of trials, each of one query.
        reasons: why queries were refused, or could not be answered.
        uses: operators of the queries with correct results.
        pairs: pairs of a query and a history with correct results; some trials have several parallel histories.
        findings: folders of the findings.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    uses: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    findings: list[Path] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the statistics of another process."""
        self.outcomes += other.outcomes
        self.reasons += other.reasons
        self.uses += other.uses
        self.pairs += other.pairs
        self.findings += other.findings

    def summary(self) -> str:
        """Summarize the trials in a few lines."""
        lines = [f"{self.pairs} pairs of a query and a history are right", ""]
        lines += [f"{count:6} queries: {outcome}" for outcome, count in self.outcomes.most_common()]
        lines += ["", "Why not:", *(f"{count:6} {what}" for what, count in self.reasons.most_common(40))]
        lines += ["", "What was in the queries that are right:"]
        lines += [f"{count:6} {what}" for what, count in self.uses.most_common()]
        return "\n".join(lines)


@dataclass
class Hunt:
    """A running search.

    Attributes:
        trial: runs a query over a history.
        first_seed: seed of the first round; each round increments it.
        folder: where findings go.
        verbose: whether to print each trial.
        tally: statistics so far.
    """

    trial: Callable[[Query, Sequence[Pull]], Verdict]
    first_seed: int
    folder: Path
    verbose: bool = False
    tally: Tally = field(default_factory=Tally)

    def run(self, seconds: float, stop_at: int, most: float = math.inf) -> None:
        """Search for some time, until a number of findings, or of queries."""
        end = time.monotonic() + seconds
        number = self.first_seed
        while time.monotonic() < end and len(self.tally.findings) < stop_at and self.tally.outcomes.total() < most:
            self._round(number, end, most)
            number += 1

    def _round(self, number: int, end: float, most: float) -> None:
        last: list[tuple[Query, int, Verdict]] = []

        @seed(number)
        @settings(
            max_examples=_IN_ONE_ROUND,
            phases=(Phase.generate, Phase.shrink),
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        @given(queries(), st.integers(0, 1_000_000))
        def law(query: Query, told: int) -> None:
            is_over = time.monotonic() > end or self.tally.outcomes.total() >= most
            if is_over and not last:
                return
            verdict = self._tried(query, told)
            if verdict.outcome is Outcome.WRONG:
                last[:] = [(query, told, verdict)]
                raise AssertionError(verdict.what)

        try:
            law()
        except AssertionError:
            self.tally.findings.append(self._written(*last[0]))

    def _tried(self, query: Query, told: int) -> Verdict:
        begun, tally = time.monotonic(), self.tally
        verdict = self._verdict(query, history(told, query.inputs, query.keys, worlds=query.worlds))
        tally.outcomes[verdict.outcome.value] += 1
        if verdict.outcome is Outcome.RIGHT:
            tally.pairs += WORLDS if query.worlds else 1
            tally.uses.update(query.uses)
        elif verdict.outcome is not Outcome.WRONG:
            tally.reasons[verdict.what[:150]] += 1
        if self.verbose:
            print(f"{time.monotonic() - begun:.2f} {verdict.outcome.value} {verdict.what[:200]}", flush=True)
            if verdict.outcome is not Outcome.RIGHT:
                print("    ", query.steps, flush=True)
        return verdict

    def _verdict(self, query: Query, pulls: Sequence[Pull]) -> Verdict:
        try:
            return self.trial(query, pulls)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
            return Verdict(Outcome.WRONG, f"{type(error).__name__}: {str(error)[:200]}", str(error))

    def _written(self, query: Query, told: int, verdict: Verdict) -> Path:
        """Return a finding with a history as small as it gets, written down."""

        def wrong(pulls: Sequence[Pull]) -> bool:
            found = self._verdict(query, pulls)
            if found.outcome is not Outcome.WRONG or found.what != verdict.what:
                return False
            details[:] = [found.detail]
            return True

        details = [verdict.detail]
        pulls = history(told, query.inputs, query.keys, worlds=query.worlds)
        place = write(self.folder, query, smallest(pulls, wrong), verdict.what, details[0])
        print(f"FOUND {place}: {verdict.what}", flush=True)
        return place
