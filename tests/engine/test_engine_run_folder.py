"""The engine's files in `.odf/run`: one worker, found by its socket, nothing stale."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from odfpy.engine.worker.run_folder import RunFolder
from odfpy.errors import EngineUnavailable


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    folder.create()
    return folder


def names(run: RunFolder) -> set[str]:
    return {path.name for path in run.path.iterdir()}


def test_only_one_process_becomes_the_worker(run: RunFolder):
    lock = run.hold()
    assert lock is not None
    assert run.holder() == os.getpid()
    assert run.hold() is None
    run.release(lock)
    assert run.holder() is None


def test_a_lock_ends_with_its_process_however_it_ends(run: RunFolder):
    program = (
        "import os, sys; from pathlib import Path; from odfpy.engine.worker.run_folder import RunFolder;"
        "run = RunFolder(Path(sys.argv[1])); run.hold(); run.make_scratch(); run.make_secret(); run.listen();"
        "print(run.holder(), flush=True); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", program, run.path], capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    assert killed.stdout.strip().isdigit()
    assert run.holder() is None
    assert {"engine.sock", "engine.secret"} < names(run)
    with pytest.raises(ConnectionRefusedError):
        run.connect()
    run.sweep_if_abandoned()
    assert names(run) == {"engine.lock"}


def test_what_a_living_worker_has_is_not_swept_away(run: RunFolder):
    lock = run.hold()
    assert lock is not None
    run.make_secret()
    run.sweep_if_abandoned()
    assert "engine.secret" in names(run)
    run.release(lock)


def test_the_secret_is_for_the_owner_only(run: RunFolder):
    secret = run.make_secret()
    assert run.read_secret() == secret
    assert len(secret) >= 32
    assert stat.S_IMODE((run.path / "engine.secret").stat().st_mode) == 0o600


def test_a_workspace_may_be_deeper_than_a_socket_address_is_long(tmp_path: Path):
    run = RunFolder(tmp_path.joinpath(*["deep" * 20] * 5))
    run.create()
    with run.listen() as listener, run.connect() as client:
        served, _ = listener.accept()
        with served:
            client.sendall(b"hello")
            assert served.recv(10) == b"hello"


def test_a_holder_notices_that_its_folder_is_gone(run: RunFolder):
    lock = run.hold()
    assert lock is not None
    assert not run.has_lost_lock(lock)
    run.path.rename(run.path.with_name("elsewhere"))
    assert run.has_lost_lock(lock)
    os.close(lock)


def test_what_ends_after_its_folder_was_removed_leaves_a_new_one_of_that_name_alone(run: RunFolder):
    before = run.hold()
    assert before is not None
    shutil.rmtree(run.path)
    run.create()
    lock = run.hold()
    assert lock is not None
    run.make_secret()
    scratch = run.make_scratch()
    with run.listen():
        run.hang_up(before)
        run.release(before)
        assert (run.socket_path.exists(), scratch.is_dir(), bool(run.read_secret())) == (True, True, True)
        run.hang_up(lock)
        assert not run.socket_path.exists()
    run.release(lock)
    assert [path.name for path in run.path.iterdir()] == ["engine.lock"]


def test_a_long_log_starts_anew(run: RunFolder):
    run.log.write_bytes(b"x" * (5 << 20))
    os.close(run.open_log())
    assert run.log.stat().st_size == 0
    assert run.path.joinpath("engine.log.1").stat().st_size == 5 << 20


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path):
    tmp_path.joinpath("file").write_text("")
    with pytest.raises(EngineUnavailable, match="needs the folder"):
        RunFolder(tmp_path / "file" / "run").create()


def test_a_folder_of_a_client_that_is_written_to_while_it_goes_is_no_error(run: RunFolder):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty")

    with pytest.MonkeyPatch.context() as patch, run.client_scratch() as folder:
        assert folder.is_dir()
        patch.setattr(os, "rmdir", refuse)
