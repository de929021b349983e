"""What is known of a cluster before Spark starts: a wrong setting is told at once, with what to try."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from odfpy.coordinator.storage.config import Config
from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process.cluster import find_cluster
from odfpy.engine.spark.process.cluster_check import check_folder, check_packages
from odfpy.engine.spark.process.executor_view import describe_executor
from odfpy.engine.spark.process.java import find_java
from odfpy.engine.worker.launch import scrubbed_environment
from odfpy.errors import EngineUnavailable, UsageError


@pytest.fixture
def master() -> str:
    """The address of somebody who answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"spark://127.0.0.1:{server.getsockname()[1]}"


def settings(tmp_path: Path, master: str, properties: str) -> EngineSettings:
    path = tmp_path / "cluster.properties"
    path.write_text(properties)
    return EngineSettings(master=master, properties=str(path))


# --- Where it is ------------------------------------------------------------------------------------------------------


def test_a_master_that_answers_tells_our_own_address(master: str) -> None:
    assert find_cluster(EngineSettings(master=master)).host == "127.0.0.1"
    assert find_cluster(EngineSettings(master=master, host="10.1.2.3")).host == "10.1.2.3"


def test_of_several_masters_one_has_to_answer(master: str) -> None:
    assert find_cluster(EngineSettings(master=f"spark://127.0.0.1:1,{master.removeprefix('spark://')}")).host


@pytest.mark.parametrize("address", ["spark://127.0.0.1:1", "k8s://https://127.0.0.1:1", "k8s://127.0.0.1:1"])
def test_nobody_answers(address: str) -> None:
    with pytest.raises(
        EngineUnavailable, match=r"No cluster answers at .*127\.0\.0\.1:1: Connection refused"
    ) as caught:
        find_cluster(EngineSettings(master=address))
    assert "engine.master" in str(caught.value.hint)


@pytest.mark.parametrize("address", ["spark://", "spark://nobody", "spark://a:b", "k8s://ftp://host", "sc://host:1"])
def test_nonsense_is_no_address(address: str) -> None:
    with pytest.raises(EngineUnavailable, match="is not an address of a cluster"):
        find_cluster(EngineSettings(master=address))


def test_executors_elsewhere_do_not_reach_the_loopback(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odfpy.engine.spark.process.cluster._way_to", lambda _: "192.0.2.7")
    assert find_cluster(EngineSettings(master=master)).host == "192.0.2.7"
    with pytest.raises(EngineUnavailable, match=r"cannot reach this machine at localhost") as caught:
        find_cluster(EngineSettings(master=master, host="localhost"))
    assert caught.value.hint == "odf config set engine.host 192.0.2.7"


def test_yarn_is_where_hadoop_s_files_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(EngineUnavailable, match="HADOOP_CONF_DIR or YARN_CONF_DIR"):
        find_cluster(EngineSettings(master="yarn"))
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert find_cluster(EngineSettings(master="yarn")).host is None


def test_a_worker_of_a_cluster_gets_the_names_of_files_and_no_secrets() -> None:
    mine = {"HADOOP_CONF_DIR": "/etc/hadoop", "KUBECONFIG": "/home/you/config", "AWS_SECRET_ACCESS_KEY": "secret"}
    there = scrubbed_environment(mine, find_java(), is_cluster=True)
    assert there["HADOOP_CONF_DIR"] == "/etc/hadoop"
    assert there["KUBECONFIG"] == "/home/you/config"
    assert "AWS_SECRET_ACCESS_KEY" not in there
    assert "KUBECONFIG" not in scrubbed_environment(mine, find_java())


@pytest.mark.parametrize(
    "text", ["local", "local[*]", "local[2]", "spark://a:7077,b:7077", "yarn", "k8s://https://a:1"]
)
def test_masters_that_can_be_set(tmp_path: Path, text: str) -> None:
    config = Config.load(tmp_path)
    config.set("engine.master", text)
    assert config.get("engine.master") == text


@pytest.mark.parametrize("text", ["nonsense", "spark://host", "local[x]", "local-cluster[2,1,512]", "sc://host:15002"])
def test_masters_that_cannot_be_set(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"engine\.master is local\[\*\].*, yarn or k8s://"):
        Config.load(tmp_path).set("engine.master", text)


def test_a_storage_has_no_password_in_it(tmp_path: Path) -> None:
    config = Config.load(tmp_path)
    config.set("engine.storage", "abfss://container@account.dfs.core.windows.net/odf")
    with pytest.raises(UsageError, match="without a password"):
        config.set("engine.storage", "s3a://key:secret@bucket/odf")


# --- What a person sets for it ----------------------------------------------------------------------------------------


def test_properties_of_a_cluster(tmp_path: Path, master: str) -> None:
    text = (
        "# ours\n\nspark.executor.memory 4g\nspark.pyspark.python=/opt/python\nspark.executor.extraJavaOptions -Xss2m\n"
    )
    cluster = find_cluster(settings(tmp_path, master, text))
    places = cluster.places()
    assert places["spark.executor.memory"] == "4g"
    assert places["spark.pyspark.python"] == "/opt/python"
    assert places["spark.executor.extraJavaOptions"].startswith("-Xss2m -D"), "the pinned options follow"
    assert cluster.arguments[-2:] == ("--properties-file", str(tmp_path / "cluster.properties"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("spark.sql.ansi.enabled false", "line 2: spark.sql.ansi.enabled cannot be set in this file"),
        ("spark.sql.extensions org.example.Extensions", "spark.sql.extensions cannot be set in this file"),
        ("spark.master local[2]", "spark.master cannot be set in this file"),
        ("hadoop.home /opt", "line 2 is not a property of Spark"),
    ],
)
def test_properties_that_results_depend_on_are_refused(tmp_path: Path, master: str, line: str, message: str) -> None:
    with pytest.raises(EngineUnavailable, match=message):
        find_cluster(settings(tmp_path, master, f"spark.executor.memory 4g\n{line}\n"))


def test_a_file_of_properties_that_is_not_there(tmp_path: Path, master: str) -> None:
    with pytest.raises(EngineUnavailable, match=r"Cannot read the properties .*No such file"):
        find_cluster(EngineSettings(master=master, properties=str(tmp_path / "none")))


# --- What executors see -----------------------------------------------------------------------------------------------


def test_an_executor_that_shares_the_folder(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    seen = describe_executor(str(tmp_path), "t")
    check_packages(seen, [seen])
    check_folder(tmp_path, [seen], {path.name for path in tmp_path.iterdir()})


def test_an_executor_that_does_not_see_the_folder(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match="does not see it") as caught:
        check_folder(tmp_path, [describe_executor(str(tmp_path), "t")], set())
    assert "engine.storage" in str(caught.value.hint)


def test_an_executor_with_another_folder_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of somebody else")
    with pytest.raises(EngineUnavailable, match="another folder of that name"):
        check_folder(tmp_path, [describe_executor(str(tmp_path), "t")], {"token"})


def test_an_executor_whose_files_do_not_arrive(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    with pytest.raises(EngineUnavailable, match="another folder of that name"):
        check_folder(tmp_path, [describe_executor(str(tmp_path), "t")], {"token"})


@pytest.mark.parametrize(("version", "message"), [("21.0.0", "has pyarrow 21.0.0"), (None, "has no pyarrow")])
def test_an_executor_with_other_packages(version: str | None, message: str) -> None:
    here = describe_executor(None, "")
    with pytest.raises(EngineUnavailable, match=f"{message} .*and the engine has pyarrow {here['pyarrow']}"):
        check_packages(here, [here, {**here, "pyarrow": version}])
