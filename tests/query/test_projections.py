"""Projections in DataFusion are what their reference models say, over random changelogs.

The same over Spark is in `tests/engine_queries/test_spark_projections.py`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support import changelogs
from support.changelogs import A, logs, moment, offsets_of, sql_table

from odfpy.engine.contract import Projection, SqlRequest
from odfpy.engine.datafusion.ad_hoc import DataFusionRows

KEYS = st.sampled_from([None, ("key",)])


def found(log, projection):
    """Offsets of the rows that DataFusion finds."""
    with tempfile.TemporaryDirectory() as folder:
        table = sql_table(Path(folder), log, projection)
        batches = DataFusionRows(SqlRequest('SELECT "offset" FROM t', (table,), ""))
        return sorted(offset for batch in batches for offset in batch.column(0).to_pylist())


@settings(max_examples=25)
@given(logs(), KEYS)
def test_the_current_state(log, key):
    assert found(log, Projection(key)) == offsets_of(changelogs.current(log, keyed=key is not None))


@settings(max_examples=40)
@given(logs(), KEYS, st.integers(0, 6))
def test_what_held_at_a_time(log, key, day):
    wanted = offsets_of(changelogs.as_of(log, day, keyed=key is not None))
    assert found(log, Projection(key, moment(day))) == wanted
    if all(row.op is A for row in log):
        assert found(log, Projection(key, moment(day), only_appends=True)) == wanted
