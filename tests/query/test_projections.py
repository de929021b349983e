"""Projections in DataFusion are what their reference models say, over random changelogs.

The same over Spark is in `tests/engine_queries/spark/test_spark_projections.py`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.queries import changelogs
from support.queries.changelogs import DAY, A, Event, logs, moment, offsets_of, sql_table
from support.queries.version_logs import LOGS

from odfpy.data.vocabulary import OperationType
from odfpy.engine.contract import Projection, SqlRequest
from odfpy.engine.datafusion.ad_hoc import DataFusionRows

KEYS = st.sampled_from([None, ("key",)])


def found(log, projection):
    """Offsets of the rows that DataFusion finds."""
    with tempfile.TemporaryDirectory() as folder:
        table = sql_table(Path(folder), log, projection)
        batches = DataFusionRows(SqlRequest('SELECT "offset" FROM t', (table,), ""))
        return sorted(offset for batch in batches for offset in batch.column(0).to_pylist())


@settings(max_examples=examples(10, 25))
@given(logs(), KEYS)
def test_the_current_state(log, key):
    assert found(log, Projection(key)) == offsets_of(changelogs.current(log, keyed=key is not None))


@settings(max_examples=examples(15, 40))
@given(logs(), KEYS, st.integers(0, 6))
def test_what_held_at_a_time(log, key, day):
    wanted = offsets_of(changelogs.as_of(log, day, keyed=key is not None))
    assert found(log, Projection(key, moment(day))) == wanted
    if all(row.op is A for row in log):
        assert found(log, Projection(key, moment(day), only_appends=True)) == wanted


@pytest.mark.parametrize("story", LOGS)
def test_what_held_is_what_temporal_tables_say(story):
    commits, versions = LOGS[story]
    rows = [(row, system) for system, commit in enumerate(commits) for row in commit]
    log = [_event(offset, *row) for offset, row in enumerate(rows)]
    for day in (1, 2, 3, 3 + 1 / DAY, 4, 5, 6, 7):
        held = sorted(f"{row.key} {row.value}" for row in changelogs.as_of(log, day, keyed=True))
        assert held == sorted(version.rpartition(" ")[0] for version in versions if _holds(version, day)), day


def _event(offset: int, row: str, system: int) -> Event:
    op, day, key, value = row.split()
    return Event(offset, next(one for one in OperationType if one.symbol == op), system, int(day), key, int(value))


def _holds(version: str, day: float) -> bool:
    begin, _, end = version.rpartition(" ")[2].partition("-")
    until = float("inf") if end == "open" else int(end.rstrip("+")) + end.count("+") / DAY
    return int(begin) <= day < until
