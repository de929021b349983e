"""A pull whose process is killed in the middle, and the next one."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.chains.small_datasets import add_info, add_slice, image, make_dataset
from support.processes.terminal import INTERRUPTIBLE
from support.servers.static_server import StaticServer, send, static_server

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.object_store import LocalObjectStore
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.transfer.simple import transfer

PULL = """
import sys
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.transfer.simple import transfer
transfer(open_dataset(sys.argv[1]), open_dataset(sys.argv[2]))
"""
SIZE = 400_000


@dataclass
class Stalled:
    """A pull of four slices in a separate process, whose server has sent half of the third and then nothing more."""

    process: subprocess.Popen[str]
    there: DatasetLayout
    here: DatasetLayout
    names: list[Multihash]
    server: StaticServer
    stalled: Multihash


@pytest.fixture(params=[False, True], ids=["new-copy", "older-copy"])
def pull(request, tmp_path: Path) -> Iterator[Stalled]:
    there, here = (DatasetLayout.local(tmp_path / name) for name in ("there", "here"))
    make_dataset(there, "a")
    if request.param:
        transfer(there, here)
    add_info(there, "b")
    names = [add_slice(there, bytes([number]) * SIZE)[0] for number in range(4)]
    half_sent, over = threading.Event(), threading.Event()

    def stall(handler):
        send(handler, there.data.read(names[2])[: SIZE // 2], Content_Length=SIZE)
        half_sent.set()
        over.wait(300)
        handler.close_connection = True

    with static_server(tmp_path) as server:
        server.special[f"/data/{names[2]}"] = stall
        process = subprocess.Popen(
            [sys.executable, "-c", f"{INTERRUPTIBLE}\n{PULL}", f"{server.url}/there", str(tmp_path / "here")],
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            assert half_sent.wait(300)
            yield Stalled(process, there, here, names, server, names[2])
            over.set()


def test_killed_pull_changes_nothing_and_the_next_one_goes_on(pull: Stalled):
    here, there, server = pull.here, pull.there, pull.server
    head = here.refs.get(HEAD)
    pull.process.kill()
    assert pull.process.wait(300) == -signal.SIGKILL
    assert here.refs.get(HEAD) == head
    if head is not None:
        assert here.chain.state() == there.chain.state(head)
    kept = set(here.data)
    assert kept <= set(pull.names) - {pull.stalled}
    assert all(here.data.read(name) for name in kept)

    server.special.clear()
    server.forget()
    for store in (here.blocks, here.data, here.checkpoints):
        assert isinstance(store, LocalObjectStore)
        store.clean()  # as whoever takes the dataset's lock does
    result = transfer(open_dataset(f"{server.url}/there"), here)
    assert result.num_objects == 4 - len(kept)
    assert not {f"/there/data/{name}" for name in kept} & set(server.asked("/data/"))
    assert image(here) == image(there)
    assert temporary_files(here) == []


def test_interrupted_pull_ends_at_once_and_cleans_up(pull: Stalled):
    head = pull.here.refs.get(HEAD)
    pull.process.send_signal(signal.SIGINT)
    _, errors = pull.process.communicate(timeout=200)  # the server would keep it waiting for longer
    assert "KeyboardInterrupt" in errors
    assert pull.here.refs.get(HEAD) == head
    assert temporary_files(pull.here) == []


def temporary_files(layout: DatasetLayout) -> list[Path]:
    assert isinstance(layout.data, LocalObjectStore)
    return list(layout.data.folder.parent.rglob(".tmp*"))
