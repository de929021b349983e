"""`odf relay demo`: the reference web for people."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
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


def wait_for_end_of(pids: list[int]) -> None:
    """Return when there is none of some processes any more, which may be children of others."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            assert select.select([descriptor], [], [], 60)[0] == [descriptor]
        finally:
            os.close(descriptor)


def test_what_is_printed_works_in_a_second_shell_and_sigterm_ends_all(tmp_path: Path) -> None:
    with demo(tmp_path / "web") as process:
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
        wait_for_end_of(started)


def test_no_relay_outlives_the_command_that_is_killed_and_the_folder_is_used_again(tmp_path: Path) -> None:
    keys = []
    for _ in range(2):
        with demo(tmp_path / "web") as process:
            assert printed(process)[-1].startswith("odf web sql")
            started = descendants(process.pid)
            process.kill()
            wait_for_end_of(started)
        keys.append((tmp_path / "web" / "keys" / "ca.pem").read_bytes())
    assert keys[0] == keys[1]


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
