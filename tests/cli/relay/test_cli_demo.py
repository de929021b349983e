"""`odf relay demo`: the reference web for people."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli.conftest import Odf
from support.processes.killing import descendants

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ODF_WEB_")}


@contextmanager
def demo(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, which is killed if it has not ended by itself."""
    program = [sys.executable, "-m", "odfpy", "relay", "demo", "--folder", str(folder), "--port-base", "0"]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def printed(process: subprocess.Popen[str], last: str = "q1_fractions.sql") -> list[str]:
    """What it prints until all is there."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if last in line:
            break
    return lines


def have_ended(pids: list[int]) -> bool:
    """Wait for the end of some processes, which may be children of others; return whether it came."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if select.select([descriptor], [], [], 60)[0] != [descriptor]:
                return False
        finally:
            os.close(descriptor)
    return True


@dataclass(frozen=True)
class Killed:
    """What a demo has left that was killed.

    Attributes:
        folder: its folder.
        authority: the certificate of its authority.
        last_line: the last line that it had printed.
        has_ended: whether all of its processes have.
    """

    folder: Path
    authority: bytes
    last_line: str
    has_ended: bool


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """A demo that was killed; to start one takes long."""
    folder = tmp_path_factory.mktemp("demo") / "web"
    with demo(folder) as process:
        last = printed(process)[-1]
        started = descendants(process.pid)
        assert len(started) >= 5
        process.kill()
        has_ended = have_ended(started)
    return Killed(folder, (folder / "keys" / "ca.pem").read_bytes(), last, has_ended)


def test_no_relay_outlives_the_command_that_is_killed(killed: Killed) -> None:
    assert killed.last_line.startswith("odf web sql")
    assert killed.has_ended


def test_what_is_printed_works_in_a_second_shell_and_sigterm_ends_all(killed: Killed, tmp_path: Path) -> None:
    """Also in a folder that was used before, whose keys stay."""
    folder = shutil.copytree(killed.folder, tmp_path / "web")
    with demo(folder) as process:
        lines = printed(process)
        exports = [line for line in lines if line.startswith("export ")]
        [asked, *_] = [line for line in lines if "q1_percent.sql" in line]
        shell = f'odf() {{ {sys.executable} -m odfpy "$@"; }}\n' + "\n".join([*exports[:4], f"{asked} -o json"])
        answer = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env=ENVIRONMENT, check=False)
        assert answer.returncode == 0, answer.stderr
        counts = {(row["returnflag"], row["linestatus"]): row["count_order"] for row in json.loads(answer.stdout)}
        assert counts == {("N", "F"): 1_740, ("N", "O"): 145_908}
        assert "the rows of offline are missing" in answer.stderr
        strict = subprocess.run(
            ["bash", "-c", f"{shell} --require-complete"], capture_output=True, text=True, env=ENVIRONMENT, check=False
        )
        assert (strict.returncode, strict.stdout) == (1, "")
        assert "Rows are missing: offline" in strict.stderr
        started = descendants(process.pid)
        assert len(started) >= 5
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert have_ended(started)
    assert (folder / "keys" / "ca.pem").read_bytes() == killed.authority


def test_a_folder_with_other_files_stays_as_it_is(odf: Odf, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    refused = odf("relay", "demo", "--folder", str(tmp_path))
    assert (refused.code, "has other files" in refused.says) == (1, True)
    assert [one.name for one in tmp_path.iterdir()] == ["mine.txt"]


def test_without_the_program_that_makes_tables(odf: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = odf("relay", "demo", "--folder", str(tmp_path / "web"))
    assert refused.code == 1
    assert "The tables of the demo need the Python package tpchgen-cli" in refused.says
    assert "pip install 'opendatafabric[demo]'" in refused.says
    assert not (tmp_path / "web").exists()


@pytest.mark.parametrize("port", ["65531", "x"])
def test_ports_that_cannot_be(odf: Odf, tmp_path: Path, port: str) -> None:
    refused = odf("relay", "demo", "--folder", str(tmp_path / "web"), "--port-base", port)
    assert (refused.code, "--port-base" in refused.says) == (2, True)
    assert not (tmp_path / "web").exists()
