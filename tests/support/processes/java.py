"""Another Java than the bundled one: that of the system."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odfpy.engine.spark.process.java import MIN_JAVA, JavaRuntime, find_java
from odfpy.errors import EngineUnavailable

_FOLDER = Path("/usr/lib/jvm")


def other_java() -> JavaRuntime:
    """Return a Java of another feature release than the bundled one, the oldest that there is."""
    bundled = find_java({})
    homes = {path.resolve() for path in _FOLDER.glob("*")}
    program = shutil.which("java")
    if program is not None:
        homes.add(Path(program).resolve().parents[1])
    found = []
    for home in homes:
        try:
            found.append(find_java({"JAVA_HOME": str(home)}))
        except EngineUnavailable:  # it is too old, or no Java at all
            continue
    others = [java for java in found if java.feature != bundled.feature]
    if not others:
        pytest.fail(
            f"This test needs a Java {MIN_JAVA} or newer that is not {bundled.feature}. Run .ci/packages, or:"
            " apt-get install openjdk-17-jre-headless (or 21)"
        )
    return min(others, key=lambda java: (java.feature, java.version, java.home))
