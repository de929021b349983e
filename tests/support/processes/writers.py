"""Writers that run in processes of their own, to race each other or to be killed."""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from support.chains.events import NOW, ROOT, SCHEMA, add

from odfpy.chain.events import AddData, MetadataEvent
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.state import ChainState
from odfpy.chain.stores.ref_store import HEAD, LocalRefStore
from odfpy.data.multihash import Multihash
from odfpy.testing.ref_store import race

SLICES = 2


def race_in_process(folder: Path, writer: int, rounds: int, barrier: Any, results: Any) -> None:
    """Run one of several writers that move the same head."""
    results.put(race(LocalRefStore(folder), writer, rounds, lambda: barrier.wait(60)))


def slice_file(number: int) -> bytes:
    """Return the bytes of the file of a slice."""
    return bytes([number]) * 300_000


def write_dataset(folder: Path) -> ChainState:
    """Create or continue a dataset: `SLICES` commits, each with a slice that is put in place before."""
    layout = DatasetLayout.local(folder)
    chain = layout.chain
    state = ChainState() if layout.refs.get(HEAD) is None else chain.state()
    if state.head is None:
        state = chain.commit(chain.prepare(state, [ROOT, SCHEMA], NOW))
    for number in range(state.num_records // 10, SLICES):
        data = slice_file(number)
        name = Multihash.of(data)
        if number % 2:
            layout.data.insert_stream(io.BytesIO(data), name, size=len(data))
        else:
            written = folder / "scratch"
            written.write_bytes(data)
            layout.data.insert_file(written, name)
        state = chain.commit(chain.prepare(state, [_event(number, name)], NOW))
    return state


def _event(number: int, name: Multihash) -> MetadataEvent:
    event = add(10 * number, 10 * number + 9)
    assert event.new_data is not None
    interval = event.new_data.offset_interval
    return AddData(
        prev_offset=event.prev_offset, new_data=type(event.new_data)(name, name, interval, len(slice_file(number)))
    )


def write_and_die(folder: Path, at: int) -> None:
    """Make a dataset, but be killed at the line of that number that is executed in `odfpy.chain`."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        del argument
        if "/odfpy/chain/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            lines += 1
            if lines == at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    write_dataset(folder)
    sys.settrace(None)
    (folder / "lines").write_text(str(lines))


def fork_on_request() -> None:
    """For each line `folder<TAB>at` on standard input, `write_and_die` in a separate process; answers its exit code.

    A process that has loaded everything and has one thread only can fork in no time, and safely.
    """
    for line in sys.stdin:
        folder, at = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            write_and_die(Path(folder), int(at))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def write_for_ever(folder: Path) -> None:
    """Make one dataset after the other, until killed."""
    number = 0
    while True:
        write_dataset(folder / str(number))
        number += 1
