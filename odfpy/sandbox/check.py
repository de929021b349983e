"""Program that builds a sandbox, to determine whether this system permits it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from odfpy.sandbox.landlock import landlock_version
from odfpy.sandbox.limits import ProcessLimits, memory_of_machine
from odfpy.sandbox.python import python_command, python_environment
from odfpy.sandbox.supervisor import SandboxError, run_confined
from odfpy.sandbox.view import view_of_python

_PATIENCE = 30.0


def sandbox_obstacle() -> str | None:
    """Return why a full sandbox cannot be built here, None if it can; tests it in a separate process."""
    command, environment = python_command("odfpy.sandbox.check"), python_environment(os.environ)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None if done.returncode == 0 else done.stdout.strip() or "it cannot be tested"


def describe_confinement() -> str:
    """Describe to what extent an engine can be confined here."""
    why = sandbox_obstacle()
    if why is None:
        return "whole (namespaces and Landlock)" if landlock_version() else "whole (namespaces)"
    return f"files only (Landlock), since {why}" if landlock_version() else f"none, since {why}"


def main() -> int:
    """Build a sandbox, and return the exit code; print the reason if it fails."""
    with TemporaryDirectory(prefix="odf-sandbox-") as folder:
        try:
            sandbox = run_confined(
                lambda: 0, view_of_python(folder=Path(folder)), ProcessLimits(memory=memory_of_machine())
            )
        except SandboxError as error:
            print(error)  # noqa: T201
            return 1
        return sandbox.exit_code(_PATIENCE) or 0


if __name__ == "__main__":
    sys.exit(main())
