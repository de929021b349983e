"""Damaged files give a typed error or exactly the rows that are in them; `support.ingest.fuzzing` says how that is known."""

from __future__ import annotations

import pytest
from support.ingest.fuzzing import TARGETS, fuzz


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_give_a_typed_error_or_exact_rows(name: str):
    outcomes = fuzz(TARGETS[name], 800, seed=1)
    assert outcomes["rows"] > 5
    assert outcomes.total() - outcomes["rows"] > 100
