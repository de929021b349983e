"""Files into an archive and out of it, beside `cp` and hashing, and beside `curl` and hashing.

    python benchmarks/archive_files.py [--only small|large|served] [--files 10000] [--gigabytes 10] [--rounds 3]

Whole commands, from the start of the process to its end. The peer does what an archive has to do at least: copy the
bytes, and hash them by both hashes that a record has (BLAKE2b of 16 bytes by `b2sum`, BLAKE3 by the package blake3, in
one process for all files). Disks are flushed by both: `sync` ends the peer's time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from support import ODF, Run, print_machine, show

HASH = """
import sys
from blake3 import blake3
for path in sys.stdin.read().split():
    with open(path, "rb") as file:
        hasher = blake3()
        while chunk := file.read(1 << 20):
            hasher.update(chunk)
        hasher.hexdigest()
"""
WORDS = ("--what", "image", "--where", "lab", "--start", "mtime")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=("small", "large", "served"))
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print_machine("pyarrow", "blake3")
    with tempfile.TemporaryDirectory(prefix="odf-archive-", dir=Path.cwd()) as text:
        folder = Path(text)
        if arguments.only in (None, "small"):
            small(folder / "small", arguments.files, arguments.rounds)
        if arguments.only in (None, "large"):
            large(folder / "large", int(arguments.gigabytes * 1e9))
        if arguments.only in (None, "served"):
            served(folder / "served", int(arguments.gigabytes * 1e9))


# --- Many small files ---


def small(folder: Path, count: int, rounds: int) -> None:
    """All of them in one push, each round into a new archive."""
    inbox = folder / "inbox"
    inbox.mkdir(parents=True)
    dice = np.random.default_rng(7)
    for number in range(count):
        (inbox / f"{number:06}.bin").write_bytes(dice.bytes(10_000))
    pushes, peers = [], []
    for turn in range(rounds):
        workspace = made(folder / f"workspace-{turn}")
        pushes.append(run(workspace, "archive", "push", str(inbox), "--recursive", *WORDS, "-q"))
        peers.append(timed(lambda turn=turn: copied_and_hashed(inbox, folder / f"copy-{turn}")))
        shutil.rmtree(workspace)
        shutil.rmtree(folder / f"copy-{turn}")
    show(f"push of {count} files of 10 kB", None, pushes)
    show("cp -r, b2sum and BLAKE3 of the same", None, peers)
    print(f"{ratio(pushes, peers):.2f} times as long (to reach 3)")


def copied_and_hashed(source: Path, target: Path) -> None:
    """What the peer does: copy, hash twice, flush."""
    subprocess.run(["cp", "-r", source, target], check=True)
    paths = "\n".join(str(path) for path in target.iterdir()) if target.is_dir() else str(target)
    subprocess.run(["xargs", "b2sum", "-l", "128"], input=paths.encode(), stdout=subprocess.DEVNULL, check=True)
    subprocess.run([sys.executable, "-c", HASH], input=paths.encode(), check=True)
    subprocess.run(["sync", "-f", target], check=True)


# --- One large file ---


def large(folder: Path, size: int) -> None:
    """Pushed and fetched in the workspace."""
    file = large_file(folder, size)
    workspace = made(folder / "workspace")
    pushed, memory = watched(workspace, "archive", "push", str(file), *WORDS)
    peer = timed(lambda: copied_and_hashed(file, folder / "copy"))
    report(f"push of {size / 1e9:.0f} GB", pushed, memory, peer, "cp, b2sum and BLAKE3")
    (folder / "copy").unlink()
    url = listed(workspace)
    fetched, memory = watched(workspace, "archive", "fetch", url, "--to", str(folder / "fetched"))
    peer = timed(lambda: copied_and_checked(folder))
    report(f"fetch of {size / 1e9:.0f} GB", fetched, memory, peer, "cp and BLAKE3")
    shutil.rmtree(folder)


def copied_and_checked(folder: Path) -> None:
    """What the peer of a fetch does: copy, and check one hash."""
    (file,) = (folder / "inbox").iterdir()
    subprocess.run(["cp", file, folder / "copy"], check=True)
    subprocess.run([sys.executable, "-c", HASH], input=str(folder / "copy").encode(), check=True)
    subprocess.run(["sync", "-f", folder / "copy"], check=True)


def served(folder: Path, size: int) -> None:
    """Fetched from `odf serve` over loopback."""
    file = large_file(folder, size)
    workspace = made(folder / "workspace")
    watched(workspace, "archive", "push", str(file), *WORDS)
    with serving(workspace) as base:
        command = [*ODF, "archive", "list", "image", "--start", "0", "--archive", f"{base}/files", "--format", "http"]
        url = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        fetched, memory = watched(workspace, "archive", "fetch", url, "--to", str(folder / "fetched"))
        peer = timed(lambda: downloaded_and_checked(url, folder / "copy"))
    report(f"fetch of {size / 1e9:.0f} GB from odf serve", fetched, memory, peer, "curl and BLAKE3")
    shutil.rmtree(folder)


def downloaded_and_checked(url: str, target: Path) -> None:
    """What the peer does: download, and check one hash."""
    subprocess.run(["curl", "-sf", "-o", target, url], check=True)
    subprocess.run([sys.executable, "-c", HASH], input=str(target).encode(), check=True)
    subprocess.run(["sync", "-f", target], check=True)


# --- Tools ---


def large_file(folder: Path, size: int) -> Path:
    """A file of random bytes."""
    (folder / "inbox").mkdir(parents=True)
    path = folder / "inbox" / "large.bin"
    dice = np.random.default_rng(7)
    with path.open("wb") as file:
        left = size
        while left:
            left -= file.write(dice.bytes(min(left, 64 << 20)))
    return path


def made(folder: Path) -> Path:
    """A workspace with an archive."""
    subprocess.run([*ODF, "init", str(folder), "-q"], check=True)
    subprocess.run([*ODF, "-w", str(folder), "archive", "init", "files", "-q"], check=True)
    with (folder / ".odf" / "config.yaml").open("a") as file:
        file.write("serve:\n  maxObject: 107374182400\n")
    subprocess.run([*ODF, "-w", str(folder), "set-visibility", "files", "public", "-q"], check=True)
    return folder


def listed(workspace: Path) -> str:
    """The address of the only file."""
    command = [*ODF, "-w", str(workspace), "archive", "list", "image", "--start", "0"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def run(workspace: Path, *arguments: str) -> Run:
    """An `odf` command."""
    return watched(workspace, *arguments)[0]


def watched(workspace: Path, *arguments: str) -> tuple[Run, float]:
    """An `odf` command, and the greatest resident size of its process in megabytes."""
    started = time.perf_counter()
    process = subprocess.Popen([*ODF, "-w", str(workspace), *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit(f"odf {' '.join(arguments)} failed")
    return Run(time.perf_counter() - started, used.ru_utime + used.ru_stime), used.ru_maxrss / 1024


def timed(work: Callable[[], None]) -> Run:
    """Some work of other programs."""
    before, started = os.times(), time.perf_counter()
    work()
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(time.perf_counter() - started, used)


@contextmanager
def serving(workspace: Path) -> Iterator[str]:
    """`odf serve`, and its address."""
    command = [*ODF, "-w", str(workspace), "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            line = next(line for line in process.stdout if "http://" in line)
            yield "http://" + line.partition("http://")[2].split()[0].rstrip("/.,")
        finally:
            process.terminate()


def ratio(runs: list[Run], peers: list[Run]) -> float:
    """Of the medians."""
    return float(np.median([run.seconds for run in runs]) / np.median([run.seconds for run in peers]))


def report(label: str, one: Run, memory: float, peer: Run, what: str) -> None:
    """Lines of a large file."""
    show(label, None, [one], f"{memory:.0f} MB of memory (to reach 200)")
    show(what, None, [peer])
    print(f"{peer.seconds / one.seconds:.2f} of its speed (to reach 0.8)")


if __name__ == "__main__":
    main()
