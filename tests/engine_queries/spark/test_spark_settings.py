"""The settings of a session are those of all of its work."""

from __future__ import annotations

import pytest
from support.queries.cases import INTERPRETED, Tuned

from odfpy.engine.contract import SqlRequest, SqlResponseSuccess
from odfpy.engine.ipc import map_stream
from odfpy.engine.spark.execution.operations import sql

pytestmark = pytest.mark.spark

# Which of two equal keys of a map counts is asked where the map is made.
TWICE = "SELECT map_from_arrays(array(id, id), array(1, 2))[id] AS v FROM range(3)"


def test_tasks_work_by_the_settings_of_the_request_and_not_by_those_of_the_one_before(spark, tmp_path):
    request = SqlRequest(TWICE, (), str(tmp_path / "result"))
    last = Tuned(spark, **INTERPRETED, spark__sql__mapKeyDedupPolicy="LAST_WIN")
    assert sql(last, request) == SqlResponseSuccess(3)
    assert map_stream(request.output_path).column("v").to_pylist() == [2, 2, 2]
    assert "Duplicate map key" in str(sql(Tuned(spark, **INTERPRETED), request))
