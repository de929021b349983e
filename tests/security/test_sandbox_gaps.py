"""What namespaces leave open: odd sockets, memory and files that limits do not see, and what lies about in /usr."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.processes.sandbox_probe import SandboxProbe, namespaces_work

from odfpy.sandbox.view import view_of_python


def _works() -> bool:
    with TemporaryDirectory(prefix="odf-sandbox-") as folder:
        return namespaces_work(Path(folder))


@pytest.fixture(scope="module", params=["confined", "restricted"])
def probe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProbe]:
    if request.param == "confined" and not _works():
        pytest.skip("this system forbids namespaces")
    folder = tmp_path_factory.mktemp(request.param)
    made = SandboxProbe(folder, way=request.param)
    if made.trouble is not None:
        pytest.skip(made.trouble)
    made.folder = folder  # type: ignore[attr-defined]
    yield made
    made.close()


VSOCK, NETLINK, PACKET, ALG, BLUETOOTH, XDP, TIPC = 40, 16, 17, 38, 31, 44, 30


@pytest.mark.parametrize("family", [VSOCK, NETLINK, PACKET, ALG, BLUETOOTH, XDP, TIPC, 255])
@pytest.mark.parametrize("kind", [1, 2, 3, 5])
def test_sockets_are_of_the_loopback_or_of_files(probe: SandboxProbe, family: int, kind: int) -> None:
    said = probe.tells(f"socket.socket({family}, {kind})")
    assert said == "OSError: [Errno 97] Address family not supported by protocol"


def test_usual_sockets_are_there(probe: SandboxProbe) -> None:
    for family in (1, 2, 10):
        assert "socket.socket" in probe.tells(f"socket.socket({family}, 1)")
    assert probe.tells("len(socket.socketpair())") == 2
    assert probe.tells("socket.getaddrinfo('127.0.0.1', 80)[0][4]") == ["127.0.0.1", 80]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("memfd_create", "os.memfd_create('x')"),
        ("memfd_secret", "LIBC.syscall(447, 0)"),
        ("io_uring_setup", "LIBC.syscall(425, 8, ctypes.create_string_buffer(120))"),
        ("shmget", "LIBC.shmget(0, 1 << 20, 0o1600)"),
        ("msgget", "LIBC.msgget(0, 0o1600)"),
        ("semget", "LIBC.semget(0, 1, 0o1600)"),
    ],
)
def test_what_would_get_round_the_limits_is_not_there(probe: SandboxProbe, call: str, arguments: str) -> None:
    said = probe.tells(arguments.replace("LIBC", "ctypes.CDLL(None, use_errno=True)"))
    assert said == -1 or "not implemented" in said, call


def test_nor_is_it_for_programs_that_it_starts(probe: SandboxProbe) -> None:
    program = "import os; os.memfd_create(chr(120))"
    said = probe.tells(
        f"subprocess.run([{os.path.realpath('/proc/self/exe')!r}, '-c', {program!r}], capture_output=True, text=True).stderr"
    )
    assert "Function not implemented" in said


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[SandboxProbe]:
    made = SandboxProbe(tmp_path, way="confined" if _works() else "restricted")
    yield made
    made.close()


def test_a_file_that_has_been_removed_counts_as_long_as_it_is_open(writer: SandboxProbe, tmp_path: Path) -> None:
    path = str(tmp_path / "hidden")
    writer.tells(
        f"[kept := os.open({path!r}, os.O_RDWR | os.O_CREAT), os.write(kept, bytes(8 << 20)), os.unlink({path!r})]"
    )
    assert writer.excess(tmp_path, disk=4 << 20) == "it wrote 8 MiB to the disk, and may write 4 MiB"
    assert writer.excess(tmp_path, disk=16 << 20) is None
    writer.tells("os.dup(kept)")  # it is one file all the same
    assert writer.excess(tmp_path, disk=16 << 20) is None


def test_and_as_long_as_it_is_mapped(writer: SandboxProbe, tmp_path: Path) -> None:
    path = str(tmp_path / "mapped")
    writer.tells(
        f"[f := os.open({path!r}, os.O_RDWR | os.O_CREAT), os.write(f, bytes(8 << 20)), "
        "mapped := __import__('mmap').mmap(f, 8 << 20), "
        f"[os.close(int(n)) for n in os.listdir('/proc/self/fd') if os.path.realpath('/proc/self/fd/' + n) == {path!r}], "
        f"os.unlink({path!r})]"
    )
    assert writer.excess(tmp_path, disk=4 << 20) == "it wrote 8 MiB to the disk, and may write 4 MiB"


def test_of_usr_there_is_what_programs_need(tmp_path: Path) -> None:
    shown = view_of_python(folder=tmp_path)
    for hidden in ("/usr/local/share", "/usr/src", "/usr/share/doc", "/usr/share", "/usr/include", "/usr/local/etc"):
        assert not shown.shows(hidden), hidden
    for needed in ("/usr/lib", "/usr/bin", "/usr/share/zoneinfo"):
        assert shown.shows(needed) or not Path(needed).exists()
