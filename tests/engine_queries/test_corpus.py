"""The corpus of queries (`corpus/`): what each pull emits, to the bit, and that it sums up to what plain Spark says.

Every case runs with another number of partitions, other row groups and another codec, all of which the same hashes
come out of. A pull takes about a second of processor time, so that a run of all tests takes every fourth case only,
here or in a fresh process, and half of these but for `slow`, and sums up at the end of each what `ODF_CORPUS=once` sums up after every pull (what a pull
emits is compared with the tables, row by row, in any case); that runs each case, `ODF_CORPUS=all` each in every variant.
What it sums up to is also what `odf verify --against-batch` expects, which knows by itself what is closed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes.java import other_java
from support.queries.batch_cases import Compared
from support.queries.cases import INTERPRETED, Tuned, corpus, locked, run_case
from support.queries.oracle import Oracle, state_of

pytestmark = pytest.mark.spark

CASES = corpus()
HASHES = locked()
PARTITIONS = "spark.sql.shuffle.partitions"
# Interpreted plans give the same rows without the time it takes to compile them.
# Each row group is read by a task of its own.
SPLIT = {"spark__sql__files__maxPartitionBytes": 400, "spark__sql__files__openCostInBytes": 0}
# Joins by merging instead of a table in memory; window functions and aggregates that do not fit there.
SPILL = {
    "spark__sql__autoBroadcastJoinThreshold": -1,
    "spark__sql__windowExec__buffer__in__memory__threshold": 1,
    "spark__sql__windowExec__buffer__spill__threshold": 2,
    "spark__sql__objectHashAggregate__sortBased__fallbackThreshold": 1,
}
VARIANTS = (
    ({"partitions": 1, **INTERPRETED}, {"compression": "zstd", "row_group_size": 1}),
    ({"partitions": 2, **INTERPRETED, **SPLIT}, {"compression": "none", "use_dictionary": False, "row_group_size": 3}),
    ({"partitions": 7, **INTERPRETED, **SPLIT, **SPILL}, {"compression": "gzip", "row_group_size": 1}),
)
COMPILED = ({"partitions": 2, **SPLIT}, {"compression": "snappy", "row_group_size": 2})
HOW_MANY = os.environ.get("ODF_CORPUS", "some")
SOME, ALL = HOW_MANY == "some", HOW_MANY == "all"
OTHER_MASTER = CASES if ALL else CASES[::40]


def chosen():
    """Which case runs in which variant."""
    for at, case in enumerate([case for case in CASES[::4] if case not in OTHER_MASTER] if SOME else CASES):
        marks = [pytest.mark.slow] if SOME and at % 2 else []
        for variant in (*VARIANTS, COMPILED) if ALL else VARIANTS[at % 3 : at % 3 + 1]:
            yield pytest.param(case, *variant, id=f"{case.name}-{variant[0]['partitions']}", marks=marks)


def tuned(spark, partitions, **settings):
    return Tuned(spark, **{PARTITIONS.replace(".", "__"): partitions}, **settings)


def hashes_of(made):
    return [one.logical_hash or "none" for one in made]


@pytest.mark.parametrize(("case", "settings", "write"), list(chosen()))
def test_a_case(case, settings, write, spark, tmp_path):
    partitioned = tuned(spark, **settings)
    plain = tuned(spark, 1, **INTERPRETED)
    runner = Compared(partitioned, case, tmp_path, write, rows_in_one_task=1, batch_spark=plain)
    oracle = Oracle(plain, tmp_path)
    made, emitted, given = [], [], {alias: [] for alias in case.inputs}
    for number, pull in enumerate(case.pulls, start=1):
        one = runner.pull(pull)
        made.append(one)
        assert (list(one.lines), one.reaches) == (list(pull.output), pull.reaches), f"pull {number}"
        emitted += one.rows
        for alias, rows in pull.rows.items():
            given[alias] += rows
        if number == len(case.pulls) or not SOME:
            assert state_of(emitted) == oracle.answer(case, given, case.watermarks(number)), f"after pull {number}"
            batch = runner.compare()
            assert (batch.obstacle, batch.differences) == (None, ()), f"after pull {number}"
    used = {int(session.conf.get(PARTITIONS)) for session in partitioned.sessions}
    assert max(used) > 1 or settings["partitions"] == 1
    assert list(made[0].columns) == list(case.columns)
    assert hashes_of(made) == HASHES[case.name]


@pytest.mark.slow
def test_a_fresh_process_with_one_core_and_another_java_gives_the_same_hashes(tmp_path):
    java = other_java()
    names = [case.name for case in OTHER_MASTER]
    ran = subprocess.run(
        [sys.executable, __file__, str(tmp_path), *names],
        check=True,
        stdout=subprocess.PIPE,
        timeout=1200,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "JAVA_HOME": str(java.home)},
    )
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found.pop("java") == java.feature
    assert found == {name: HASHES[name] for name in names}


def test_cases_have_names_of_their_own_and_hashes():
    names = [case.name for case in CASES]
    assert sorted(names) == sorted(set(names)) == sorted(HASHES)
    assert len(names) >= 40


def main(folder, *names):
    from support.engine.session import engine_spark

    with engine_spark(folder, "local[1]") as spark:
        found = {"java": spark._jvm.java.lang.Runtime.version().feature()}
        for case in CASES:
            if case.name in names:
                place = folder / case.name
                place.mkdir()
                found[case.name] = hashes_of(run_case(tuned(spark, 2), case, place))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
