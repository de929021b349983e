"""Whoever has got the better of what runs in the sandbox: what can they see, reach, change and use up?"""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.processes.sandbox_probe import SandboxProbe
from support.servers.serving import wait_until

PATIENCE = 300.0
MISSING = "FileNotFoundError"
READ_ONLY = "OSError: [Errno 30] Read-only file system"


class World:
    """A probe in a small workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("own", "data", "other", "out"):
            (root / name).mkdir()
        (root / "key").write_text("secret")
        for place in ("data/granted", "data/neighbour", "other/slice"):
            (root / place).write_text(place)
        self.probe = SandboxProbe(root / "own")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    made.probe.close()


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[SandboxProbe]:
    """One that may be destroyed."""
    made = SandboxProbe(tmp_path, memory=256 << 20)
    yield made
    made.close()


def eventually(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def inside(path: Path) -> str:
    return f"open({str(path)!r}).read()"


def test_files_are_seen_only_as_long_as_they_are_granted(world: World):
    granted, root = world.root / "data" / "granted", world.root
    assert world.probe.tells(inside(granted)).startswith(MISSING)
    world.probe.grant([granted], [root / "out"])
    assert world.probe.tells(inside(granted)) == "data/granted"
    assert world.probe.tells(f"open({str(granted)!r}, 'w')") == f"{READ_ONLY}: '{granted}'"
    assert world.probe.tells(f"sorted(os.listdir({str(granted.parent)!r}))") == ["granted"]
    assert world.probe.tells(f"open({str(root / 'out/made')!r}, 'w').write('x')") == 1
    for hidden in ("data/neighbour", "other/slice", "key"):
        assert world.probe.tells(inside(root / hidden)).startswith(MISSING)
    world.probe.revoke()
    assert world.probe.tells(inside(granted)).startswith(MISSING)
    assert world.probe.tells(f"os.listdir({str(root / 'out')!r})") == []
    assert (root / "out" / "made").read_text() == "x"


def test_a_thousand_files_are_granted_at_once_and_those_beside_what_is_always_seen_too(world: World):
    files = [world.root / "data" / f"{number}" for number in range(1000)]
    for file in files:
        file.write_text(file.name)
    beside_own = world.root / "beside"
    beside_own.write_text("beside")
    world.probe.grant([*files, beside_own], [])
    assert world.probe.tells(inside(files[-1])) == "999"
    assert world.probe.tells(inside(beside_own)) == "beside"
    assert world.probe.tells(f"os.path.exists({str(world.root / 'own')!r})") is True
    world.probe.revoke()


def test_a_folder_around_its_own_can_be_granted_and_taken_away(world: World):
    world.probe.grant([], [world.root])
    assert world.probe.tells(inside(world.root / "key")) == "secret"
    world.probe.revoke()
    assert world.probe.tells(inside(world.root / "key")).startswith(MISSING)
    assert world.probe.tells("os.path.isdir('/usr/bin') and open('/dev/null', 'w').write('x')") == 1


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/shadow", str(Path.home()), "/proc/1/root/etc/passwd"])
def test_nothing_of_the_machine_is_there(world: World, path: str):
    assert world.probe.tells(f"os.path.isfile({path!r})") is False
    assert ".ssh" not in str(world.probe.tells(f"os.path.isdir({path!r}) and os.listdir({path!r})"))


@pytest.mark.parametrize(
    "path", ["/x", "/tmp/x", "/usr/x", "/etc/x", "/dev/x", "/proc/sys/kernel/core_pattern", "/sys/x"]
)
def test_nothing_can_be_written_but_its_own_folder(world: World, path: str):
    assert re.match(
        r"OSError: \[Errno 30\]|FileNotFoundError|PermissionError", world.probe.tells(f"open({path!r}, 'w')")
    )
    assert world.probe.tells(f"open({str(world.root / 'own/x')!r}, 'w').write('x')") == 1
    assert "PermissionError" in world.probe.tells(f"os.mknod({str(world.root / 'own/disk')!r}, 0o60600, 0x0800)")


def test_no_other_process_can_be_seen_or_ended(world: World):
    assert world.probe.tells("[int(name) for name in os.listdir('/proc') if name.isdigit()]") == [1, 2]
    assert world.probe.tells(f"os.kill({os.getpid()}, 0)").startswith("ProcessLookupError")


def test_there_is_no_network_but_its_own(world: World):
    own = (
        "(lambda s: socket.create_connection(s.getsockname()).getpeername()[0])(socket.create_server(('127.0.0.1', 0)))"
    )
    assert world.probe.tells(own) == "127.0.0.1"
    assert "unreachable" in world.probe.tells("socket.create_connection(('192.0.2.1', 80), 5)")
    with socket.create_server(("127.0.0.1", 0)) as outside:
        address = outside.getsockname()
        assert world.probe.tells(f"socket.create_connection({address}, 5)").startswith("ConnectionRefusedError")
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0odf-test-outside")
        abstract.listen()
        connect = "socket.socket(socket.AF_UNIX).connect('\\0odf-test-outside')"
        assert world.probe.tells(connect).startswith("ConnectionRefusedError")


def test_nothing_is_inherited(world: World):
    links = "[f'/proc/self/fd/{name}' for name in os.listdir('/proc/self/fd') if int(name) > 2]"
    found = world.probe.tells(f"[os.readlink(link) for link in {links} if os.path.islink(link)]")
    assert [link for link in found if not link.startswith("socket:")] == []


def test_there_is_no_way_back_to_rights(world: World):
    status = world.probe.tells("open('/proc/self/status').read()")
    assert re.search(r"CapEff:\s+0+\nCapBnd:\s+0+\n", status)
    assert "NoNewPrivs:\t1" in status
    libc = "ctypes.CDLL(None, use_errno=True)"
    assert world.probe.tells(f"{libc}.unshare(0x10000000)") == -1
    assert world.probe.tells(f"{libc}.mount(b'tmpfs', {str(world.root / 'own').encode()!r}, b'tmpfs', 0, None)") == -1
    assert world.probe.tells(f"{libc}.umount2(b'/etc/alternatives', 2)") == -1


def test_a_fork_bomb_is_stopped_and_swept_away(probe: SandboxProbe, tmp_path: Path):
    bomb = f"""exec('''
made = 0
try:
    while made < 3000:
        if os.fork() == 0:
            signal.pause()
        made += 1
except OSError:
    pass
open({str(tmp_path / "made")!r}, "w").write(str(made))
''')"""
    probe.tells(bomb)
    made = int((tmp_path / "made").read_text())
    # Superusers are bound since Linux 6.14 only.
    assert 100 < made < 400 or (
        os.getuid() == 0 and tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 14)
    )
    family = probe.family()
    assert len(family) > made
    probe.kill()
    assert not [pid for pid in family if is_alive(pid)]


def test_memory_is_limited_for_one_process_and_measured_for_all(probe: SandboxProbe, tmp_path: Path):
    assert probe.tells("len(bytearray(512 << 20))").startswith("MemoryError")
    for _ in range(3):
        probe.tells("[bytearray(100 << 20), os.fork() or signal.pause()][1]")
    family = len(probe.family())
    assert family == 5
    words = probe.excess(tmp_path, memory=250 << 20)
    assert words is not None
    assert re.fullmatch(r"it used \d+ MiB of memory, and may use 250 MiB", words)
    assert probe.excess(tmp_path) is None


def test_a_process_in_the_memory_of_its_parent_takes_none_of_its_own(probe: SandboxProbe, tmp_path: Path):
    """As each that Java starts is, until its program runs: on a machine at work that may take a while."""
    libc, stack = "ctypes.CDLL(None)", "ctypes.create_string_buffer(1 << 16)"
    top = f"ctypes.c_void_p(ctypes.addressof(stack := {stack}) + len(stack) & ~15)"
    clone_vm = f"libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), {top}, 0x100 | signal.SIGCHLD, None)"
    held = "held := b'x' * (200 << 20)"
    names = f"(ctypes := __import__('ctypes'), libc := {libc})"
    probe.tells(f"os.fork() or [{names}, {held}, {clone_vm}, signal.pause()]")
    wait_until(lambda: len(probe.family()) == 4)
    words = probe.excess(tmp_path, memory=150 << 20)
    assert words is not None
    assert probe.excess(tmp_path, memory=350 << 20) is None


def test_what_is_written_is_measured(probe: SandboxProbe, tmp_path: Path):
    probe.tells(f"open({str(tmp_path / 'large')!r}, 'wb').write(bytes(8 << 20))")
    assert probe.excess(tmp_path, disk=4 << 20) == "it wrote 8 MiB to the disk, and may write 4 MiB"
    assert probe.excess(tmp_path, disk=16 << 20) is None


def test_all_ends_with_the_owner_even_what_runs_for_ever(probe: SandboxProbe):
    probe.tells("os.fork() or [0 for _ in iter(int, 1)]")
    family = probe.family()
    probe.owner.send_signal(signal.SIGKILL)
    eventually(lambda: not any(map(is_alive, family)))
