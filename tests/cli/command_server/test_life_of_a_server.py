"""A server begins with the setting, ends by itself, and is never asked when it is out of date."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes.command_servers import ORDINARY, SERVED, CommandServers, Done, state_of, wait_until
from support.processes.terminal import PATIENCE

from odfpy.cli.command_server import process_identity

NOT_SERVED = Done(1, "", "error: no server has run it\n")


def off(servers: CommandServers) -> dict[str, str]:
    """An environment in which only files have settings."""
    return {name: value for name, value in servers.environment().items() if name != "ODF_COMMANDS_SERVER"}


def has_ended(pid: int) -> bool:
    return state_of(pid) == ""


# --- Its beginning ---------------------------------------------------------------------------------------------------


def test_nobody_has_a_server_without_asking(own_servers: CommandServers, workspace: Path) -> None:
    assert own_servers.run(ORDINARY, "list", cwd=workspace, env=off(own_servers)).code == 0
    assert [*own_servers.runtime.iterdir()] == []


def test_the_setting_starts_it_and_ends_it(own_servers: CommandServers, workspace: Path) -> None:
    environment = off(own_servers)
    own_servers.run(ORDINARY, "config", "set", "commands.server", "true", cwd=workspace, env=environment)
    wait_until(own_servers.sockets)
    (server,) = own_servers.processes()
    assert own_servers.run(SERVED, "list", cwd=workspace, env=environment).code == 0
    assert (
        own_servers.run(SERVED, "config", "set", "commands.server", "false", cwd=workspace, env=environment).code == 0
    )
    wait_until(lambda: has_ended(server))
    assert [*own_servers.runtime.iterdir()] == []


def test_many_who_start_it_at_once_get_one(own_servers: CommandServers, workspace: Path) -> None:
    together = [own_servers.start(ORDINARY, "list", cwd=workspace) for _ in range(4)]
    assert [process.wait(PATIENCE) for process in together] == [0] * 4
    wait_until(own_servers.sockets)
    assert len(own_servers.processes()) == 1
    for process in together:
        process.communicate()


def test_a_command_that_is_its_own_session_starts_none(own_servers: CommandServers, workspace: Path) -> None:
    done = own_servers.run(ORDINARY, "list", cwd=workspace, start_new_session=True)
    assert done.code == 0
    assert [*own_servers.runtime.iterdir()] == []


def test_it_serves_a_session_whose_leader_has_ended(
    own_servers: CommandServers, workspace: Path, tmp_path: Path
) -> None:
    # as a job that was started in the background, by a shell that is gone
    script = f"""
(
    while kill -0 $$ 2> /dev/null; do sleep 0.01; done
    odf list
    while [ -z "$(ls {own_servers.runtime}/odf-commands | grep -v lock)" ]; do sleep 0.01; done
    served list && served list > {tmp_path}/ended
) &
"""
    subprocess.run(
        ["sh", "-c", script], cwd=workspace, env=own_servers.environment(), start_new_session=True, check=True
    )
    wait_until((tmp_path / "ended").exists)


def test_a_server_that_failed_is_not_tried_again_at_once(own_servers: CommandServers, workspace: Path) -> None:
    os.kill(own_servers.serve(workspace), signal.SIGKILL)
    (address,) = own_servers.sockets()
    address.unlink()  # as if it had never listened
    assert own_servers.run(ORDINARY, "list", cwd=workspace).code == 0
    assert own_servers.processes() == []
    os.utime(f"{address}.lock", (0, 0))
    own_servers.serve(workspace)


def test_nobody_starts_it_by_hand(own_servers: CommandServers, workspace: Path) -> None:
    done = own_servers.run(ORDINARY, "command-server", "600", cwd=workspace)
    assert done == Done(1, "", "error: only odf can start a command server; see the setting commands.server\n")


def test_it_can_be_found(own_servers: CommandServers, workspace: Path) -> None:
    server = own_servers.serve(workspace)
    found = own_servers.run(SERVED, "system", "diagnose", "--quick", cwd=workspace)
    assert f"command server: process {server}, " in found.out
    os.kill(server, signal.SIGTERM)
    wait_until(lambda: has_ended(server))
    found = own_servers.run(ORDINARY, "system", "diagnose", "--quick", cwd=workspace)
    assert "command server: none runs\n" in found.out


# --- Its end ---------------------------------------------------------------------------------------------------------


def test_it_ends_when_nobody_asks(own_servers: CommandServers, workspace: Path) -> None:
    server = own_servers.serve(workspace, env=own_servers.environment(ODF_COMMANDS_IDLE_TIMEOUT="1"))
    wait_until(lambda: has_ended(server))
    assert [*own_servers.runtime.iterdir()] == []


def test_it_ends_without_its_socket(own_servers: CommandServers, workspace: Path) -> None:
    server = own_servers.serve(workspace, env=own_servers.environment(LOOK_SECONDS="0.1"))
    own_servers.sockets()[0].unlink()
    wait_until(lambda: has_ended(server))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_command_after_its_end_runs_itself_and_starts_another(
    own_servers: CommandServers, workspace: Path, number: signal.Signals
) -> None:
    server = own_servers.serve(workspace)
    os.kill(server, number)
    wait_until(lambda: has_ended(server))
    assert own_servers.run(SERVED, "list", cwd=workspace) == NOT_SERVED
    assert own_servers.run(ORDINARY, "list", cwd=workspace).code == 0
    wait_until(lambda: own_servers.run(SERVED, "list", cwd=workspace).code == 0)
    assert own_servers.processes() != [server]


def test_a_stopped_server_holds_nobody_up(own_servers: CommandServers, workspace: Path) -> None:
    server = own_servers.serve(workspace)
    os.kill(server, signal.SIGSTOP)
    assert own_servers.run(ORDINARY, "list", cwd=workspace).code == 0
    os.kill(server, signal.SIGCONT)
    wait_until(lambda: own_servers.run(SERVED, "list", cwd=workspace).code == 0)


def test_it_ends_with_its_session(own_servers: CommandServers, workspace: Path) -> None:
    leader = subprocess.Popen(
        ["/bin/sh", "-c", "odf list; read line"], cwd=workspace, env=own_servers.environment(), stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    wait_until(own_servers.sockets)
    (server,) = own_servers.processes()
    leader.communicate(b"\n", timeout=PATIENCE)
    wait_until(lambda: has_ended(server))


# --- Its code --------------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("change", ["touch", "replace", "remove"])
def test_changed_code_is_not_run_by_an_old_server(
    own_servers: CommandServers, workspace: Path, tmp_path: Path, change: str
) -> None:
    module = tmp_path / "sitecustomize.py"  # Python imports it when it starts
    module.write_text("")
    environment = own_servers.environment()
    environment["PYTHONPATH"] += f":{tmp_path}"
    server = own_servers.serve(workspace, env=environment)
    assert own_servers.run(SERVED, "list", cwd=workspace, env=environment).code == 0
    match change:
        case "touch":
            module.touch()
        case "replace":
            (tmp_path / "new").write_text("")
            (tmp_path / "new").rename(module)
        case "remove":
            module.unlink()
    assert own_servers.run(SERVED, "list", cwd=workspace, env=environment) == NOT_SERVED
    wait_until(lambda: has_ended(server))
    assert own_servers.run(ORDINARY, "list", cwd=workspace, env=environment).code == 0
    wait_until(lambda: own_servers.run(SERVED, "list", cwd=workspace, env=environment).code == 0)


def test_another_installation_has_another_server(own_servers: CommandServers, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "odfpy").symlink_to(Path(process_identity.__file__).parents[2], target_is_directory=True)
    environment = own_servers.environment()
    own_servers.serve(workspace)
    environment["PYTHONPATH"] = f"{tmp_path}:{environment['PYTHONPATH']}"
    assert own_servers.run(SERVED, "list", cwd=workspace, env=environment) == NOT_SERVED
    own_servers.serve(workspace, env=environment)
    assert own_servers.run(SERVED, "list", cwd=workspace, env=environment).code == 0
    assert len(own_servers.processes()) == 2


# --- Others ----------------------------------------------------------------------------------------------------------


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    for mode in (0o755, 0o770, 0o701):
        tmp_path.chmod(mode)
        assert not process_identity.is_private(str(tmp_path))
    tmp_path.chmod(0o700)
    assert process_identity.is_private(str(tmp_path))
    (tmp_path / "link").symlink_to(tmp_path)
    assert not process_identity.is_private(str(tmp_path / "link"))
    assert not process_identity.is_private(str(tmp_path / "nothing"))


def test_without_a_folder_nothing_more_is_imported() -> None:
    """Whoever has no server pays for one look at a folder."""
    program = (
        "import sys; from odfpy.cli.command_server import client; before = {*sys.modules}; client.run_on_server(); "
        "print(sorted({*sys.modules} - before), 'socket' in sys.modules, 'marshal' in sys.modules)"
    )
    environment = {**os.environ, "XDG_RUNTIME_DIR": "/nowhere", "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[] False True\n"
