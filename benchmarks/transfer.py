"""Moving datasets: pulls and pushes beside curl, copying and hashing; many blocks, many pullers, nothing new.

    python benchmarks/transfer.py [--only bytes|blocks|crowd] [--megabytes 1000] [--slices 100]
                                  [--blocks 10000] [--pullers 100]

`odf serve` serves on loopback, in a process of its own, to `odf` and to curl. What curl has fetched is hashed by as
many processes as there are processors. Whole commands are measured, from the start of the process to its end; memory
is the greatest resident size of the process.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from support import ODF, Run, print_machine, show

from odfpy import Workspace
from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import AddData, DataSlice, MetadataEvent, SetDataSchema, SetInfo
from odfpy.chain.layout import DatasetLayout
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.timestamp import Timestamp

LOGICAL = Multihash.of(b"rows", Multihash.of(b"").algorithm)
MANIFEST = "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: {name}\n  kind: Root\n  metadata: []\n"


class Peak(NamedTuple):
    """A command: seconds, and the greatest resident size of its process in megabytes."""

    run: Run
    megabytes: float


def peak(folder: Path, command: list[str]) -> Peak:
    """Run a command in a folder."""
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status:
        sys.exit(f"{' '.join(command)} failed:\n{errors.decode()}")
    return Peak(Run(seconds, used.ru_utime + used.ru_stime), used.ru_maxrss / 1024)


def dataset(workspace: Workspace, name: str) -> DatasetLayout:
    """An empty dataset."""
    workspace.add(load_snapshots(MANIFEST.format(name=name), "manifest"))
    return workspace.storage.get(name).layout


def commit(layout: DatasetLayout, events: list[MetadataEvent]) -> None:
    """A block for each event."""
    chain = layout.chain
    chain.commit(chain.prepare(chain.state(), events, Timestamp.now()))


def add_slices(layout: DatasetLayout, count: int, size: int) -> None:
    """Slices of random bytes, which say that they are one row each; the transfer of rows is that of bytes."""
    dice, events = np.random.default_rng(7), [SetDataSchema(schema=DataSchema(()))]
    for number in range(count):
        content = dice.bytes(size)
        name = layout.data.insert(content)
        interval = OffsetInterval(number, number)
        data = DataSlice(LOGICAL, name, interval, size)
        events.append(AddData(prev_offset=number - 1 if number else None, new_data=data))
    commit(layout, events)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The workspace in a folder on loopback, all of it public; its URL, and the process in `SERVER`."""
    for summary in Workspace.open(folder).datasets.all():
        subprocess.run([*ODF, "set-visibility", str(summary.handle), "public"], cwd=folder, check=True)
    with (folder / "server.log").open("w+") as log:
        process = subprocess.Popen([*ODF, "serve", "--port", "0"], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            while not (found := re.search(r"http://[\w.:]+", (folder / "server.log").read_text())):
                if process.poll() is not None:
                    sys.exit("The server did not start")
                time.sleep(0.05)
            SERVER[:] = [process.pid]
            yield found.group().rstrip("/")
        finally:
            process.terminate()
            process.wait()


SERVER: list[int] = []


def server_megabytes() -> float:
    """The greatest resident size of the server so far."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{SERVER[0]}/status").read_text())
    return int(found.group(1)) / 1024 if found else 0.0


def hashing(files: Path) -> list[str]:
    """A command that hashes all files of a folder."""
    return ["sh", "-c", f"find {files} -type f -print0 | xargs -0 -n 10 -P {os.cpu_count()} openssl dgst -sha3-256"]


def of_bytes(folder: Path, options: argparse.Namespace) -> None:
    """A large dataset, pulled, pushed, asked for news."""
    size = options.megabytes * 1_000_000 // options.slices
    here, there = folder / "here", folder / "there"
    workspace = Workspace.init(here)
    layout = dataset(workspace, "large")
    add_slices(layout, options.slices, size)
    label = f"{options.megabytes} MB in {options.slices} slices"
    pulls, plain, most = [], [], 0.0
    with served(here) as url:
        urls = folder / "urls"
        urls.write_text("".join(f'url = "{url}/large/data/{name}"\noutput = "{name}"\n' for name in layout.data))
        for _ in range(3):
            shutil.rmtree(there, ignore_errors=True)
            Workspace.init(there)
            found = peak(there, [*ODF, "pull", f"{url}/large"])
            pulls.append(found.run)
            most = max(most, found.megabytes)
            fetched = folder / "fetched"
            shutil.rmtree(fetched, ignore_errors=True)
            fetched.mkdir()
            curl = peak(fetched, ["curl", "-sS", "--fail", "--parallel", "--config", str(urls)])
            hashed = peak(fetched, hashing(fetched))
            plain.append(Run(curl.run.seconds + hashed.run.seconds, curl.run.processor + hashed.run.processor))
        news = [peak(there, [*ODF, "pull", "large"]).run for _ in range(5)]
    show(f"pull of {label}", None, pulls, f"{most:.0f} MB (to reach 200)")
    ratio = min(run.seconds for run in plain) / min(run.seconds for run in pulls)
    show("curl of the same files, then sha3-256 of them", None, plain, f"curl/pull {ratio:.2f} (to reach 0.8)")
    show("pull with nothing new", 0.3, news)
    pushes, copies, most = [], [], 0.0
    for number in range(3):
        found = peak(here, [*ODF, "push", "large", "--to", str(folder / f"pushed-{number}")])
        pushes.append(found.run)
        most = max(most, found.megabytes)
        copied = folder / f"copied-{number}"
        copy = peak(here, ["cp", "-r", str(layout.data.folder), str(copied)])
        flushed = peak(here, ["sync", "-f", str(copied)])
        hashed = peak(here, hashing(copied))
        seconds = copy.run.seconds + flushed.run.seconds + hashed.run.seconds
        copies.append(Run(seconds, copy.run.processor + hashed.run.processor))
        shutil.rmtree(copied)
    show(f"push of {label} to a folder", None, pushes, f"{most:.0f} MB")
    ratio = min(run.seconds for run in copies) / min(run.seconds for run in pushes)
    show("cp -r, sync, then sha3-256 of the copy", None, copies, f"copy/push {ratio:.2f} (to reach 0.8)")


def of_blocks(folder: Path, options: argparse.Namespace) -> None:
    """A long chain without data."""
    workspace = Workspace.init(folder / "here")
    layout = dataset(workspace, "long")
    commit(layout, [SetInfo(description=f"the {number}th") for number in range(options.blocks - 1)])
    with served(folder / "here") as url:
        for kind, goal in (("odf+http", 3.0), ("http", None)):
            runs = []
            for number in range(3):
                there = folder / f"{kind}-{number}"
                Workspace.init(there)
                runs.append(peak(there, [*ODF, "pull", url.replace("http", kind, 1) + "/long"]).run)
            show(f"pull of {options.blocks} blocks without data, {kind}", goal, runs)


def of_crowds(folder: Path, options: argparse.Namespace) -> None:
    """Many who pull one dataset at once, each a command of its own."""
    workspace = Workspace.init(folder / "here")
    add_slices(dataset(workspace, "popular"), 20, 500_000)
    homes = [folder / f"puller-{number}" for number in range(options.pullers)]
    for home in homes:
        Workspace.init(home)
    with served(folder / "here") as url:
        started = time.perf_counter()
        command = [*ODF, "pull", f"{url}/popular"]
        pullers = [
            subprocess.Popen(command, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for home in homes
        ]
        errors = [process.communicate()[1] for process in pullers]
        seconds = time.perf_counter() - started
        failed = [error for process, error in zip(pullers, errors, strict=True) if process.returncode]
        if failed:
            sys.exit(f"{len(failed)} of {len(pullers)} failed:\n{failed[0].decode()}")
        remark = f"all succeed; server {server_megabytes():.0f} MB (to reach 500)"
        show(f"{options.pullers} pullers of one dataset of 10 MB at once", None, [Run(seconds, 0.0)], remark)


PARTS = {"bytes": of_bytes, "blocks": of_blocks, "crowd": of_crowds}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--slices", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=10_000)
    parser.add_argument("--pullers", type=int, default=100)
    options = parser.parse_args()
    print_machine("pyarrow")
    for name, part in PARTS.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                part(Path(folder), options)


if __name__ == "__main__":
    main()
