"""A writer that is killed at any moment leaves no half object and a chain that is valid and can be gone on with."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.examples import examples
from support.processes.writers import SLICES, slice_file, write_dataset, write_for_ever

from odfpy.chain.events import AddData
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.new_blocks import validate
from odfpy.chain.stores.object_store import LocalObjectStore
from odfpy.chain.stores.ref_store import HEAD, LocalRefStore
from odfpy.data.multihash import Multihash

KILLS = examples(15, 40)


@pytest.fixture
def die() -> Iterator[Callable[[Path, int], int]]:
    """Runs a writer in a separate process that is killed at some line; returns its exit code."""
    tests = Path(__file__).parents[1]
    helper = subprocess.Popen(
        [sys.executable, "-c", "from support.processes.writers import fork_on_request; fork_on_request()"],
        env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert helper.stdin
    assert helper.stdout

    def run(folder: Path, at: int) -> int:
        print(folder, at, sep="\t", file=helper.stdin, flush=True)
        return int(helper.stdout.readline())

    with helper:
        yield run


def check_dataset(folder: Path) -> None:
    """Everything that is there is whole."""
    layout = DatasetLayout.local(folder)
    for store in (layout.blocks, layout.data):
        for name in store:
            assert name.matches(store.read(name))
    if layout.refs.get(HEAD) is None:
        return
    blocks = layout.chain.in_order()
    assert validate(blocks) == layout.chain.state()
    for hashed in blocks:
        if isinstance(hashed.block.event, AddData) and hashed.block.event.new_data:
            assert hashed.block.event.new_data.physical_hash in layout.data, (
                "rows are there before the block that has them"
            )


def check_going_on(folder: Path) -> None:
    """The next writer cleans up and finishes the work."""
    layout = DatasetLayout.local(folder)
    for store in (layout.blocks, layout.data, layout.refs):
        assert isinstance(store, LocalObjectStore | LocalRefStore)
        store.clean()
    assert write_dataset(folder).num_records == 10 * SLICES
    check_dataset(folder)
    expected = {str(Multihash.of(slice_file(number))) for number in range(SLICES)}
    assert {path.name for path in (folder / "data").iterdir()} == expected
    assert [path.name for path in (folder / "refs").iterdir()] == [HEAD]
    names = {str(hashed.hash) for hashed in layout.chain.in_order()}
    assert {path.name for path in (folder / "blocks").iterdir()} == names


def test_killed_at_any_line(die: Callable[[Path, int], int], tmp_path: Path):
    whole = tmp_path / "whole"
    whole.mkdir()
    assert die(whole, 0) == 0
    check_dataset(whole)
    lines = int((whole / "lines").read_text())
    assert lines > KILLS
    for at in random.Random(1).sample(range(1, lines + 1), KILLS):
        folder = tmp_path / str(at)
        folder.mkdir()
        assert die(folder, at) == -signal.SIGKILL
        check_dataset(folder)
        check_going_on(folder)


def test_killed_at_any_time(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    rng = random.Random(2)
    for attempt in range(examples(3, 6)):
        folder = tmp_path / str(attempt)
        process = context.Process(target=write_for_ever, args=(folder,))
        process.start()
        while not folder.exists():
            process.join(0.01)
        process.join(rng.uniform(0, 0.1))
        process.kill()
        process.join()
        for dataset in sorted(folder.glob("*")):
            check_dataset(dataset)
            check_going_on(dataset)
