"""What one commit costs among many: 50 files in one pull, pushes of ten rows, and chains that grow.

    python benchmarks/many_commits.py [--rounds 5] [--blocks 10000] [--only files|rows|growth]

Whole commands are measured, from the start of the process to its end, unless it says that they run in this process.
A growing chain has a slice of ten rows in every tenth block; `log` beside `list` shows what a block adds to the start.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from support import NARROW, Run, odf, print_machine, root, show, ten_rows

from odfpy import Workspace
from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import AddData, DataSlice, SourceState
from odfpy.chain.state import ChainState
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.slices.writer import SliceWriter
from odfpy.data.timestamp import Timestamp

POLL = "SetPollingSource\n      fetch: {kind: FilesGlob, path: 'files/*.csv', order: ByName}"
WIDE = {**NARROW, "name": "String", "amount": "Float64", "city": "String"}


def files(rounds: int, blocks: int) -> None:
    """50 files of 100 000 rows in one pull."""
    del blocks
    dice = np.random.default_rng(7)
    for merge in ("Append", "Ledger"):
        runs = []
        for _ in range(min(rounds, 3)):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                (folder / "files").mkdir()
                for number in range(50):
                    count = 100_000
                    times = pa.array(np.sort(dice.integers(1_700_000_000_000, 1_710_000_000_000, count)))
                    texts = pa.array([f"name {key}" for key in dice.integers(0, 9_999, count).tolist()])
                    rows = {
                        "event_time": times.cast(pa.timestamp("ms")).cast(pa.string()),
                        "id": np.arange(number * count, (number + 1) * count),
                        "name": texts,
                        "amount": dice.random(count),
                        "city": texts,
                    }
                    pa.csv.write_csv(pa.table(rows), folder / "files" / f"{number:02}.csv")
                workspace = Workspace.init(folder)
                manifest = root("many", merge, WIDE, read="Csv, header: true", source=POLL)
                workspace.add(load_snapshots(manifest, "manifest"))
                whole = odf(folder, "pull", "many")
                runs.append(Run(whole.seconds / 50, whole.processor / 50))
        show(f"50 files of 100 000 rows, one pull, a commit, {merge}", 0.15 if merge == "Append" else None, runs)


def rows(rounds: int, blocks: int) -> None:
    """Ten rows at a time."""
    del blocks
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workspace = Workspace.init(folder)
        for kind, merge in (("append", "Append"), ("ledger", "Ledger")):
            workspace.add(load_snapshots(root(kind, merge, NARROW), "manifest"))
            runs = [odf(folder, "ingest", kind, "--stdin", stdin=ten_rows(10 * at)) for at in range(rounds)]
            show(f"push of ten rows, {kind}, the command", 0.8, runs)
            runs = [in_process(workspace, kind, 1_000 + 10 * at) for at in range(4 * rounds)]
            show(f"push of ten rows, {kind}, in a running process", 0.1, runs)


def in_process(workspace: Workspace, name: str, first: int) -> Run:
    started, before = time.perf_counter(), time.process_time()
    for _ in workspace.ingest(name, stdin=BytesIO(ten_rows(first))):
        pass
    return Run(time.perf_counter() - started, time.process_time() - before)


def growth(rounds: int, blocks: int) -> None:
    """Chains of 10 blocks, and of ten times as many, and so on."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "files").mkdir()
        (folder / "files" / "00000.csv").write_text("event_time,id\n2024-01-01T00:00:00Z,1\n")
        workspace = Workspace.init(folder)
        polled = root("polled", "Ledger", NARROW, read="Csv, header: true", source=POLL)
        for text in (root("pushed", "Ledger", NARROW), polled):
            workspace.add(load_snapshots(text, "manifest"))
        in_process(workspace, "pushed", 0)
        odf(folder, "pull", "polled")
        length = 10
        while length <= blocks:
            for source in ("pushed", "polled"):
                grow(workspace.storage.get(source), length, folder)
            in_process(workspace, "pushed", 10**9)  # the index catches up
            measure(folder, workspace, length, rounds)
            length *= 10


def grow(dataset: StoredDataset, length: int, folder: Path) -> None:
    """Add blocks all at once, every tenth with ten rows; blocks are not flushed to disk one by one."""
    state = dataset.state
    schema, template = to_arrow(state.schema), state.last_data_event
    new = dataset.chain.prepare(state, [], state.system_time)
    while new.state.sequence_number + 1 < length:
        number = new.state.sequence_number
        source_state = template.new_source_state or SourceState("default", "odf/etag", f"{number}")
        event = AddData(
            prev_offset=new.state.last_offset,
            new_data=new_slice(dataset, schema, new.state, folder) if number % 10 == 0 else None,
            new_watermark=Timestamp(state.watermark.nanos + number),
            new_source_state=source_state,
        )
        new.add(event, state.system_time)
    for data in new.encoded:
        (dataset.folder / "blocks" / str(Multihash.of(data))).write_bytes(data)
    dataset.layout.refs.compare_and_swap(HEAD, state.head, new.state.head)


def new_slice(dataset: StoredDataset, schema: pa.Schema, state: ChainState, folder: Path) -> DataSlice:
    ids = np.arange(state.next_offset, state.next_offset + 10)
    times = np.full(10, state.system_time.millis)
    columns = [ids, np.zeros(10, np.int32), times, np.full(10, state.watermark.millis), 10**12 + ids]
    parts = [pa.array(part).cast(field.type) for part, field in zip(columns, schema, strict=True)]
    with SliceWriter(folder / "slice", schema, state.vocab) as writer:
        writer.write(pa.table(parts, schema=schema))
        info = writer.finish()
    dataset.layout.data.insert_file(folder / "slice", info.physical_hash)
    interval = OffsetInterval(info.offset_start, info.offset_end)
    return DataSlice(info.logical_hash, info.physical_hash, interval, info.size)


def measure(folder: Path, workspace: Workspace, length: int, rounds: int) -> None:
    """One line for each verb."""
    verbs: dict[str, Callable[[int], Run]] = {
        "append of ten rows": lambda at: odf(
            folder, "ingest", "pushed", "--stdin", stdin=ten_rows(2 * 10**9 + 1_000 * length + 10 * at)
        ),
        "append in a running process": lambda at: in_process(workspace, "pushed", 10**11 + 1_000 * length + 10 * at),
        "pull with one new file": lambda at: pull_one(folder, length + at),
        "pull with nothing new": lambda _: odf(folder, "pull", "polled"),
        "list": lambda _: odf(folder, "list"),
        "log": lambda _: odf(folder, "log", "pushed"),
    }
    for verb, work in verbs.items():
        show(f"chain of {length} blocks: {verb}", None, [work(at) for at in range(rounds)])


def pull_one(folder: Path, number: int) -> Run:
    (folder / "files" / f"{number:05}.csv").write_text(f"event_time,id\n2024-01-01T00:00:00Z,{10**7 + number}\n")
    return odf(folder, "pull", "polled")


PARTS: dict[str, Callable[[int, int], None]] = {"files": files, "rows": rows, "growth": growth}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--blocks", type=int, default=10_000, help="length of the longest chain")
    parser.add_argument("--only", choices=PARTS)
    arguments = parser.parse_args()
    print_machine("pyarrow", "duckdb")
    for name, part in PARTS.items():
        if arguments.only in (None, name):
            part(arguments.rounds, arguments.blocks)


if __name__ == "__main__":
    main()
