"""Damaged files give a typed error or exactly the rows that are in them; `support.ingest.fuzzing` says how that is known."""

from __future__ import annotations

import pytest
from support.examples import examples
from support.ingest.fuzzing import TARGETS, fuzz


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_give_a_typed_error_or_exact_rows(name: str):
    count = 800 if name == "Parquet" else examples(250, 800)  # of which few are still read, and all quickly
    outcomes = fuzz(TARGETS[name], count, seed=1)
    assert outcomes["rows"] > 5
    assert outcomes.total() - outcomes["rows"] > 100
