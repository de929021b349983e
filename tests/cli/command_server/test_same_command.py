"""A command that a server runs is like one that runs itself: what it prints, how it ends, what it leaves."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.processes.command_servers import ALONE, ORDINARY, SERVED, CommandServers, Done
from support.processes.terminal import PATIENCE

ROW = '{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}\n'
COMMANDS = (
    "--help",
    "help pull",
    "help E402",
    "--version",
    "version",
    "version -o json",
    "",
    "nonsense",
    "lst",
    "cat com.example.rates",
    "list --nonsense",
    "list",
    "list -o json",
    "-q list",
    "-vv log com.example.nothing",
    "log com.example.nothing",
    "log com.example.rates",
    "log com.example.rates -o ndjson",
    "show com.example.rates",
    "inspect schema com.example.rates",
    "inspect lineage com.example.upper",
    "tail com.example.rates",
    "tail com.example.rates -o csv",
    "tail com.example.empty",
    "status",
    "config get commands.server",
    "config get commands.nothing",
    "verify --integrity com.example.rates",
    "ingest com.example.rates --stdin",
    "ingest com.example.rates nowhere.json",
    "pull com.example.rates",
    "delete com.example.empty",
    "-w /nowhere list",
)
SQL = (
    'select count(*) from "com.example.rates"',
    'select * from "com.example.rates"',
    "select 1 +",
    "select * from nothing",
)


def both(servers: CommandServers, workspace: Path, *arguments: str, stdin: str = "", **variables: str) -> list[Done]:
    """What a command does in a copy of the workspace, alone and by a server; it leaves the same files."""
    outcomes, files = [], []
    for program in (ALONE, SERVED):
        folder = workspace.parent / "copy"
        shutil.copytree(workspace, folder)
        environment = servers.environment(program, **variables)
        done = servers.run(program, *arguments, stdin=stdin, cwd=folder, env=environment)
        outcomes.append(Done(done.code, _timeless(done.out), _timeless(done.err)))
        files.append(_files(folder))
        shutil.rmtree(folder)
    assert files[0] == files[1]
    return outcomes


def _timeless(text: str) -> str:
    """A text without what is never the same twice: hashes, measured times, and columns that are as wide as these."""
    text = re.sub(r"\b(f1620)?[0-9a-f]{8,}\b", "HASH", text)
    text = re.sub(r"\d+\.\d s\b|\d+ (s|min) ago|\d{4}-\d\d-\d\dT[\d:.]+Z|line \d+, in", "TIME", text)
    return re.sub(r" +", " ", text)


def _files(folder: Path) -> list[tuple[str, int]]:
    """All files with their permissions, without hashes in their names."""
    return sorted((_timeless(str(path.relative_to(folder))), path.lstat().st_mode) for path in folder.rglob("*"))


@pytest.mark.slow_after(16)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_same_comes_of_it(servers: CommandServers, workspace: Path, command: str) -> None:
    alone, served = both(servers, workspace, *command.split(), stdin=ROW)
    if "-vv" in command:  # only the traceback names places in the programs
        alone, served = (Done(one.code, one.out, one.err.splitlines()[-2]) for one in (alone, served))
    assert served == alone


@pytest.mark.parametrize("query", SQL)
def test_the_same_answers_come(servers: CommandServers, workspace: Path, query: str) -> None:
    alone, served = both(servers, workspace, "sql", "--engine", "datafusion", query)
    assert served == alone


@pytest.mark.parametrize(
    "variables",
    [
        {"TZ": "Asia/Tokyo"}, {"NO_COLOR": "1"}, {"COLUMNS": "30"}, {"HOME": "/nowhere", "XDG_CONFIG_HOME": "/nowhere"},
        {"ODF_WORKSPACE": "/nowhere"}, {"ODF_ENGINE_IDLE_TIMOUT": "1"}, {"ODF_ENGINE_MEMORY": "much"},
        {"EMPTY": "", "ODD": "\udcff\n="},
    ],
    ids=lambda variables: next(iter(variables)),
)  # fmt: skip
def test_variables_are_those_of_the_caller(servers: CommandServers, workspace: Path, variables: dict[str, str]) -> None:
    for command in ("list", "config list"):
        alone, served = both(servers, workspace, *command.split(), **variables)
        assert served == alone


def test_no_variable_of_the_server_is_one_of_a_command(own_servers: CommandServers, workspace: Path) -> None:
    own_servers.serve(workspace, env=own_servers.environment(ODF_ENGINE_MEMORY="3g", TZ="Asia/Tokyo"))
    assert own_servers.run(SERVED, "config", "get", "engine.memory", cwd=workspace) == Done(0, "", "")


# --- What else a process is given ------------------------------------------------------------------------------------


def shell(servers: CommandServers, workspace: Path, line: str) -> list[Done]:
    """What a line for the shell does, in which ODF is the program, alone and by a server."""
    found = []
    for program in (ALONE, SERVED):
        done = subprocess.run(
            ["/bin/bash", "-c", line.replace("ODF", str(servers.folder / program)) + "; exit $?"],
            cwd=workspace, env=servers.environment(program), capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        found.append(Done(done.returncode, _timeless(done.stdout), _timeless(done.stderr)))
    return found


@pytest.mark.parametrize(
    "line",
    [
        "ODF list >&-",
        "ODF list <&-",
        "ODF list 2>&-",
        "ODF log nothing 2>&-",
        "ODF list >&- 2>&- <&-",
        "ODF list >/dev/full",
        "ODF list 2>&1 >/dev/full",
        "exec 9> >(true); wait $!; ODF log com.example.rates >&9",  # nobody reads it
        "exec 9> >(true); wait $!; ODF --help >&9",
        "ODF tail com.example.rates -o csv 3>&1 1>&2 2>&3",
        "ODF list 7>&1 8</dev/null",
        "cat rows | ODF ingest com.example.rates --stdin",
        "ODF ingest com.example.rates <(cat rows)",
        "ODF ingest com.example.rates /dev/fd/9 9<rows",
        "umask 077; ODF init deep/er; find deep -printf '%P %m\\n' | sort; rm -r deep",
        "mkdir gone; cd gone; rmdir ../gone; ODF list",
        "mkdir gone; cd gone; rmdir ../gone; ODF -w .. list",
        "cd .odf; ODF list",
        "nohup ODF list",
        "trap '' PIPE INT TERM; ODF list",
        "ODF list & ODF list & wait",
    ],
)
def test_the_shell_sees_the_same(servers: CommandServers, workspace: Path, line: str) -> None:
    (workspace / "rows").write_text(ROW.replace("9", "1"))
    alone, served = shell(servers, workspace, line)
    if "ingest" in line:  # the second time, the row already exists
        alone, served = (Done(one.code, one.out, one.err.partition(":")[0]) for one in (alone, served))
    if "&" in line:  # whichever of them writes first
        alone, served = (replace(one, out="\n".join(sorted(one.out.splitlines()))) for one in (alone, served))
    assert served == alone


def test_a_process_that_stands_elsewhere_runs_its_command_itself(servers: CommandServers, workspace: Path) -> None:
    """Limits, processors, namespaces and the like cannot be given to a fork."""
    elsewhere = (
        "ulimit -n 100; ODF list",
        "LANG=nowhere ODF list",
        "PYTHONUNBUFFERED=yes ODF list",
        "PYTHONWARNINGS=error ODF list",
        "setsid -w ODF list",
        "python=$(head -1 ODF | cut -c3-); $python -B ODF list",
        "env -i PATH=$PATH XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR ODF_COMMANDS_SERVER=true ODF list",
    )
    for line in elsewhere:
        alone, served = shell(servers, workspace, line)
        assert alone.code == 0, line
        assert served.err == "error: no server has run it\n", line
    assert {done.code for done in shell(servers, workspace, "ODF list")} == {0}


def test_a_limit_of_the_caller_holds(own_servers: CommandServers, workspace: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    own_servers.serve(workspace)
    done = own_servers.run(
        ORDINARY, "ingest", "com.example.rates", "--stdin", stdin=ROW, cwd=workspace, preexec_fn=limit
    )
    assert done.code == 1
    assert "File too large" in done.err


def test_services_run_themselves(servers: CommandServers, workspace: Path) -> None:
    done = servers.run(SERVED, "serve", "--nonsense", cwd=workspace)
    assert done == Done(1, "", "error: no server has run it\n")


def test_two_at_once_are_two(servers: CommandServers, workspace: Path) -> None:
    waiting = [
        servers.start(SERVED, "ingest", name, "--stdin", cwd=workspace)
        for name in ("com.example.rates", "com.example.cities")
    ]
    outcomes = [process.communicate(ROW, timeout=PATIENCE) for process in reversed(waiting)]
    assert [process.returncode for process in waiting] == [0, 0], outcomes
    assert len(servers.processes()) == 1


# --- What a server has -----------------------------------------------------------------------------------------------


def test_commands_of_every_day_import_nothing(servers: CommandServers, workspace: Path, tmp_path: Path) -> None:
    """What is named here belongs into `odfpy.cli.command_server.imports`."""
    told = tmp_path / "modules"
    missing: dict[str, list[str]] = {}
    for command in (
        "list", "log com.example.rates", "show com.example.rates", "tail com.example.rates", "status", "pull com.example.rates",
        "ingest com.example.rates --stdin", "verify --integrity com.example.rates", "config list",
        'sql select/count(*)/from/"com.example.rates"',
    ):  # fmt: skip
        words = [word.replace("/", " ") for word in command.split()]
        environment = servers.environment(TELL_MODULES=str(told))
        done = servers.run(SERVED, *words, stdin=ROW, cwd=workspace, env=environment)
        assert done.code == 0, done
        missing[command] = [
            name for name in told.read_text().split() if name.startswith(("odfpy", "pyarrow", "sqlglot"))
        ]
    found = sorted({name for names in missing.values() for name in names})
    assert found == [], "\n".join(found)


def test_a_server_has_one_thread_and_no_files_but_its_own(servers: CommandServers) -> None:
    (pid,) = servers.processes()
    assert [path.name for path in Path(f"/proc/{pid}/task").iterdir()] == [str(pid)]
    found = sorted(str(path.readlink()).partition(":")[0] for path in Path(f"/proc/{pid}/fd").iterdir())
    (lock,) = map(str, servers.runtime.glob("*/*.lock"))
    leader = ["anon_inode"] if Path(f"/proc/{os.getsid(0)}").exists() else []
    assert found == sorted([*[os.devnull] * 3, *leader, "socket", lock])
