"""The corpus of queries (`corpus/`): what each pull emits, to the bit, and that it sums up to what plain Spark says.

Every case runs with another number of partitions, other row groups and another codec, all of which the same hashes
come out of. A pull takes about a second of processor time, so that a run of all tests takes every fourth case only;
`ODF_CORPUS=once` runs each of them, `ODF_CORPUS=all` each in every variant.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.query_cases import Runner, Tuned, corpus, locked, run_case
from support.query_oracle import Oracle, state_of

pytestmark = pytest.mark.spark

CASES = corpus()
HASHES = locked()
# Interpreted plans give the same rows without the time it takes to compile them.
QUICK = {"spark__sql__codegen__wholeStage": "false", "spark__sql__codegen__factoryMode": "NO_CODEGEN"}
VARIANTS = (
    ({"partitions": 1, **QUICK}, {"compression": "zstd", "row_group_size": 1}),
    ({"partitions": 2, **QUICK}, {"compression": "none", "use_dictionary": False}),
    ({"partitions": 7, **QUICK}, {"compression": "gzip", "row_group_size": 2}),
)
COMPILED = ({"partitions": 2}, {"compression": "snappy"})
HOW_MANY = os.environ.get("ODF_CORPUS", "some")
ALL = HOW_MANY == "all"
OTHER_MASTER = CASES if ALL else CASES[::40]


def chosen():
    """Which case runs in which variant."""
    for at, case in enumerate(CASES[::4] if HOW_MANY == "some" else CASES):
        for variant in (*VARIANTS, COMPILED) if ALL else VARIANTS[at % 3 : at % 3 + 1]:
            yield pytest.param(case, *variant, id=f"{case.name}-{variant[0]['partitions']}")


def tuned(spark, partitions, **settings):
    return Tuned(spark, spark__sql__shuffle__partitions=partitions, **settings)


def hashes_of(made):
    return [one.logical_hash or "none" for one in made]


@pytest.mark.parametrize(("case", "settings", "write"), list(chosen()))
def test_a_case(case, settings, write, spark, tmp_path):
    runner = Runner(tuned(spark, **settings), case, tmp_path, write=write)
    oracle = Oracle(tuned(spark, 1, **QUICK), tmp_path)
    made, emitted, given = [], [], {alias: [] for alias in case.inputs}
    for number, pull in enumerate(case.pulls, start=1):
        one = runner.pull(pull)
        made.append(one)
        assert (list(one.lines), one.reaches) == (list(pull.output), pull.reaches), f"pull {number}"
        emitted += one.rows
        for alias, rows in pull.rows.items():
            given[alias] += rows
        assert state_of(emitted) == oracle.answer(case, given, case.watermarks(number)), f"after pull {number}"
    assert list(made[0].columns) == list(case.columns)
    assert hashes_of(made) == HASHES[case.name]


def test_a_fresh_process_with_one_core_gives_the_same_hashes(tmp_path):
    names = [case.name for case in OTHER_MASTER]
    ran = subprocess.run(
        [sys.executable, __file__, str(tmp_path), *names],
        check=True,
        stdout=subprocess.PIPE,
        timeout=1200,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert json.loads(ran.stdout.splitlines()[-1]) == {name: HASHES[name] for name in names}


def test_cases_have_names_of_their_own_and_hashes():
    names = [case.name for case in CASES]
    assert sorted(names) == sorted(set(names)) == sorted(HASHES)
    assert len(names) >= 40


def main(folder, *names):
    from support.engine_spark import engine_spark

    with engine_spark(folder, "local[1]") as spark:
        found = {}
        for case in CASES:
            if case.name in names:
                place = folder / case.name
                place.mkdir()
                found[case.name] = hashes_of(run_case(tuned(spark, 2), case, place))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
