"""Signals, and the terminal: they are the command's, although the shell knows only the client."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.processes.command_servers import ORDINARY, SERVED, CommandServers, Done, state_of, wait_until
from support.processes.terminal import PATIENCE, Terminal, program_at_terminal

from odfpy.cli.interruptions import MESSAGE

ROW = '{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}'
COLUMNS = 60
PROMPT = "ready> "
INGEST = ("ingest", "com.example.rates", "--stdin")


def waiting(servers: CommandServers, workspace: Path, **options: object) -> tuple[subprocess.Popen[str], int]:
    """A client, and the process of its command, which waits for its standard input."""
    client = servers.start(SERVED, *INGEST, cwd=workspace, **options)
    return client, servers.command()


def end_of(client: subprocess.Popen[str]) -> Done:
    out, err = client.communicate(timeout=PATIENCE)
    return Done(client.returncode, out, err)


def has_ended(pid: int) -> bool:
    return state_of(pid) == ""


# --- Signals to the client -------------------------------------------------------------------------------------------


def test_an_interruption_reaches_the_command(servers: CommandServers, workspace: Path) -> None:
    client, command = waiting(servers, workspace)
    client.send_signal(signal.SIGINT)
    assert end_of(client) == Done(130, "", f"error: {MESSAGE}\n")
    assert has_ended(command)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGSEGV])
def test_what_ends_the_command_ends_the_client_in_the_same_way(
    servers: CommandServers, workspace: Path, number: signal.Signals
) -> None:
    client, command = waiting(servers, workspace)
    client.send_signal(number)
    assert end_of(client) == Done(-number, "", "")
    assert has_ended(command)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_client_ends_as_the_command_was_ended(
    servers: CommandServers, workspace: Path, number: signal.Signals
) -> None:
    client, command = waiting(servers, workspace)
    os.kill(command, number)
    assert end_of(client) == Done(-number, "", "")


def test_the_command_ends_with_its_client(servers: CommandServers, workspace: Path) -> None:
    client, command = waiting(servers, workspace)
    client.kill()
    wait_until(lambda: has_ended(command))
    assert end_of(client).code == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_whole_group_ends(servers: CommandServers, workspace: Path, number: signal.Signals) -> None:
    client, command = waiting(servers, workspace, preexec_fn=os.setpgrp)
    os.killpg(client.pid, number)
    assert end_of(client).code == -number
    wait_until(lambda: has_ended(command))


def test_what_the_client_ignores_the_command_ignores(servers: CommandServers, workspace: Path) -> None:
    client = subprocess.Popen(
        ["nohup", str(servers.folder / SERVED), *INGEST],
        cwd=workspace, env=servers.environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    command = servers.command()
    os.kill(command, signal.SIGHUP)
    client.send_signal(signal.SIGHUP)
    out, err = client.communicate(ROW, timeout=PATIENCE)
    assert (client.returncode, out) == (0, "")
    assert "com.example.rates: updated, 1 record" in err


def test_what_the_client_blocks_the_command_blocks(servers: CommandServers, workspace: Path) -> None:
    client, command = waiting(
        servers, workspace, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR1,))
    )
    os.kill(command, signal.SIGUSR1)
    out, err = client.communicate(ROW, timeout=PATIENCE)
    assert client.returncode == 0, (out, err)


def test_a_command_outlives_its_server(own_servers: CommandServers, workspace: Path) -> None:
    server = own_servers.serve(workspace)
    client, _ = waiting(own_servers, workspace)
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: has_ended(server))
    assert own_servers.run(ORDINARY, "list", cwd=workspace).code == 0  # it is in nobody's way
    wait_until(lambda: own_servers.run(SERVED, "list", cwd=workspace).code == 0)
    _, err = client.communicate(ROW, timeout=PATIENCE)
    assert client.returncode == 0
    assert "com.example.rates: updated, 1 record" in err


# --- At a terminal ---------------------------------------------------------------------------------------------------


class Shell:
    """A shell at a terminal, with job control."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        terminal.wait_for(PROMPT)

    def type(self, keys: str, until: str) -> None:
        """Type, and read on until something new is on the screen."""
        before = len(self.terminal.screen)
        self.terminal.type(keys)
        self.terminal.wait_for(until, before)

    def run(self, line: str) -> str:
        """Give what a line prints."""
        return self.terminal.ask(line, prompt=PROMPT).partition("\n")[2]


@contextmanager
def shell_at_terminal(servers: CommandServers, workspace: Path) -> Iterator[Shell]:
    variables = {**servers.environment(), "PS1": PROMPT}
    with program_at_terminal("/bin/bash", "--norc", "--noediting", cwd=workspace, columns=COLUMNS, **variables) as made:
        shell = Shell(made)
        shell.run("odf config get commands.server")
        wait_until(servers.sockets)
        yield shell


@pytest.fixture
def shell(own_servers: CommandServers, workspace: Path) -> Iterator[Shell]:
    """A shell with a server in its session."""
    with shell_at_terminal(own_servers, workspace) as made:
        yield made


def test_a_terminal_is_one(shell: Shell) -> None:
    assert shell.run("served tail trades") == shell.run("alone tail trades")
    assert shell.run("served log nothing") == shell.run("alone log nothing")
    assert "\x1b[31merror:" in shell.terminal.screen


def test_ctrl_c_comes_to_the_command(shell: Shell, own_servers: CommandServers) -> None:
    shell.terminal.type("served ingest com.example.rates --stdin\n")
    own_servers.command()
    shell.type("\x03", until=PROMPT)
    assert f"error: {MESSAGE}" in " ".join(shell.terminal.plain.split())
    assert shell.run("echo $?") == "130\n"


def test_ctrl_z_stops_and_fg_goes_on(shell: Shell, own_servers: CommandServers) -> None:
    shell.terminal.type("served ingest com.example.rates --stdin\n")
    command = own_servers.command()
    shell.type("\x1a", until="Stopped")
    wait_until(lambda: state_of(command) == "T")
    shell.terminal.type("fg\n")
    wait_until(lambda: state_of(command) == "S")
    shell.type(f"{ROW}\n\x04\x04", until="1 record in 1 block")


def test_a_job_in_the_background_stops_when_it_reads_the_terminal(shell: Shell, own_servers: CommandServers) -> None:
    shell.run("served ingest com.example.rates --stdin &")
    command = own_servers.command()
    wait_until(lambda: state_of(command) == "T")
    wait_until(lambda: "Stopped" in shell.run("jobs"))
    shell.terminal.type("fg\n")
    wait_until(lambda: state_of(command) == "S")
    shell.type(f"{ROW}\n\x04\x04", until="1 record in 1 block")


def test_ctrl_z_stops_nothing_that_nobody_could_continue(own_servers: CommandServers, workspace: Path) -> None:
    """As in a container, whose only shell waits for the command."""
    program = "odf list; read line; served ingest com.example.rates --stdin; echo ended with $?"
    variables = own_servers.environment()
    with program_at_terminal("/bin/sh", "-c", program, cwd=workspace, **variables) as made:
        wait_until(own_servers.sockets)
        made.type("\n")
        own_servers.command()
        made.type(f"\x1a{ROW}\n\x04\x04")
        made.wait_for("ended with 0")


def test_a_password_is_typed_unseen(shell: Shell) -> None:
    shell.run("served user add ann --url https://data.example.com >ann.share")
    shell.type("served user password ann\n", until="New password for ann: ")
    shell.type("never shown\n", until="Repeat it: ")
    shell.type("never shown\n", until=PROMPT)
    assert "never shown" not in shell.terminal.screen
    assert shell.run("echo $?") == "0\n"


def test_a_pager_has_the_terminal(shell: Shell) -> None:
    shell.type("served version | less\n", until="(END)")
    shell.type("q", until=PROMPT)


def test_the_sql_shell_reads_lines(shell: Shell) -> None:
    shell.type("served sql --engine datafusion\n", until="odf> ")
    assert "42" in shell.terminal.ask("select 6 * 7 as answer;")
    shell.type("\x04", until=PROMPT)


def test_a_question_is_answered(shell: Shell) -> None:
    shell.type("served delete com.example.empty\n", until="[y/N] ")
    shell.type("y\n", until=PROMPT)
    assert "com.example.empty" not in shell.run("served list")


def test_hanging_up_ends_the_command_and_its_server(own_servers: CommandServers, workspace: Path) -> None:
    with shell_at_terminal(own_servers, workspace) as shell:
        (server,) = own_servers.processes()
        shell.terminal.type("served ingest com.example.rates --stdin\n")
        command = own_servers.command()
        shell.terminal.hang_up()
        wait_until(lambda: has_ended(command) and has_ended(server))
