"""The first queries of the random search for wrong answers; `make search` goes on for an hour, with other numbers."""

from __future__ import annotations

import os

import pytest
import yaml
from support.queries.cases import read_cases
from support.search.hunt import Hunt
from support.search.trial import RIGHT, Outcome, Verdict, tried

from odfpy.chain.encoding import load_snapshots

QUERIES = int(os.environ.get("ODF_SEARCH", "4"))
SEED = 20_241_122
"""The same queries and histories in each run of all tests."""


@pytest.mark.spark
def test_random_queries_over_random_histories_give_the_batch_answer(spark, tmp_path):
    hunt = Hunt(lambda query, pulls: tried(spark, query, pulls), SEED, tmp_path)
    hunt.run(3600, stop_at=1, most=QUERIES)
    assert not hunt.tally.findings, "\n".join(
        (place / "finding.txt").read_text("utf-8") for place in hunt.tally.findings
    )
    assert hunt.tally.pairs > 0, hunt.tally.summary()


def loses_what_is_joined(query, pulls):
    """Something that goes wrong when two rows of `b`, one of them a 3, come in two pulls."""
    joins = any("JOIN b AS" in text for _, text in query.steps)
    threes = [any(row[0] == "+A" and 3 in row for row in pull.rows.get("b", ())) for pull in pulls]
    others = [any(row[0] == "+A" and 3 not in row for row in pull.rows.get("b", ())) for pull in pulls]
    if joins and any(three and any(others[at + 1 :]) for at, three in enumerate(threes)):
        return Verdict(Outcome.WRONG, "it loses rows", "missing x 3")
    return RIGHT


def test_what_is_found_is_made_small_and_written_down(tmp_path):
    hunt = Hunt(loses_what_is_joined, SEED, tmp_path)
    hunt.run(60, stop_at=1)
    (place,) = hunt.tally.findings
    (case,) = read_cases(place / "case.yaml")
    assert sum(len(rows) for pull in case.pulls for rows in pull.rows.values()) == 2
    assert loses_what_is_joined(case, case.pulls).outcome is Outcome.WRONG
    snapshots = load_snapshots((place / "manifests.yaml").read_text("utf-8"), "manifests.yaml")
    assert [str(one.name) for one in snapshots] == [*case.inputs, "found"]
    script = (place / "run.sh").read_text("utf-8")
    assert script.count("odf ingest b ") == 2
    assert "it loses rows\n\nmissing x 3" in (place / "finding.txt").read_text("utf-8")
    assert yaml.safe_load((place / "case.yaml").read_text("utf-8"))["name"] == "found"
