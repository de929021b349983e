"""The search index of an archive of ten million records: made, extended, asked.

    python benchmarks/archive_search.py [--records 10000000] [--rounds 20] [--folder FOLDER]

The rows are committed as they are; there are no files. Times of questions are those of one index that stays open, as
in a server, and of a process that opens it, asks one question and ends; the first of each round is another day, job or
place. A folder keeps the archive for the next run.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from support import Run, print_machine, show
from support.archives import COMMIT, FIRST, WHATS, WHERES, many_records, more_records

from odfpy import Workspace
from odfpy.archive.index.search import SearchIndex
from odfpy.archive.question import Question
from odfpy.archive.rows import archive_manifest
from odfpy.archive.times import DAY
from odfpy.coordinator.storage.stored_dataset import StoredDataset

NAME = "many"
DAYS = 1_000

_MAKE = """
import sys, time
from odfpy import Workspace
from odfpy.archive.index.search import SearchIndex
dataset = Workspace.open(sys.argv[1]).storage.get(sys.argv[2])
SearchIndex.of(dataset)
"""

_ASK = """
import sys, time
from odfpy.extras import do_without_pandas
do_without_pandas()  # as `odf` does
from odfpy import Workspace
dataset = Workspace.open(sys.argv[1]).storage.get(sys.argv[2])
dataset.state
began = time.perf_counter()
from odfpy.archive.index.search import SearchIndex
index = SearchIndex.of(dataset)
found = index.latest(sys.argv[3], sys.argv[4], since=0, until=int(sys.argv[5]))
assert found is not None
print(time.perf_counter() - began)
"""


def archive(folder: Path, records: int) -> StoredDataset:
    """The archive in a folder, made as far as it is not there."""
    if not (folder / ".odf").exists():
        workspace = Workspace.init(folder)
        workspace.add([archive_manifest(NAME)])
    return many_records(Workspace.open(folder).storage.get(NAME), records, DAYS)


def measured(work: Callable[[], object]) -> Run:
    began, before = time.perf_counter(), time.process_time()
    work()
    return Run(time.perf_counter() - began, time.process_time() - before)


def making(folder: Path, dataset: StoredDataset) -> None:
    """The index, made from nothing in a process of its own."""
    for path in dataset.cache.glob("archive-index*/*"):
        path.unlink()
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", _MAKE, str(folder), NAME], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    size = sum(path.stat().st_size for path in dataset.cache.glob("archive-index*/*"))
    data = sum(path.stat().st_size for path in (dataset.folder / "data").iterdir())
    remark = f"memory {used.ru_maxrss / 1024:.0f} MB; index {size / 1e6:.0f} MB, slices {data / 1e6:.0f} MB"
    run = Run(time.perf_counter() - began, used.ru_utime + used.ru_stime)
    show("index made from nothing, the process", 60, [run], remark)


def asking(folder: Path, dataset: StoredDataset, rounds: int) -> None:
    """Questions to an index that is open, and in processes of their own."""
    index, dice = SearchIndex.of(dataset), np.random.default_rng(3)
    print(f"{index.num_records} records")

    def day() -> tuple[int, int]:
        start = FIRST + int(dice.integers(DAYS)) * DAY
        return start, start + DAY - 1

    def what() -> str:
        return f"what{dice.integers(WHATS)}"

    def where() -> str:
        return f"where{dice.integers(WHERES)}"

    def first_page() -> None:
        start, end = day()
        assert index.page(Question(what=(what(),), start=start, end=end), None, 100).records

    def whole_day(*wheres: str) -> int:
        start, end = day()
        question, cursor, found = Question(what=(what(),), where=wheres, start=start, end=end), None, 0
        while True:
            page = index.page(question, cursor, 100)
            found, cursor = found + len(page.records), page.next
            if cursor is None:
                return found

    def latest() -> None:
        place = int(dice.integers(WHERES))
        index.latest(what(), f"where{place}", since=0, until=day()[1])

    def job() -> None:
        names = tuple(f"what{number}" for number in range(WHATS))
        number = int(dice.integers(index.num_records // 20))
        assert index.page(Question(what=names, work_id=f"job-{number}"), None, 100).records

    def one_id() -> None:
        assert index.get("0" * 32) is None

    for label, work in {
        "latest of a what and where": latest,
        "a day's list of a what, first page": first_page,
        "a day's list of a what and where, all of it": lambda: whole_day(where()),
        "a job": job,
        "an id that is not there": one_id,
    }.items():
        show(f"{label}, index open", 0.05, [measured(work) for _ in range(rounds)])
    counts: list[int] = []
    runs = [measured(lambda: counts.append(whole_day())) for _ in range(rounds)]
    show("a day's list of a what, all pages of 100", 0.05, runs, f"{np.mean(counts):.0f} records")
    runs = []
    for _ in range(rounds):
        command = [sys.executable, "-c", _ASK, str(folder), NAME, what(), where(), str(FIRST + 2 * DAYS * DAY)]
        runs.append(Run(float(subprocess.check_output(command)), 0))
    show("latest in a process of its own, the index's part", 0.25, runs)


def extending(dataset: StoredDataset, rounds: int) -> None:
    """One more record, again and again."""
    runs, where = [], dataset
    for _ in range(rounds):
        where = more_records(where, 1)
        runs.append(measured(lambda where=where: SearchIndex.of(where)))
    show("index extended by one more record, and opened", 0.05, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=10 * COMMIT)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="of the archive, made there if it is empty")
    arguments = parser.parse_args()
    print_machine("pyarrow", "numpy")
    with nullcontext(arguments.folder) if arguments.folder else tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        dataset = archive(folder, arguments.records)
        making(folder, dataset)
        asking(folder, dataset, arguments.rounds)
        extending(dataset, 5 * arguments.rounds)


if __name__ == "__main__":
    main()
