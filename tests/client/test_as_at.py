"""Whole queries as they would have been answered at some moment."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from support.chains.connecting import RATES, SCREAMED
from support.chains.workspaces import feed, root, workspace_with

import odfpy
from odfpy.chain.references import ReferenceKind
from odfpy.client.connection import Connection
from odfpy.coordinator.maintenance.compact import CompactOptions
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import NotFound, NotYetThen, UsageError

COUNTS = f"SELECT (SELECT count(*) FROM \"{RATES}\") AS log, (SELECT count(*) FROM odf_current('{RATES}')) AS state"


def counts(connection: Connection, moment: object) -> list[int]:
    return list(connection.sql(COUNTS, as_at=moment).table.to_pylist()[0].values())  # type: ignore[arg-type]


def test_the_log_and_what_it_amounts_to_are_those_of_then(here: Connection, workspace: Workspace) -> None:
    blocks = [one for one in reversed(list(workspace.datasets.log(RATES))) if one.block.sequence_number >= 3]
    assert [counts(here, one.block.system_time) for one in blocks] == [[2, 2], [4, 2], [5, 3]]
    assert [counts(here, one.hash) for one in blocks] == [[2, 2], [4, 2], [5, 3]]


def test_a_tag_is_a_moment(here: Connection, workspace: Workspace) -> None:
    workspace.branches.create(RATES, ReferenceKind.TAG, "first", "3")
    assert counts(here, "first") == [2, 2]


def test_moments_that_are_none(here: Connection) -> None:
    with pytest.raises(NotYetThen):
        counts(here, datetime(2001, 1, 1))  # noqa: DTZ001
    with pytest.raises(NotFound):
        counts(here, "no-such-tag")
    with pytest.raises(NotFound):  # a tag of one of two datasets
        here.sql(f'SELECT * FROM "{RATES}" JOIN "{SCREAMED}" USING (id)', as_at="4000")


def test_a_history_that_was_made_shorter_has_no_block_of_then(tmp_path: Path) -> None:
    found = workspace_with(tmp_path, root("many", "{kind: Append}"))
    for number in range(3):
        feed(found, "many", f"{number} x")
    (first,) = (one for one in found.datasets.log("many") if one.block.sequence_number == 3)
    found.maintenance.compact("many", CompactOptions())
    connection = odfpy.connect(found, engine="datafusion")
    with pytest.raises(UsageError, match="compacted") as caught:
        connection.sql("SELECT * FROM many", as_at=first.block.system_time)
    assert caught.value.hint is not None
    assert "odf_as_at('many'" in caught.value.hint
    assert len(connection["many"].at(first.block.system_time)) == 1
