"""`odf` as a process: pipes, terminals, interruptions, and others that work on the same datasets."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.engine.session import MEMORY
from support.processes.terminal import (
    PATIENCE,
    environment,
    program_at_terminal,
    start,
    terminal,
    wait_until_interruptible,
)

from odfpy.cli.interruptions import MESSAGE
from odfpy.coordinator.workspace import Workspace

LINE = '{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}\n'
INTERRUPTED = f"error: {MESSAGE}\n"


def odf(*arguments: str, cwd: Path, flags: tuple[str, ...] = ()) -> tuple[int, str, str]:
    process = start(*arguments, cwd=cwd, flags=flags)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def is_at_a_lock(pid: int, folder: Path) -> bool:
    """Whether a process has opened one of the locks in a folder."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            if link.readlink().is_relative_to(folder):
                return True
    return False


def is_whole(workspace: Path) -> bool:
    """Whether everything verifies and nothing is left over."""
    scratch = workspace / ".odf" / "run" / "scratch"
    temporary = [path for path in (workspace / ".odf").rglob("*") if path.name.startswith((".tmp", ".alias"))]
    left = [*(scratch.iterdir() if scratch.exists() else ()), *temporary]
    return left == [] and all(report.ok for report in Workspace.open(workspace).verify(all=True, integrity_only=True))


# --- Pipes -----------------------------------------------------------------------------------------------------------


def test_who_has_read_enough_is_not_told_of_a_broken_pipe(workspace: Path) -> None:
    for command in ("list", "log trades", "tail trades -o csv", "show trades", "--help"):
        process = start(*command.split(), cwd=workspace)
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, err) == (141, ""), command


def test_closed_and_full_streams(workspace: Path) -> None:
    def sh(redirected: str) -> tuple[int, str]:
        program = f'exec "$@" {redirected}'
        done = subprocess.run(
            ["/bin/sh", "-c", program, "sh", *list(start_words("list"))],
            cwd=workspace, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stderr

    assert sh(">&-") == (0, "")
    assert sh(">/dev/null 2>&- <&-") == (0, "")
    assert sh(">/dev/full") == (1, "error: No space left on device (E900)\n")


def test_a_server_with_a_closed_standard_input_ends(workspace: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *start_words("mcp")],
        cwd=workspace, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, capture_output=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_remarks_that_cannot_be_written_do_not_decide_what_becomes_of_the_work(workspace: Path) -> None:
    rows = '{"event_time": "2024-02-01T00:00:00Z", "id": 9, "name": "XYZ"}'
    (workspace / "rows.ndjson").write_text(rows)
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" 2>/dev/full', "sh", *start_words("ingest", "com.example.rates", "rows.ndjson")],
        cwd=workspace, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "XYZ" in subprocess.run(
        start_words("tail", "com.example.rates", "-o", "csv"), cwd=workspace, capture_output=True, text=True, check=True
    ).stdout  # fmt: skip


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", 'rmdir ../gone && exec "$@"', "sh", *start_words("list")],
        cwd=tmp_path / "gone", env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "error: The current folder no longer exists (E900)\n")


def test_one_pipe_has_lines_in_the_order_that_they_were_printed_in(workspace: Path) -> None:
    process = start("verify", "--all", "--integrity", cwd=workspace, stderr=subprocess.STDOUT)
    out, _ = process.communicate(timeout=PATIENCE)
    *reports, last = out.splitlines()
    assert last == f"{len(reports)} verified", out


def start_words(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from odfpy.cli.app import main; main()", *arguments]


def test_an_alphabet_without_lines_is_no_error(workspace: Path) -> None:
    process = subprocess.run(
        start_words("inspect", "lineage", "com.example.upper"),
        cwd=workspace, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONIOENCODING": "ascii"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (process.returncode, process.stderr) == (0, "")
    assert "com.example.rates" in process.stdout


# --- Others that write -----------------------------------------------------------------------------------------------


def test_a_second_writer_is_told_of_the_first_and_changes_nothing(workspace: Path) -> None:
    first = start("ingest", "com.example.rates", "--stdin", cwd=workspace)
    lock = workspace / ".odf" / "run" / "locks"
    while not any(f"pid {first.pid}" in path.read_text() for path in lock.glob("*")):
        assert first.poll() is None, "it waits for its input"
        time.sleep(0.01)
    head = Workspace.open(workspace).datasets.summary("com.example.rates").head
    for command in ("pull com.example.rates", "rename com.example.rates x", "delete com.example.rates --yes --force"):
        code, out, err = odf(*command.split(), cwd=workspace)
        assert (code, out) == (1, "")
        assert f"is being written to by another process (pid {first.pid}: odf ingest com.example.rates --stdin)" in err
        assert "hint: Run the command again when it has finished, or with `--wait 5m`" in err
    assert odf("tail", "com.example.rates", cwd=workspace)[0] == 0, "who only reads need not wait"
    assert Workspace.open(workspace).datasets.summary("com.example.rates").head == head
    _, err = first.communicate(LINE, timeout=PATIENCE)
    assert (first.returncode, "updated, 1 record" in err) == (0, True)
    assert is_whole(workspace)


def test_a_writer_waits_for_another_one(workspace: Path) -> None:
    first = start("ingest", "com.example.rates", "--stdin", cwd=workspace)
    lock = workspace / ".odf" / "run" / "locks"
    while not any(f"pid {first.pid}" in path.read_text() for path in lock.glob("*")):
        assert first.poll() is None, "it waits for its input"
        time.sleep(0.01)
    code, _, err = odf("pull", "com.example.rates", "--wait", "1s", cwd=workspace)
    assert (code, f"by another process (pid {first.pid}" in err) == (1, True)
    (workspace / "more.ndjson").write_text(LINE.replace("9", "20"))
    second = start("ingest", "com.example.rates", "more.ndjson", "--wait", "5m", cwd=workspace)
    while not is_at_a_lock(second.pid, lock):
        assert second.poll() is None, "it waits for the first"
        time.sleep(0.01)
    _, err = first.communicate(LINE, timeout=PATIENCE)
    assert (first.returncode, "updated, 1 record" in err) == (0, True)
    _, err = second.communicate(timeout=PATIENCE)
    assert (second.returncode, "updated, 1 record" in err) == (0, True)
    assert is_whole(workspace)


def test_two_pulls_at_once_both_end_well_or_say_who_is_in_the_way(workspace: Path) -> None:
    processes = [start("ingest", "com.example.rates", "--stdin", "-o", "json", cwd=workspace) for _ in range(3)]
    told = []
    for number, process in enumerate(processes):
        out, err = process.communicate(LINE.replace("9", str(20 + number)), timeout=PATIENCE)
        told.append((process.returncode, out, err))
    done = [json.loads(out) for code, out, _ in told if code == 0]
    assert done
    assert all("is being written to" in err for code, _, err in told if code != 0)
    assert Workspace.open(workspace).datasets.summary("com.example.rates").num_records == 3 + len(done)
    assert is_whole(workspace)


# --- Interruptions ---------------------------------------------------------------------------------------------------


def test_ctrl_c_while_waiting_for_input(workspace: Path) -> None:
    process = start("ingest", "com.example.rates", "--stdin", cwd=workspace)
    while not list((workspace / ".odf" / "run" / "scratch").glob("*/stdin")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (130, "", INTERRUPTED)
    assert is_whole(workspace)
    assert Workspace.open(workspace).datasets.summary("com.example.rates").num_records == 3


@pytest.mark.parametrize(
    ("step", "code", "told"),
    [
        ("mend_streams", 130, INTERRUPTED),
        ("do_without_pandas", 130, INTERRUPTED),
        ("run", 130, INTERRUPTED),
        ("execute", 130, INTERRUPTED),
        ("exit_without_teardown", -signal.SIGINT, ""),
    ],
)
def test_ctrl_c_at_a_step_of_the_start_or_the_end(step: str, code: int, told: str, workspace: Path) -> None:
    """When a function is called; the last one when the command is done."""
    program = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def interrupt(frame, event, _):\n"
        f"    if event == 'call' and frame.f_code.co_name == {step!r}:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "from odfpy.cli.app import main; sys.setprofile(interrupt); sys.argv = ['odf', 'list']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=workspace, env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, told)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("moment", [0.2, 0.6, 0.0, 0.4])
def test_ctrl_c_at_any_moment_leaves_nothing_half_made(moment: float, workspace: Path) -> None:
    """Later moments fall into imports, the merge, the commit of one of the files, or come too late."""
    for number in range(3):
        (workspace / f"{number}.ndjson").write_text(
            "".join(LINE.replace("9", str(1000 * (number + 1) + row)) for row in range(900))
        )
    process = start("ingest", "com.example.rates", *(f"{number}.ndjson" for number in range(3)), cwd=workspace)
    wait_until_interruptible(process)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, 130, -signal.SIGINT), err
    assert "Traceback" not in err
    assert "internal error" not in err
    if process.returncode == 130:
        assert err.endswith(INTERRUPTED)
    assert is_whole(workspace)
    finished = err.count("updated, 900 records")
    assert Workspace.open(workspace).datasets.summary("com.example.rates").num_records in (
        3 + 900 * finished,
        903 + 900 * finished,
    )
    assert odf("ingest", "com.example.rates", "0.ndjson", "1.ndjson", "2.ndjson", cwd=workspace)[0] == 0
    assert Workspace.open(workspace).datasets.summary("com.example.rates").num_records == 2703


# --- At a terminal ---------------------------------------------------------------------------------------------------


def test_colours_and_progress_are_for_terminals(workspace: Path) -> None:
    (workspace / "new.ndjson").write_text(LINE)
    command = ("ingest", "com.example.rates", "new.ndjson")
    copies = [shutil.copytree(workspace, workspace.parent / name) for name in ("colours", "plain")]
    with terminal(*command, cwd=copies[0]) as screen:
        assert screen.wait() == 0
        assert "com.example.rates: ingesting new.ndjson 0 of 1 files" in screen.plain
        assert "\x1b[32mupdated\x1b[0m" in screen.screen
    with terminal(*command, cwd=copies[1], NO_COLOR="1") as screen:
        assert screen.wait() == 0
        assert "\x1b[" not in screen.screen
        assert "ingesting new.ndjson" in screen.screen
    with terminal("list", cwd=workspace) as screen:
        assert screen.wait() == 0
        assert screen.screen.startswith("\x1b[1mName")
    with terminal("list", cwd=workspace, TERM="dumb") as screen:
        assert screen.wait() == 0
        assert screen.screen.startswith("Name")
    with terminal("pull", "com.example.cities", "-q", cwd=workspace) as screen:
        assert (screen.wait(), screen.screen) == (0, "")
    code, out, err = odf(*command, cwd=workspace)
    assert (code, out) == (0, "")
    assert err.startswith("com.example.rates: updated, 1 record")


@pytest.mark.parametrize(
    ("columns", "command"), [(79, "list"), (80, "list"), (70, "tail trades"), (200, "list --wide")]
)
def test_tables_fit_the_terminal(columns: int, command: str, workspace: Path) -> None:
    with terminal(*command.split(), cwd=workspace, columns=columns, NO_COLOR="1") as screen:
        assert screen.wait() == 0
        lines = screen.plain.splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[0].split()[0] in ("Name", "offset")


def test_a_person_is_asked(workspace: Path) -> None:
    for answer, code, left in (("n", 1, 6), ("", 1, 6), ("y", 0, 5)):
        with terminal("delete", "com.example.empty", cwd=workspace, NO_COLOR="1") as screen:
            screen.wait_for("Delete com.example.empty, with all data? [y/N] ")
            screen.type(f"{answer}\n")
            assert screen.wait() == code
        assert len(Workspace.open(workspace).datasets.all()) == left


def test_ctrl_c_instead_of_an_answer(workspace: Path) -> None:
    with terminal("delete", "com.example.empty", cwd=workspace, NO_COLOR="1") as screen:
        screen.wait_for("[y/N] ")
        screen.type("\x03")
        assert screen.wait() == 130
        assert screen.plain.endswith(INTERRUPTED)
        assert "Traceback" not in screen.plain


# --- The SQL shell ---------------------------------------------------------------------------------------------------

SHELL = ("sql", "--engine", "datafusion")


def test_the_shell_answers_and_goes_on_after_mistakes(workspace: Path) -> None:
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1") as shell:
        shell.wait_for("odf> ")
        assert re.search(r"com\.example\.rates +Root +3\n", shell.ask("\\d"))
        columns = shell.ask("\\d com.example.rates")
        assert "event_time   " in columns
        assert "name         Option<String>" in columns
        assert "\\q" in shell.ask("\\?")
        assert "Did you mean \\timing?" in shell.ask("\\timin")
        assert "\\? lists them" in shell.ask("\\xyz")
        assert "No dataset 'nothing'" in shell.ask("\\d nothing")
        assert "error: " in shell.ask("selekt 1;")
        assert "2\n" in shell.ask("select 1 + 1 as two;")
        assert "3\n" in shell.ask('select count(*) as n from "com.example.rates"; select 7;')
        assert shell.ask("").strip("\r") == "\n"
        shell.type("select 40 +\n")
        shell.wait_for("...> ")
        assert "42\n" in shell.ask("2 as answer;")
        shell.type("select 'dropped\n")
        shell.wait_for("...> ", len(shell.screen) - 5)
        shell.interrupt(until="odf> ")
        assert "5\n" in shell.ask("select 5;")
        shell.type("\\q\n")
        assert shell.wait() == 0
        assert "Traceback" not in shell.plain


def test_the_shell_remembers_what_was_typed_and_ends_with_ctrl_d(workspace: Path) -> None:
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1") as shell:
        shell.wait_for("odf> ")
        shell.ask("select 123 as first;")
        shell.type("\x04")
        assert shell.wait() == 0
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1") as shell:
        shell.wait_for("odf> ")
        assert "123\n" in shell.ask("\x1b[A"), "the key with the arrow up"
        shell.type("\x04")
        assert shell.wait() == 0


DEAF = "select sum(a.value * b.value) from generate_series(1, 2000000) a, generate_series(1, 100000000) b;"
"""A query that is inside of native code all the time."""


def test_ctrl_c_ends_the_query_and_not_the_shell(workspace: Path) -> None:
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1") as shell:
        shell.wait_for("odf> ")
        shell.ask("select 1;")  # everything is imported now
        for keys in ("\x03", "\x03\x03"):
            before = len(shell.screen)
            shell.type(f"{DEAF}\n")
            shell.wait_for_work(1)
            shell.type(keys)
            shell.wait_for("interrupted", before)
            shell.wait_for("odf> ", before)
        assert "5\n" in shell.ask("select 5;")
        shell.type("\\q\n")
        assert shell.wait() == 0


def test_ctrl_c_ends_a_query_inside_of_native_code(workspace: Path) -> None:
    with terminal(*SHELL, "-c", DEAF, cwd=workspace, NO_COLOR="1") as command:
        command.wait_for_work(2)
        command.interrupt(until="interrupted")
        assert command.wait() == 130
        assert "Traceback" not in command.plain


NATIVE = "from odfpy.cli.interruptions import install_handlers; install_handlers(); import hashlib; hashlib.pbkdf2_hmac('md5', b'', b'', 2**31 - 1)"
"""A program that hears nothing before it is done."""


def test_a_second_ctrl_c_ends_what_does_not_hear_the_first(workspace: Path) -> None:
    with program_at_terminal(sys.executable, "-c", NATIVE, cwd=workspace) as command:
        command.wait_for_work(1)
        command.interrupt(until="Ctrl-C again ends it at once")
        command.type("\x03")
        assert command.wait() == 130
        assert "Traceback" not in command.plain


def test_statements_from_a_pipe_or_an_option_are_run_one_after_the_other(workspace: Path) -> None:
    statements = "select 1 as a; -- no ; end\nselect ';' as b;"
    expected = '{"a":1}\n{"b":";"}\n'
    process = start(*SHELL, "-o", "ndjson", cwd=workspace)
    assert process.communicate(statements, timeout=PATIENCE) == (expected, "")
    assert odf(*SHELL, "-o", "ndjson", "-c", statements, cwd=workspace) == (0, expected, "")


# --- With an engine of its own ---------------------------------------------------------------------------------------


@pytest.mark.spark
def test_ctrl_c_while_spark_works(workspace: Path) -> None:
    """The engine is not in the way of what comes next, whether it was starting, working or idle."""
    manifest = (
        "{kind: DatasetSnapshot, version: 1, content: {name: com.example.spark, kind: Derivative, metadata: [{"
        "kind: SetTransform, inputs: [{datasetRef: com.example.rates, alias: source}], transform: {kind: Sql, "
        "engine: spark, query: 'select op, event_time, id from source'}}]}}"
    )
    (workspace / "spark.yaml").write_text(manifest)
    assert odf("config", "set", "engine.memory", MEMORY, cwd=workspace)[0] == 0
    try:
        for words in (["add", "spark.yaml"], ["pull", "com.example.spark"], ["sql", "-c", "select 1"]):
            process = start(*words, cwd=workspace, start_new_session=True)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.5 if words[0] == "add" else 0.4)
            os.killpg(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE)
            assert (process.returncode, err) == (130, INTERRUPTED)
            assert is_whole(workspace)
            assert odf(*words, cwd=workspace)[0] == 0
        process = start(
            "-v", "sql", "-c", "select max(id % 7) from range(1000000000000)", cwd=workspace, start_new_session=True
        )
        assert process.stderr is not None
        assert any("query: Spark works" in line for line in process.stderr), "signs of life"
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
    finally:
        assert odf("engine", "stop", "--force", cwd=workspace)[0] == 0
