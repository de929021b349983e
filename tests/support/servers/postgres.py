"""A PostgreSQL server of Debian for tests, on a socket in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server with an empty database; yield its URL for SQLAlchemy."""
    folder = Path(tempfile.mkdtemp(prefix="odfpy-postgres-"))
    options = _as_nobody(folder)
    programs = _programs()
    data = folder / "data"
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", "odf", "-A", "trust", "--no-sync", "-E", "UTF8"],
        check=True, stdout=subprocess.DEVNULL, **options,
    )  # fmt: skip
    server = subprocess.Popen(
        [programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options,
    )  # fmt: skip
    try:
        _wait_for(programs, folder, server)
        yield f"postgresql+psycopg://odf@/postgres?host={folder}"
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def emptied(url: str) -> str:
    """Empty the database of a server; return its URL."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    engine.dispose()
    return url


def _wait_for(programs: Path, folder: Path, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        ready = subprocess.run([programs / "pg_isready", "-h", folder], capture_output=True, check=False)
        if ready.returncode == 0:
            return
        assert server.poll() is None, "PostgreSQL has ended"
        time.sleep(0.1)
    raise AssertionError("PostgreSQL does not come up")


def _as_nobody(folder: Path) -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": folder}


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    there = shutil.which("initdb")
    assert there is not None, "PostgreSQL is not installed: .ci/packages does it"
    return Path(there).resolve().parent
