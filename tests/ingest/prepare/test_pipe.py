"""Pipe: what a command gets, what it may do, and how it ends."""

from __future__ import annotations

import gzip
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.ingest.preparing import GZIP, Prepare

from odfpy.chain.sources import PrepPipe
from odfpy.errors import PrepareError
from odfpy.ingest.archive import UnpackLimits
from odfpy.ingest.prepare import check_steps, commands_of
from odfpy.sandbox.command import isolation, tether
from odfpy.sandbox.landlock import landlock_version


def shell(script: str) -> PrepPipe:
    return PrepPipe(("sh", "-c", script))


# --- Bytes in, bytes out ---


def test_a_command_filters(prepared: Prepare):
    assert prepared(PrepPipe(("sed", "-e", "1,/BEGIN/d")), content=b"x\nBEGIN\na,b\n") == b"a,b\n"


def test_commands_follow_each_other_and_other_steps(prepared: Prepare):
    steps = (GZIP, PrepPipe(("tr", "a", "b")), PrepPipe(("tr", "b", "c")))
    assert prepared(*steps, content=gzip.compress(b"aXb")) == b"cXc"


def test_more_than_pipes_hold_goes_through(prepared: Prepare):
    content = os.urandom(3 << 20)
    assert prepared(shell("head -c 1000000 /dev/zero >&2; cat"), content=content) == content


def test_input_need_not_be_read(prepared: Prepare):
    assert prepared(PrepPipe(("head", "-c", "1")), content=b"x" * (1 << 20)) == b"x"


def test_arguments_are_not_for_a_shell(prepared: Prepare):
    assert prepared(PrepPipe(("printf", "%s|", "$HOME", "a b", ";", "*")), content=b"") == b"$HOME|a b|;|*|"


def test_surroundings_are_always_the_same(prepared: Prepare, monkeypatch: pytest.MonkeyPatch, scratch: Path):
    monkeypatch.setenv("SECRET", "hunter2")
    variables = dict(line.split("=", 1) for line in prepared(PrepPipe(("env",)), content=b"").decode().splitlines())
    folder = str(scratch / "prepared-1-folder")
    assert variables == {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def test_a_command_may_use_its_own_folder(prepared: Prepare):
    assert prepared(shell("cat > x; ls; wc -c < x | tr -d ' '"), content=b"abc") == b"x\n3\n"


def test_a_command_has_no_network_where_the_kernel_lets_us(prepared: Prepare):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = f"import socket; socket.create_connection(('127.0.0.1', {port}), 60).close(); print('reached')"
        step = PrepPipe((sys.executable, "-c", program))
        if isolation():
            with pytest.raises(PrepareError, match=r"refused|unreachable"):
                prepared(step, content=b"")
        else:
            assert prepared(step, content=b"") == b"reached\n"


@pytest.mark.skipif(landlock_version() == 0, reason="this kernel has no Landlock")
def test_a_command_reads_what_it_names_and_writes_to_its_folder_only(prepared: Prepare, tmp_path: Path):
    (tmp_path / "secret").write_text("hunter2")
    (tmp_path / "named").write_text("mine")
    secret, named = tmp_path / "secret", tmp_path / "named"
    script = f"cat {secret} /proc/$PPID/environ; echo x > {tmp_path}/new; echo y >> {named}; cat $0; ls {tmp_path}"
    assert prepared(PrepPipe(("sh", "-c", f"({script}) 2>/dev/null; true", str(named))), content=b"") == b"mine"
    assert not (tmp_path / "new").exists()
    assert named.read_text() == "mine"


# --- Endings ---


def test_failure_shows_the_last_words(prepared: Prepare, scratch: Path):
    script = "echo partial; for i in $(seq 100); do echo line $i >&2; done; printf '\\033[31mred\\n' >&2; exit 3"
    with pytest.raises(PrepareError) as caught:
        prepared(shell(script), content=b"")
    first, *lines = caught.value.message.splitlines()
    assert first.startswith("Prepare step Pipe, `sh -c 'echo partial;")
    assert first.endswith("on input, failed with exit code 3")
    assert lines[-2:] == ["line 100", "red"]
    assert len(lines) == 20
    assert "PATH" in (caught.value.hint or "")
    assert not list(scratch.iterdir())


def test_failure_without_a_word(prepared: Prepare):
    with pytest.raises(PrepareError, match=r"^Prepare step Pipe, `false`, on input, failed with exit code 1$"):
        prepared(PrepPipe(("false",)), content=b"")


@pytest.mark.parametrize("script", ["sh -c 'kill -9 $$'; exit $?", "kill -9 $$", "kill -9 $$; exec cat"])
def test_end_by_a_signal_is_a_failure(prepared: Prepare, script: str):
    with pytest.raises(PrepareError, match=r"signal SIGKILL|exit code 137"):
        prepared(shell(script), content=b"a")


@pytest.mark.parametrize(
    "script", ["sleep 1000", "sleep 1000 & cat", "while :; do echo; done", "exec >&- 2>&-; sleep 1000"]
)
def test_command_that_takes_too_long_is_ended(prepared: Prepare, script: str, scratch: Path):
    script = f"{script} | cat; sleep 1000" if script.startswith("sleep 1000 &") else script
    with pytest.raises(PrepareError, match=r"took more than 0\.3 seconds") as caught:
        prepared(shell(script), content=b"", timeout=0.3)
    assert "prepare.timeout" in (caught.value.hint or "")
    assert not list(scratch.iterdir())


def test_all_that_a_command_started_ends_with_it(prepared: Prepare, scratch: Path):
    place = scratch / "prepared-1-folder" / "fifo"
    held = threading.Event()

    def watch() -> None:
        while not place.is_fifo():
            time.sleep(0.01)
        with place.open("rb") as fifo:
            assert fifo.read(1) == b"x"
            held.set()
            assert fifo.read() == b"", "end of file comes when nobody holds the other end"

    watcher = threading.Thread(target=watch)
    watcher.start()
    background = "mkfifo fifo; (printf x; : > started; exec sleep 1000) > fifo 2>/dev/null </dev/null &"
    script = f"{background} until test -e started; do sleep 0.01; done; cat"
    assert prepared(shell(script), content=b"done") == b"done"
    watcher.join(60)
    assert held.is_set()
    assert not watcher.is_alive()


PROGRAM = """
import signal, sys
from pathlib import Path
from odfpy.chain.sources import PrepPipe
from odfpy.ingest.prepare import PrepareContext, prepare
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run without it
prepare([PrepPipe(("sh", "-c", sys.argv[1]))], Path("/dev/null"), PrepareContext(scratch=Path(sys.argv[2])))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_all_that_a_command_started_ends_with_us(scratch: Path, number: signal.Signals):
    place = scratch / "prepared-1-folder" / "fifo"
    script = "mkfifo fifo; (printf x; sleep 20; printf y) > fifo 2>/dev/null"
    with subprocess.Popen((sys.executable, "-c", PROGRAM, script, str(scratch)), stderr=subprocess.PIPE) as us:
        while not place.is_fifo():
            time.sleep(0.01)
        with place.open("rb", buffering=0) as fifo:
            assert fifo.read(1) == b"x"
            us.send_signal(number)
            ends = number is signal.SIGINT or bool(tether())
            assert fifo.read(1) == (b"" if ends else b"y")
        us.communicate()
    assert us.returncode != 0
    if number is signal.SIGINT:
        assert not list(scratch.iterdir())


def test_a_full_disk_is_an_error_and_nothing_is_left(prepared: Prepare, scratch: Path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    try:
        for step, content in ((PrepPipe(("yes",)), b""), (GZIP, gzip.compress(b"x" * 2_000_000))):
            with pytest.raises(PrepareError, match=r"^Cannot prepare input: File too large$"):
                prepared(step, content=content)
            assert not list(scratch.iterdir())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_output_without_end_is_refused(prepared: Prepare, scratch: Path):
    with pytest.raises(PrepareError, match="gives more than 1000000 bytes") as caught:
        prepared(PrepPipe(("yes",)), content=b"", limits=UnpackLimits(max_bytes=1_000_000))
    assert "prepare.maxSize" in (caught.value.hint or "")
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("command", [(), ("no-such-program",), ("./script.sh",), ("/etc/passwd",), ("/",)])
def test_command_that_is_not_there_is_found_out_before_fetching(command: tuple[str, ...]):
    check_steps([GZIP, PrepPipe(("cat",))])
    with pytest.raises(PrepareError, match=r"has no command|there is no such program"):
        check_steps([GZIP, PrepPipe(command)])


def test_argument_that_no_program_can_be_given(prepared: Prepare):
    with pytest.raises(PrepareError, match="cannot run"):
        prepared(PrepPipe(("cat", "a\0b")), content=b"")


def test_commands_are_shown_as_people_type_them():
    assert commands_of([GZIP, PrepPipe(("jq", "-c", ".[] | .a")), PrepPipe(("cat",))]) == ("jq -c '.[] | .a'", "cat")
