"""Containers: what they are given, what they say, and that nothing is left of them. `support.servers.podman` is the engine."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import workspace_with
from support.ingest.fetching import NOW, Fetcher
from support.processes.terminal import PATIENCE, start
from support.servers.podman import PodmanStandIn

from odfpy.chain.events import SourceState
from odfpy.chain.sources import EnvVar, FetchContainer
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.errors import FetchError, InvalidValue
from odfpy.ingest.fetch import FetchContext, SourceOptions, fetch
from odfpy.ingest.source_state import etag_state, last_modified_state

IMAGE = "example.com/owner/image:1"
FIVE_IN_BATCHES = """
at=${ODF_ETAG:-0}
while [ $at -lt 5 ] && [ ${printed:-0} -lt $ODF_BATCH_SIZE ]; do
    at=$((at + 1)); printed=$((${printed:-0} + 1)); echo "{\\"n\\": $at}"
done
echo $at > $ODF_NEW_ETAG_PATH
if [ $at -lt 5 ]; then touch $ODF_NEW_HAS_MORE_DATA_PATH; fi
"""
"""Prints the numbers from 1 to 5, as many at a time as it is asked for; its state is the last number."""


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PodmanStandIn:
    """The only container engine that can be found."""
    stand_in = PodmanStandIn.install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{stand_in.folder}:/usr/bin:/bin")
    return stand_in


def context_of(tmp_path: Path, **circumstances: Any) -> FetchContext:
    return FetchContext(now=NOW, root=tmp_path, scratch=tmp_path / "scratch", **circumstances)


# --- Data and state --------------------------------------------------------------------------------------------------


def test_standard_output_is_the_data(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, "printf 'a,b\\n1,2\\n'; echo chatter >&2")
    (file,) = run_fetch(FetchContainer(IMAGE))
    assert file.path.read_bytes() == b"a,b\n1,2\n"
    assert (file.name, file.event_time, file.state) == (f"container {IMAGE}", NOW, None)
    assert podman.containers == []


def test_container_without_state_runs_once(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, "echo 1")
    assert run_fetch(FetchContainer(IMAGE), has_data=True) == []
    assert podman.calls == []
    assert len(run_fetch(FetchContainer(IMAGE), has_data=True, force=True)) == 1
    assert len(run_fetch(FetchContainer(IMAGE), has_data=True, fetch_uncacheable=True)) == 1


def test_image_is_pulled_once(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, "echo 1", local=False)
    run_fetch(FetchContainer(IMAGE))
    run_fetch(FetchContainer(IMAGE))
    assert [call[0] for call in podman.calls] == ["image", "pull", "run", "image", "run"]


@pytest.mark.parametrize(
    ("write", "state"),
    [
        ("printf abc > $ODF_NEW_ETAG_PATH", etag_state("abc")),
        ("echo abc > $ODF_NEW_ETAG_PATH", etag_state("abc")),
        ("printf '%s' 2024-01-31T12:00:00.500+01:00 > $ODF_NEW_LAST_MODIFIED_PATH", "2024-01-31T11:00:00.500Z"),
        ("echo 2024-01-31T12:00:00Z > $ODF_NEW_LAST_MODIFIED_PATH", "2024-01-31T12:00:00Z"),
        ("echo x > $ODF_NEW_ETAG_PATH; echo y > $ODF_NEW_LAST_MODIFIED_PATH", etag_state("x")),
    ],
)
def test_new_state_is_read_from_files(write: str, state: SourceState | str, podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, f"echo 1; {write}")
    (file,) = run_fetch(FetchContainer(IMAGE))
    expected = state if isinstance(state, SourceState) else SourceState("default", "odf/last-modified", state)
    assert file.state == expected


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (None, "[][]"),
        (etag_state("a b"), "[a b][]"),
        (etag_state("of the reference\n"), "[of the reference][]"),
        (last_modified_state(NOW), "[][2030-01-01T00:00:00Z]"),
    ],
)
def test_old_state_is_in_the_environment(
    state: SourceState | None, shown: str, podman: PodmanStandIn, run_fetch: Fetcher
):
    podman.image(IMAGE, 'echo "[$ODF_ETAG][$ODF_LAST_MODIFIED]"; echo new > $ODF_NEW_ETAG_PATH')
    (file,) = run_fetch(FetchContainer(IMAGE), state=state)
    assert file.path.read_text() == f"{shown}\n"


@pytest.mark.parametrize("script", ["true", 'printf "$ODF_ETAG" > $ODF_NEW_ETAG_PATH'])
def test_no_output_and_no_new_state_is_up_to_date(script: str, podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, script)
    assert run_fetch(FetchContainer(IMAGE), state=etag_state("7")) == []


def test_new_state_alone_is_an_input_without_rows(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, "echo 8 > $ODF_NEW_ETAG_PATH")
    (file,) = run_fetch(FetchContainer(IMAGE), state=etag_state("7"))
    assert (file.is_empty, file.state) == (True, etag_state("8"))


def test_batches_go_on_from_the_state_of_the_one_before(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, FIVE_IN_BATCHES)
    files = run_fetch(FetchContainer(IMAGE), options=SourceOptions(batch_size=2))
    assert [file.path.read_text().count("\n") for file in files] == [2, 2, 1]
    assert [file.state for file in files] == [etag_state("2"), etag_state("4"), etag_state("5")]


def test_next_batch_is_fetched_when_it_is_asked_for(podman: PodmanStandIn, tmp_path: Path):
    podman.image(IMAGE, FIVE_IN_BATCHES)
    files = fetch(FetchContainer(IMAGE), context_of(tmp_path, options=SourceOptions(batch_size=2)))
    next(files)
    assert [call[0] for call in podman.calls].count("run") == 1
    files.close()


# --- What it is given ------------------------------------------------------------------------------------------------


def test_variables_and_arguments_have_templates(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, 'echo "$PLAIN|$TEMPLATE|$HANDED_ON|$LINES|$#|$2"')
    step = FetchContainer(
        IMAGE,
        args=("--token", "${{ env.TOKEN }}"),
        env=(
            EnvVar("PLAIN", "a=b # c"),
            EnvVar("TEMPLATE", "<${{ env.TOKEN }}>"),
            EnvVar("HANDED_ON"),
            EnvVar("LINES", "1\n2"),
        ),
    )
    (file,) = run_fetch(step, environment={"TOKEN": "s3cret", "HANDED_ON": "yes"})
    assert file.path.read_text() == "a=b # c|<s3cret>|yes|1\n2|2|s3cret\n"


def test_nothing_else_of_the_environment_gets_in(podman: PodmanStandIn, run_fetch: Fetcher, monkeypatch: Any):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    podman.image(IMAGE, "env")
    (file,) = run_fetch(FetchContainer(IMAGE), environment=os.environ)
    names = {line.partition("=")[0] for line in file.path.read_text().splitlines()}
    assert {name for name in names if name.startswith("ODF_")} == {
        "ODF_ETAG",
        "ODF_LAST_MODIFIED",
        "ODF_BATCH_SIZE",
        "ODF_NEW_ETAG_PATH",
        "ODF_NEW_LAST_MODIFIED_PATH",
        "ODF_NEW_HAS_MORE_DATA_PATH",
    }
    assert "AWS_SECRET_ACCESS_KEY" not in names


def test_secret_variables_are_not_among_the_arguments(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, "echo 1")
    run_fetch(FetchContainer(IMAGE, env=(EnvVar("TOKEN"),)), environment={"TOKEN": "s3cret"})
    assert "s3cret" not in str(podman.calls)


def test_keys_of_several_lines_that_are_handed_on_are_not_among_the_arguments(
    podman: PodmanStandIn, run_fetch: Fetcher, monkeypatch: Any
):
    monkeypatch.setenv("KEY", "s3cret\nkey")
    podman.image(IMAGE, 'echo "$KEY"')
    (file,) = run_fetch(FetchContainer(IMAGE, env=(EnvVar("KEY"),)), environment=os.environ)
    assert file.path.read_text() == "s3cret\nkey\n"
    assert "s3cret" not in str(podman.calls)


def test_any_user_of_an_image_may_write_the_state_and_nobody_else(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, "cd $(dirname $ODF_NEW_ETAG_PATH); stat -c %a . ..")
    (file,) = run_fetch(FetchContainer(IMAGE))
    assert file.path.read_text() == "777\n700\n"


def test_command_replaces_the_entry_point(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, "echo not this")
    (file,) = run_fetch(FetchContainer(IMAGE, command=("sh", "-c"), args=("echo $0 $1", "a", "b")))
    assert file.path.read_text() == "a b\n"


def test_batch_size_of_the_manifest_wins(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, "echo $ODF_BATCH_SIZE")
    (default,) = run_fetch(FetchContainer(IMAGE))
    (given,) = run_fetch(FetchContainer(IMAGE, env=(EnvVar("ODF_BATCH_SIZE", "7"),)))
    assert (default.path.read_text(), given.path.read_text()) == ("10000\n", "7\n")


# --- What goes wrong -------------------------------------------------------------------------------------------------


def test_without_an_engine_the_error_says_what_to_install(tmp_path: Path, run_fetch: Fetcher, monkeypatch: Any):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match="neither podman nor docker is installed") as caught:
        run_fetch(FetchContainer(IMAGE))
    assert "apt-get install podman" in str(caught.value.hint)
    with pytest.raises(FetchError, match="docker is installed"):
        run_fetch(FetchContainer(IMAGE), options=SourceOptions(container_engine="docker"))


def test_docker_is_taken_where_there_is_no_podman(tmp_path: Path, run_fetch: Fetcher, monkeypatch: Any):
    docker = PodmanStandIn.install(tmp_path / "bin", "docker")
    docker.image(IMAGE, "echo 1")
    monkeypatch.setenv("PATH", f"{docker.folder}:/usr/bin:/bin")
    assert shown(run_fetch(FetchContainer(IMAGE), options=SourceOptions(container_engine="docker"))) == ["1\n"]


def shown(files: list[Any]) -> list[str]:
    return [file.path.read_text() for file in files]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo half; echo 'no such table' >&2; exit 3", "failed with exit code 3\nno such table"),
        ("exit 1", "failed with exit code 1\nIt printed nothing to standard error."),
        ("echo data; echo same > $ODF_NEW_ETAG_PATH", "printed data but did not change the state"),
        ("echo data; touch $ODF_NEW_HAS_MORE_DATA_PATH", "reports more data, but no state to continue from"),
        ("echo data; echo yesterday > $ODF_NEW_LAST_MODIFIED_PATH", "'yesterday' as the time of the last"),
        ("echo data; printf '\\377' > $ODF_NEW_ETAG_PATH", "wrote an invalid state to new-etag"),
        ("echo data; : > $ODF_NEW_ETAG_PATH", "wrote an invalid state to new-etag"),
        ("yes", "printed more than the 100000 bytes that are allowed"),
    ],
)
def test_container_that_fails(script: str, message: str, podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, script)
    with pytest.raises(FetchError) as caught:
        run_fetch(FetchContainer(IMAGE), state=etag_state("same"), max_bytes=100_000)
    assert message in caught.value.message
    assert IMAGE in caught.value.message
    assert caught.value.hint
    assert podman.containers == []


def test_errors_hold_no_secrets_and_no_control_characters(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, 'printf "\\033[31mrefused: $TOKEN\\033[0m $1\\n" >&2; exit 1')
    step = FetchContainer(IMAGE, args=("${{ env.KEY }}",), env=(EnvVar("TOKEN"),))
    with pytest.raises(FetchError) as caught:
        run_fetch(step, environment={"TOKEN": "s3cret", "KEY": "pa55"})
    assert caught.value.message.endswith("refused: *** ***")


@pytest.mark.parametrize("image", ["--privileged", "", "two words"])
def test_image_cannot_be_an_option(image: str, podman: PodmanStandIn, run_fetch: Fetcher):
    with pytest.raises(InvalidValue, match="is not a name of an image"):
        run_fetch(FetchContainer(image))
    assert podman.calls == []


def test_unknown_image(podman: PodmanStandIn, run_fetch: Fetcher):
    with pytest.raises(FetchError, match=r"(?s)image example.com/.* cannot be pulled.*manifest unknown"):
        run_fetch(FetchContainer(IMAGE))


@pytest.mark.parametrize(
    ("variable", "error"),
    [
        (EnvVar("NOT_SET"), FetchError),
        (EnvVar("A=B", "1"), InvalidValue),
        (EnvVar("ODF_BATCH_SIZE", "many"), InvalidValue),
    ],
)
def test_bad_variable(variable: EnvVar, error: type[Exception], podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, "echo 1")
    with pytest.raises(error):
        run_fetch(FetchContainer(IMAGE, env=(variable,)))


def test_container_is_ended_after_its_time(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, "echo begun; sleep 600")
    with pytest.raises(FetchError, match="stopped after 1 seconds"):
        run_fetch(FetchContainer(IMAGE), options=SourceOptions(container_timeout=1))
    assert podman.containers == []


def test_ctrl_c_ends_the_container(podman: PodmanStandIn, run_fetch: Fetcher):
    podman.image(IMAGE, "echo begun; sleep 600")

    def interrupt(*_: object) -> None:
        assert len(podman.containers) == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_fetch(FetchContainer(IMAGE), progress=interrupt)
    assert podman.containers == []
    assert [call[0] for call in podman.calls][-2:] == ["run", "rm"]


def test_ctrl_c_between_the_start_and_its_return_leaves_no_container(
    podman: PodmanStandIn, run_fetch: Fetcher, monkeypatch: pytest.MonkeyPatch
):
    podman.image(IMAGE, "sleep 600")
    popen = subprocess.Popen

    def interrupted_after_start(arguments: list[str], **options: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = popen(arguments, **options)
        if "run" in arguments:
            while not podman.containers:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted_after_start)
    with pytest.raises(KeyboardInterrupt):
        run_fetch(FetchContainer(IMAGE))
    assert podman.containers == []


# --- In a pull -------------------------------------------------------------------------------------------------------

MANIFEST = f"""
kind: DatasetSnapshot
version: 1
content:
  name: numbers
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Container, image: "{IMAGE}"}}
      read: {{kind: NdJson, schema: {{fields: [{{name: n, type: Int64}}]}}}}
      preprocess: {{kind: Sql, engine: datafusion, query: "select n + 100 as n from input"}}
      merge: {{kind: Append}}
"""


def test_pull_commits_each_batch_and_goes_on_next_time(podman: PodmanStandIn, tmp_path: Path):
    podman.image(IMAGE, FIVE_IN_BATCHES)
    workspace = workspace_with(tmp_path / "workspace", MANIFEST)
    workspace.config.set("fetch.batchSize", "2")
    (result,) = workspace.pull(["numbers"])
    assert result.error is None
    assert (result.num_records, result.num_blocks) == (5, 4)  # three batches and the schema
    assert workspace.tail("numbers", 10).column("n").to_pylist() == [101, 102, 103, 104, 105]
    (again,) = workspace.pull(["numbers"])
    assert again.outcome is PullOutcome.UP_TO_DATE


def test_ctrl_c_at_the_command_line_ends_the_container(podman: PodmanStandIn, tmp_path: Path):
    podman.image(IMAGE, "sleep 600")
    workspace = workspace_with(tmp_path / "workspace", MANIFEST)
    process = start("pull", "numbers", cwd=workspace.root)
    deadline = time.monotonic() + PATIENCE
    while not podman.containers and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert podman.containers == []


def test_pull_records_a_state_without_rows(podman: PodmanStandIn, tmp_path: Path):
    podman.image(IMAGE, "echo $((ODF_ETAG + 1)) > $ODF_NEW_ETAG_PATH")
    workspace = workspace_with(tmp_path / "workspace", MANIFEST)
    for _ in range(2):
        (result,) = workspace.pull(["numbers"])
        assert (result.outcome, result.num_blocks, result.num_records) == (PullOutcome.UPDATED, 1, 0)
    assert workspace.storage.get("numbers").state.source_state("default") == etag_state("2")


def test_failed_batch_leaves_those_before_it(podman: PodmanStandIn, tmp_path: Path):
    podman.image(IMAGE, "test -z $ODF_ETAG || echo broken\n" + FIVE_IN_BATCHES)
    workspace = workspace_with(tmp_path / "workspace", MANIFEST)
    workspace.config.set("fetch.batchSize", "3")
    (result,) = workspace.pull(["numbers"])
    assert result.outcome is PullOutcome.FAILED
    podman.image(IMAGE, FIVE_IN_BATCHES)
    (result,) = workspace.pull(["numbers"])
    assert (result.error, result.num_records) == (None, 2)
    assert workspace.tail("numbers", 10).column("n").to_pylist() == [101, 102, 103, 104, 105]
