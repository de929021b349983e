"""`--profile`: where the time of a pull or an ingest went, as tables and as trees; never which times they were."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Odf, dataset_folder
from support.chains.workspaces import FOLDER
from support.processes.terminal import PATIENCE, start

from odfpy.cli.app import run
from odfpy.cli.screen.profile import seconds_to_start

LINE = '{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}\n'


@pytest.fixture
def rows(workspace: Path) -> Path:
    """A workspace with rows to take in."""
    (workspace / "new.ndjson").write_text(LINE)
    (workspace / "more.ndjson").write_text(LINE.replace("9", "10"))
    return workspace


def tables(printed: str) -> dict[str, list[list[str]]]:
    """The tables by what they are of: for each line the stage, indented, and the cells behind it."""
    found: dict[str, list[list[str]]] = {}
    for part in printed.split("Profile of ")[1:]:
        name, *lines = part.split("\n\n")[0].splitlines()
        # Errors and summaries may come behind the last table.
        found[name] = [re.split(r"(?<=\S)  +", line.rstrip()) for line in lines if re.search(r"  \d", line)]
    return found


def seconds(table: list[list[str]], name: str) -> float:
    (line,) = [line for line in table if line[0] == name]
    return float(next(cell for cell in line[1:] if re.fullmatch(r"\d+\.\d{3}", cell)))


def consistent(tree: dict[str, Any]) -> bool:
    """Whether the parts of each stage take no longer than it; seconds are rounded to millionths."""
    inner = sum(part["seconds"] for part in tree["stages"])
    return inner <= tree["seconds"] + 1e-6 * (1 + len(tree["stages"])) and all(map(consistent, tree["stages"]))


def names(tree: dict[str, Any]) -> list[str]:
    return [part["stage"] for part in tree["stages"]]


def below(tree: dict[str, Any], *path: str) -> dict[str, Any]:
    """The stage that some names lead to."""
    for name in path:
        (tree,) = [part for part in tree["stages"] if part["stage"] == name]
    return tree


def test_an_ingest_names_its_stages(odf: Odf, rows: Path) -> None:
    done = odf("ingest", "com.example.rates", "new.ndjson", "--profile", "-o", "json")
    result, command = done.json
    assert (done.code, done.err) == (0, "")
    assert command["command"] == "odf ingest"
    assert consistent(command["profile"])
    tree = result["profile"]
    assert tree["stage"] == "com.example.rates"
    assert tree == below(command["profile"], "com.example.rates")
    wanted = ["read chain", "read", "normalize", "merge", "write", "commit", "index of keys"]
    assert [name for name in names(tree) if name in wanted] == wanted
    assert names(below(tree, "write")) == ["Parquet", "logical hash", "flush to disk"]
    assert names(below(tree, "write", "Parquet")) == ["physical hash"]
    assert names(below(tree, "commit"))[-3:] == ["checks", "files", "blocks"]
    assert tree["javaCalls"] == tree["sparkJobs"] == 0


def test_several_files_add_up(odf: Odf, rows: Path) -> None:
    one, two, command = odf(
        "ingest", "com.example.rates", "new.ndjson", "more.ndjson", "--profile", "-o", "json"
    ).json  # fmt: skip
    assert [one["input"], two["input"]] == ["new.ndjson", "more.ndjson"]
    tree = below(command["profile"], "com.example.rates")
    assert tree["times"] == 2
    assert below(tree, "merge")["times"] == 2


def test_a_pull_in_process_names_its_stages_and_those_of_the_engine(odf: Odf, rows: Path) -> None:
    assert odf("ingest", "com.example.rates", "new.ndjson").code == 0
    result, command = odf("pull", "com.example.upper", "--profile", "-o", "json").json
    tree = result["profile"]
    wanted = ["lock", "read chain", "what is new", "request", "DataFusion", "commit"]
    assert [name for name in names(tree) if name in wanted] == wanted
    assert names(below(tree, "DataFusion")) == ["start", "job"]
    job = below(tree, "DataFusion", "job")
    assert names(job) == ["analysis", "inputs", "plan", "query", "output", "late rows"]
    assert names(below(job, "output")) == ["Parquet", "logical hash", "flush to disk"]
    assert consistent(command["profile"])
    assert {"workspace", "find datasets", "order", "com.example.upper"} <= set(names(command["profile"]))


def test_a_table_for_one_dataset_has_the_command_around_it(odf: Odf, rows: Path) -> None:
    done = odf("ingest", "com.example.rates", "new.ndjson", "--profile")
    assert done.out == ""
    usual, _, _ = done.err.partition("\nProfile of")
    assert usual.startswith("com.example.rates: updated, 1 record in 1 block")
    assert usual.count("\n") == 1
    (name, table), *others = tables(done.err).items()
    assert (name, others) == ("odf ingest", [])
    stages = [line[0] for line in table]
    assert "com.example.rates" in stages
    assert "total" in stages
    assert seconds(table, "total") >= seconds(table, "com.example.rates")


def test_several_datasets_have_a_table_each_and_one_for_the_command(odf: Odf, rows: Path) -> None:
    assert odf("ingest", "com.example.rates", "new.ndjson").code == 0
    done = odf("pull", "--all", "--profile")
    found = tables(done.err)
    datasets = [f"com.example.{name}" for name in ("cities", "empty", "rates", "stock", "upper")]
    assert list(found)[-1] == "odf pull"
    assert sorted(name for name in found if name != "odf pull") == [*datasets, "trades"]
    command = found["odf pull"]
    assert {line[0] for line in command} >= set(datasets)
    assert not any(line[0].startswith("  ") and "DataFusion" in line[0] for line in command)
    assert any("DataFusion" in line[0] for line in found["com.example.upper"])
    assert seconds(command, "total") >= seconds(found["com.example.upper"], "total")
    assert "1 updated" in done.err


def test_inputs_are_datasets_of_the_command_too(odf: Odf, rows: Path) -> None:
    found = tables(odf("pull", "com.example.upper", "--recursive", "--profile").err)
    assert list(found) == ["com.example.rates", "com.example.upper", "odf pull"]


def test_what_fails_has_the_profile_so_far(odf: Odf, rows: Path) -> None:
    (dataset_folder(rows, "com.example.cities") / "refs" / "head").write_text("nothing")
    failed = odf("pull", "com.example.cities", "com.example.rates", "--profile")
    assert failed.code == 1
    assert list(tables(failed.err)) == ["com.example.cities", "com.example.rates", "odf pull"] or list(
        tables(failed.err)
    ) == ["odf pull"], failed.err
    (rows / "wrong.ndjson").write_text("{")
    failed = odf("ingest", "com.example.rates", "wrong.ndjson", "--profile")
    assert list(tables(failed.err)) == ["odf ingest"]
    assert failed.err.splitlines()[-1].startswith(("error: com.example.rates: wrong.ndjson", "hint: "))
    failed = odf("ingest", "com.example.rates", "wrong.ndjson", "--profile", "-o", "json")
    assert failed.says.startswith("error: com.example.rates: wrong.ndjson")
    (command,) = failed.json
    assert names(below(command["profile"], "com.example.rates"))[-1] == "read"


def test_a_program_gets_the_profile_of_the_command_last(odf: Odf, rows: Path) -> None:
    lines = odf("pull", "com.example.upper", "com.example.rates", "--profile", "-o", "ndjson").out.splitlines()
    first, second, command = map(json.loads, lines)
    assert sorted(one["profile"]["stage"] for one in (first, second)) == ["com.example.rates", "com.example.upper"]
    assert command["command"] == "odf pull"
    yaml = odf("pull", "com.example.upper", "--profile", "-o", "yaml")
    assert "command: odf pull\n" in yaml.out
    assert yaml.err == ""


def test_nobody_gets_a_profile_who_does_not_ask(odf: Odf, rows: Path) -> None:
    (result,) = odf("pull", "com.example.upper", "-o", "json").json
    assert "profile" not in result
    assert "Profile" not in odf("pull", "--all").err


def test_quiet_leaves_what_was_asked_for(odf: Odf, rows: Path) -> None:
    assert list(tables(odf("pull", "com.example.upper", "--profile", "-q").err)) == ["odf pull"]


def test_a_copy_is_a_transfer(odf: Odf, rows: Path) -> None:
    assert odf("push", "com.example.rates", "--to", str(rows / "pushed")).code == 0
    url = next((rows / "pushed").parent.glob("pushed"))
    result, _ = odf("pull", str(url), "--as", "com.example.copy", "--profile", "-o", "json").json
    assert "transfer" in names(result["profile"])


def test_a_source_is_fetched_prepared_and_read(odf: Odf, rows: Path) -> None:
    (rows / "in").mkdir()
    (rows / "in" / "a.csv").write_text("id\n1\n")
    (rows / "folder.yaml").write_text(FOLDER)
    assert odf("add", "folder.yaml").code == 0
    result, _ = odf("pull", "com.example.folder", "--profile", "-o", "json").json
    wanted = ["fetch", "prepare", "read", "normalize", "merge", "write", "commit"]
    assert [name for name in names(result["profile"]) if name in wanted] == wanted


def test_it_does_not_go_with_what_pulls_nothing(odf: Odf, rows: Path) -> None:
    for words in (["--dry-run"], ["--set-watermark", "2030-01-01"]):
        refused = odf("pull", "com.example.rates", "--profile", *words)
        assert refused.code == 2
        assert "--profile cannot be combined with" in refused.says


def test_imports_are_what_they_were_afterwards(odf: Odf, rows: Path) -> None:
    import builtins

    before = builtins.__import__
    assert odf("pull", "com.example.upper", "--profile").code == 0
    assert builtins.__import__ is before
    assert odf("ingest", "com.example.rates", "nowhere.ndjson", "--profile").code == 1
    assert builtins.__import__ is before


# --- Processes -------------------------------------------------------------------------------------------------------


def test_a_process_has_a_start_and_imports(rows: Path) -> None:
    process = start("ingest", "com.example.rates", "new.ndjson", "--profile", "-o", "json", cwd=rows)
    out, _ = process.communicate(timeout=PATIENCE)
    tree = json.loads(out)[-1]["profile"]
    assert names(tree)[:2] == ["process start", "imports"]
    assert "odfpy.coordinator.workspace" in names(below(tree, "workspace", "imports"))
    assert consistent(tree)


def test_a_command_within_a_program_has_no_start(rows: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["pull", "com.example.upper", "--profile"]) == 0
    assert "process start" not in capfd.readouterr().err


def test_a_clock_that_makes_no_sense_is_not_believed() -> None:
    assert seconds_to_start(1e9) == 0.0
    assert seconds_to_start(-1e9) is None


def test_an_interrupted_command_has_the_profile_so_far(rows: Path) -> None:
    (rows / "inbox").mkdir()
    (rows / "new.ndjson").rename(rows / "inbox" / "new.ndjson")
    process = start("ingest", "com.example.rates", "--watch", "inbox", "--profile", cwd=rows)
    assert process.stderr is not None
    for line in process.stderr:
        if "updated, 1 record" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert list(tables(err)) == ["odf ingest"]
