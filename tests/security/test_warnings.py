"""What somebody may come to harm by who does not know it is said, however quiet a command is to be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.servers.serving import PATIENCE, workspace_at


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("option", ["-q", "-v"])
def test_a_server_without_tls_says_so(tmp_path: Path, option: str) -> None:
    workspace = workspace_at(tmp_path / "w")
    command = [
        sys.executable,
        "-m",
        "odfpy",
        option,
        "-w",
        str(workspace.root),
        "serve",
        "--host",
        "0.0.0.0",
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        try:
            assert process.stdout.readline().startswith("Serving ")
            process.terminate()
            _, said = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert "warning: without --tls-cert and --tls-key, others on the network can read tokens and data" in said
