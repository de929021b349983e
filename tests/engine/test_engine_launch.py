"""What a worker is started from."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import odfpy
from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process.java import find_java
from odfpy.engine.worker import launch
from odfpy.engine.worker.launch import fingerprint, scrubbed_environment
from odfpy.engine.worker.run_folder import RunFolder


def test_the_environment_of_a_worker_has_no_secrets_and_no_settings_of_others():
    mine = {
        "HOME": "/h",
        "PATH": "/usr/bin",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "HTTPS_PROXY": "http://user:pass@proxy",
        "JAVA_TOOL_OPTIONS": "-javaagent:x.jar",
        "SPARK_CONF_DIR": "/etc/spark",
        "HADOOP_CONF_DIR": "/etc/hadoop",
        "PYSPARK_SUBMIT_ARGS": "--master yarn",
        "TZ": "America/New_York",
        "TMPDIR": "/elsewhere",
    }
    environment = scrubbed_environment(mine, find_java({}))
    assert environment.keys() == {
        "HOME", "PYSPARK_PYTHON", "PYTHONHASHSEED", "PYTHONPATH", "PYTHONSAFEPATH", "PYTHONUNBUFFERED", "TZ",
    }  # fmt: skip
    assert environment["TZ"] == "UTC"
    assert environment["PYSPARK_PYTHON"] == sys.executable


def test_a_chosen_java_stays_chosen():
    java = replace(find_java({}), source="JAVA_HOME")
    assert scrubbed_environment({}, java)["JAVA_HOME"] == str(java.home)


def test_other_settings_or_another_java_ask_for_another_worker():
    java, settings = find_java({}), EngineSettings()
    assert fingerprint(settings, java) == fingerprint(EngineSettings(), java)
    others = {
        fingerprint(EngineSettings(memory="2g"), java),
        fingerprint(settings, replace(java, version="99")),
        fingerprint(settings, replace(java, home=Path("elsewhere"))),
    }
    assert len(others) == 3
    assert fingerprint(settings, java) not in others


def test_all_code_that_a_worker_runs_is_part_of_it():
    code = """
import sys
import odfpy.engine.worker.worker, odfpy.engine.worker.spark_host, odfpy.engine.spark.execution.operations
import odfpy.ingest.lanes.spark_merge, odfpy.engine.worker.training, odfpy.engine.worker.sandboxed_host
print(*(module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "odfpy"))
"""
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    seen = {path for path, _ in launch._stamps(Path(odfpy.__file__).parent)}
    assert len(loaded) > 100
    assert set(loaded) <= {str(Path(path)) for path in seen}


def test_workers_that_ended_by_themselves_leave_the_table_of_processes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A server with a query now and then would gather them, one each time that its engine was idle."""
    monkeypatch.setattr(launch, "python_command", lambda *_: [sys.executable, "-S", "-c", ""])
    monkeypatch.setattr(launch, "_children", set())
    run = RunFolder(tmp_path)
    first = launch.launch(run, EngineSettings(), find_java({}))
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    second = launch.launch(run, EngineSettings(), find_java({}))
    with pytest.raises(ChildProcessError):
        os.waitpid(first, os.WNOHANG)
    os.waitpid(second, 0)
