"""What a person is used to: help, global options anywhere, suggestions, quiet and verbose, exit codes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer
from cli.conftest import dataset_folder

import odfpy
from odfpy.cli.commands import ALSO, COMMANDS, INSTEAD, app
from odfpy.coordinator.diagnosis import without_secrets
from odfpy.coordinator.verbs.datasets import DatasetRegistry
from odfpy.coordinator.workspace import Workspace

if TYPE_CHECKING:
    from cli.conftest import Odf


def tree_of_commands() -> dict[str, object]:
    """Every command by its full name, without `odf`."""
    root = typer.main.get_command(app)
    found = {}
    with root.make_context("odf", ["version"]) as context:
        for name in COMMANDS:
            command = root.get_command(context, name)
            if hasattr(command, "commands"):
                for sub, item in command.commands.items():
                    found[f"{name} {sub}"] = item
                    found |= {f"{name} {sub} {last}": one for last, one in getattr(item, "commands", {}).items()}
            else:
                found[name] = command
    return found


ALL = tree_of_commands()


# --- Help ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_help_with_an_example_of_itself(name: str, odf: Odf) -> None:
    shown = odf(*name.split(), "--help")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(f"Usage: odf {name} [OPTIONS]")
    _, _, examples = shown.out.partition("\nExample")
    lines = examples.splitlines()[1:]
    assert lines
    assert all(f"odf {name}" in line for line in lines)
    assert odf("help", *name.split()).out == shown.out


@pytest.mark.parametrize("name", ALL)
def test_examples_are_valid_command_lines(name: str, odf: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder all of them fail or do something, but none is misunderstood."""
    import shlex

    if name in ("sql", "relay demo", "system info", "system diagnose"):
        return  # a shell waits for input, and five relays for Ctrl-C; the others are slow
    monkeypatch.chdir(tmp_path)
    for example in ALL[name].epilog.splitlines():  # type: ignore[attr-defined]
        command = next(part for part in example.split(" | ") if part.startswith("odf "))
        words = shlex.split(command.partition(" > ")[0].partition(" < ")[0])
        assert words.pop(0) == "odf"
        done = odf(*words)
        assert "--help` shows its usage" not in done.err
        assert "internal error" not in done.err


def test_the_list_of_commands_says_what_their_own_help_says(odf: Odf) -> None:
    shown = odf("--help").out
    for name, (_, what) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(what[:40])}", shown, re.MULTILINE)
        command = ALL.get(name)
        if command is not None:
            first = " ".join(command.help.split())  # type: ignore[attr-defined]
            assert first.split(",")[0].split(":")[0].startswith(re.split("[,;:]", what)[0].rstrip(".")[:30])


def test_without_a_command_the_help_is_an_error(odf: Odf) -> None:
    for words in ([], ["repo"], ["inspect"]):
        shown = odf(*words)
        assert (shown.code, shown.out) == (2, "")
        assert shown.err.startswith("Usage: odf")


def test_versions(odf: Odf) -> None:
    assert odf("--version").out == f"odf {odfpy.__version__}\n"
    assert odf("version").out.startswith(f"odf {odfpy.__version__} (Open Data Fabric ")
    assert odf("version", "-o", "json").json["odfpy"] == odfpy.__version__


# --- Options of the whole program ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [["-w", "{}", "list"], ["list", "-w", "{}"], ["list", "--workspace", "{}"], ["--workspace={}", "list"]]
)
def test_the_workspace_is_named_before_or_after_the_command(
    words: list[str], odf: Odf, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    listed = odf(*(word.format(workspace) for word in words))
    assert listed.code == 0
    assert "com.example.rates" in listed.out


def test_also_after_the_command_of_a_group(odf: Odf, workspace: Path) -> None:
    assert odf("repo", "-q", "list", "-w", str(workspace)).err == ""
    assert odf("repo", "list", "-w", str(workspace)).err.startswith("No repositories")


def test_quiet_leaves_errors_and_data(odf: Odf, workspace: Path) -> None:
    for words in (["pull", "com.example.upper"], ["rename", "com.example.empty", "com.example.void"]):
        loud = odf(*words)
        assert loud.code == 0
        assert loud.err
        quiet = (
            odf("rename", "com.example.void", "com.example.empty", "-q") if words[0] == "rename" else odf("-q", *words)
        )
        assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert "com.example.rates" in odf("list", "-q").out
    assert odf("-q", "list", "-w", "/").says


def test_verbose_tells_heads_and_steps(odf: Odf, workspace: Path) -> None:
    (workspace / "new.ndjson").write_text('{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}\n')
    told = odf("ingest", "com.example.rates", "new.ndjson", "-v").err
    assert "com.example.rates: ingesting new.ndjson\n" in told
    assert re.search(r"head was f1620\w{64}\n +head is  f1620\w{64}\n", told)


def test_twice_verbose_shows_where_an_error_is_from(odf: Odf, workspace: Path) -> None:
    assert "Traceback" not in odf("show", "nothing", "-v").err
    assert "Traceback" in odf("show", "nothing", "-vv").err


def test_the_workspace_of_a_variable(
    odf: Odf, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ODF_WORKSPACE", str(workspace))
    assert "com.example.rates" in odf("list").out
    monkeypatch.setenv("ODF_WORKSPACE", "/")
    assert "com.example.rates" in odf("list", "-w", str(workspace)).out, "what is typed goes before"
    assert "hint: The variable ODF_WORKSPACE names it: " in odf("list").says
    monkeypatch.setenv("ODF_WORKSPACE", "")
    assert odf("list").says.startswith(f"error: No workspace in {tmp_path} or any folder above it")


def test_settings_of_variables(odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert odf("config", "set", "fetch.retries", "7").code == 0
    monkeypatch.setenv("ODF_FETCH_RETRIES", "5")
    monkeypatch.setenv("ODF_ENGINE_IDLE_TIMEOUT", "30")
    monkeypatch.setenv("ODF_ENGINE_MEMORY", "")
    monkeypatch.setenv("ODF_PAGER", "cat")
    found = {one["key"]: (one["value"], one["from"]) for one in odf("config", "list", "-o", "json").json}
    assert found["fetch.retries"] == (5, "ODF_FETCH_RETRIES")
    assert found["engine.idleTimeout"] == (30, "ODF_ENGINE_IDLE_TIMEOUT")
    assert found["engine.memory"] == (None, "default")
    set_below = odf("config", "set", "fetch.retries", "8").err
    assert set_below == "fetch.retries is now 5 (ODF_FETCH_RETRIES)\n", "the file has 8, and the variable goes before"
    monkeypatch.delenv("ODF_FETCH_RETRIES")
    assert odf("config", "get", "fetch.retries").out == "8\n"


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        (
            "ODF_ENGINE_MEMRY",
            "2g",
            "The variable ODF_ENGINE_MEMRY is not a setting (E100)\nhint: Did you mean ODF_ENGINE",
        ),
        ("ODF_FETCH_RETRIES", "few", "The variable ODF_FETCH_RETRIES is a whole number, not 'few'"),
        ("ODF_ETHEREUM_NODES", "https://secret", "The variable ODF_ETHEREUM_NODES is chain ids with URLs"),
    ],
)
def test_a_wrong_variable_is_no_setting_that_is_missed(
    variable: str, value: str, told: str, odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    wrong = odf("config", "list")
    assert wrong.code == 2
    assert told in wrong.says
    assert "secret" not in wrong.err


def test_words_of_other_programs(odf: Odf, workspace: Path) -> None:
    assert odf("ls", "-o", "json").json == odf("list", "-o", "json").json
    assert odf("mv", "com.example.empty", "com.example.void").code == 0
    assert odf("rm", "com.example.void", "--yes").err == "Deleted com.example.void\n"
    assert "hint: `odf pull NAME` fetches and commits." in odf("fetch", "com.example.rates").says
    assert odf("ls", "--help").out.startswith("Usage: odf list")


# --- Several datasets ------------------------------------------------------------------------------------------------


def test_list_takes_names_and_patterns(odf: Odf, workspace: Path) -> None:
    names = [one["name"] for one in odf("list", "com.example.%s", "trades", "-o", "json").json]
    assert names == ["com.example.cities", "com.example.rates", "trades"]
    assert "No dataset matches the pattern 'org.%'" in odf("list", "org.%").says


def test_the_last_line_sums_up(odf: Odf, workspace: Path) -> None:
    pulled = odf("pull", "com.example.%").err.splitlines()
    assert pulled[-1] == "5 up to date"
    assert odf("pull", "com.example.upper").err.count("\n") == 1, "one dataset needs no sum"
    verified = odf("verify", "com.example.rates", "com.example.cities")
    assert verified.err.splitlines()[-1] == "2 verified"
    (dataset_folder(workspace, "com.example.cities") / "refs" / "head").write_text("nothing")
    pulled = odf("pull", "--all")
    assert (pulled.code, pulled.err.splitlines()[-1]) == (1, "1 failed, 5 up to date")


def test_a_note_is_told_once(odf: Odf, workspace: Path) -> None:
    told = odf("pull", "com.example.rates", "com.example.cities", "com.example.stock").err
    assert told.count("nothing to pull from; data comes by `odf ingest`") == 1


def test_nothing_came_of_rows_that_are_known(odf: Odf, workspace: Path) -> None:
    row = '{"event_time":"2024-01-01T00:00:00Z","id":1,"name":"a"}\n'
    (workspace / "again.ndjson").write_text(row)
    assert odf("ingest", "com.example.rates", "again.ndjson").code == 0
    told = odf("ingest", "com.example.rates", "again.ndjson").err
    assert "0 records" not in told


def test_a_line_for_each_block(odf: Odf, workspace: Path) -> None:
    assert odf("tag", "com.example.rates", "v1").code == 0
    lines = odf("log", "com.example.rates", "--oneline").out.splitlines()
    blocks = odf("log", "com.example.rates", "-o", "json").json
    assert [line.split()[:2] for line in lines] == [
        [str(block["content"]["sequenceNumber"]), block["blockHash"][:13]] for block in blocks
    ]
    assert "AddData rows 0 to 2" in lines[0]
    assert lines[0].endswith("(tag v1)")
    assert odf("tail", f"com.example.rates@{lines[0].split()[1]}").code == 0, "short hashes mean blocks"
    assert odf("log", "com.example.rates", "--oneline", "-o", "json").code == 2


# --- Suggestions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        (["lst"], "Did you mean list?"),
        (["repo", "lst"], "Did you mean list?"),
        (["zzz"], "`odf --help` lists the commands."),
        (["pull", "--al"], "Did you mean --all?"),
        (["pull", "--recursiv"], "Did you mean --recursive?"),
        (["list", "-o", "jsno"], "Did you mean json"),
        (["show", "com.example.rate"], "Did you mean com.example.rates?"),
        (["config", "get", "engine.memry"], "Did you mean engine.memory"),
        (["ingest", "com.example.rates", "x", "--input-format", "cvs"], "Did you mean csv?"),
        (["sql", "--engine", "sparc", "-c", "select 1"], "Did you mean spark?"),
        (["repo", "delete", "miror", "-y"], "Did you mean mirror?"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(words: list[str], suggested: str, odf: Odf, workspace: Path) -> None:
    odf("repo", "add", "mirror", str(workspace / "mirror"))
    (workspace / "x").write_text("")
    wrong = odf(*words)
    assert wrong.code in (1, 2)
    assert suggested in wrong.says


# --- Exit codes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["list", "--nothing"],
        ["version", "too", "many"],
        ["tail"],
        ["tail", "com.example.rates", "-n", "few"],
        ["tail", "com.example.rates", "-n", "-1"],
        ["log", "com.example.rates", "--limit", "0"],
        ["list", "-o", "xml"],
        ["pull"],
        ["push"],
        ["verify"],
        ["delete"],
        ["pull", "com.example.rates", "--all"],
        ["push", "com.example.rates", "--all"],
        ["verify", "com.example.rates", "--all"],
        ["pull", "--all", "--set-watermark", "2024-01-01"],
        ["pull", "com.example.rates", "--set-watermark", "soon"],
        ["pull", "com.example.upper", "--set-watermark", "2030-01-01"],
        ["pull", "com.example.rates", "--as", "com.example.copy"],
        ["ingest", "com.example.rates"],
        ["ingest", "com.example.upper", "manifest.yaml"],
        ["new", "com.example.x", "--root", "--derivative"],
        ["add", "."],
        ["inspect", "query", "com.example.rates"],
        ["push", "com.example.rates"],
        ["config", "set", "fetch.timeout", "soon"],
        ["config", "get", "nothing"],
        ["delete", "com.example.rates", "-y"],
        ["delete", "com.example.rates"],
    ],
)
def test_wrong_usage_is_2(words: list[str], odf: Odf, workspace: Path) -> None:
    (workspace / "manifest.yaml").write_text("")
    wrong = odf(*words)
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.says
    assert "internal error" not in wrong.err


def test_outside_of_a_workspace_is_wrong_usage(odf: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["list"], ["pull", "--all"], ["config", "list"], ["repo", "list"], ["sql", "-c", "select 1"]):
        wrong = odf(*words)
        assert wrong.code == 2
        assert wrong.says == (
            f"error: No workspace in {tmp_path} or any folder above it (E111)\nhint: Create one here with `odf init`.\n"
        )


def test_names_of_wrong_usage_in_one_of_several_is_still_a_failure(odf: Odf, workspace: Path) -> None:
    odf("push", "com.example.rates", "--to", str(workspace / "pushed"))
    assert odf("push", "com.example.rates", "com.example.cities").code == 2, "one has not been pushed anywhere yet"


def test_what_is_wrong_with_several_in_the_same_way_is_said_once(odf: Odf, workspace: Path) -> None:
    odf("push", "com.example.rates", "--to", str(workspace / "pushed"))
    pushed = odf("push", "--all")
    lines = [line for line in pushed.err.splitlines() if line.startswith(("error:", "hint:"))]
    assert sum("not been pushed anywhere yet (E100)" in line for line in lines) <= 2
    assert "com.example.cities, com.example.empty" in pushed.err
    assert ": This has not been pushed anywhere yet (E100)" in pushed.err
    assert len(odf("push", "--all", "-o", "json").json) == 6


# --- Asking ----------------------------------------------------------------------------------------------------------


def test_nothing_is_deleted_unasked(odf: Odf, workspace: Path) -> None:
    refused = odf("delete", "com.example.empty")
    assert refused.code == 2
    assert "--yes" in refused.says
    assert len(Workspace.open(workspace).datasets.all()) == 6
    assert odf("delete", "com.example.empty", "--yes").err == "Deleted com.example.empty\n"
    assert len(Workspace.open(workspace).datasets.all()) == 5


# --- Bugs ------------------------------------------------------------------------------------------------------------


def test_a_bug_is_one_line_and_a_log(
    odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def survey(_: DatasetRegistry, refs: object) -> None:
        raise ZeroDivisionError("of some\nkind")

    monkeypatch.setattr(DatasetRegistry, "survey", survey)
    broken = odf("list")
    assert broken.code == 1
    (log,) = tmp_path.glob("odf-crash-*.log")
    assert broken.says == (
        "error: internal error: ZeroDivisionError: of some kind (E999)\n"
        f"hint: This is a bug in odfpy. Please report it with {log}, which has the details.\n"
    )
    written = log.read_text()
    assert "ZeroDivisionError: of some" in written
    assert "Traceback" in written
    assert "['list']" in written


def test_a_full_disk_is_no_bug(odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def survey(_: DatasetRegistry, refs: object) -> None:
        raise OSError(28, "No space left on device", "/some/file")

    monkeypatch.setattr(DatasetRegistry, "survey", survey)
    assert odf("list").says == "error: /some/file: No space left on device (E900)\n"


def test_what_is_reported_has_no_secrets() -> None:
    line = [
        "login",
        "http://ann:pass@host",
        "--token",
        "secret1",
        "--token=secret2",
        "config",
        "set",
        "mail.password",
        "secret3",
    ]
    shown = without_secrets(line)
    assert "secret" not in " ".join(shown)
    assert "pass@" not in " ".join(shown)
    assert shown[0] == "login"
    assert len(shown) == len(line)


def test_secrets_are_shown_only_to_those_who_ask_for_them(
    odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "mail.password is now (set)" in odf("config", "set", "mail.password", "hunter2").err
    listed = odf("config", "list").out
    assert "(set)" in listed
    assert "hunter2" not in listed
    assert odf("config", "get", "mail.password").out == "hunter2\n"
    monkeypatch.setenv("ODF_MAIL_PASSWORD", "hunter3")
    assert "hunter" not in odf("config", "unset", "mail.password").err


@pytest.mark.parametrize(
    "arguments",
    [("log", "com.example.rates", "-n"), ("tail", "com.example.rates", "-n"), ("runs", "-n"), ("run", "--grace")],
)
@pytest.mark.parametrize("number", ["9" * 23, "9" * 5000])
def test_numbers_beyond_all_bounds_are_refused(
    odf: Odf, workspace: Path, arguments: tuple[str, ...], number: str
) -> None:
    refused = odf(*arguments, number)
    assert refused.code == 2
    assert len(refused.says) < 300


def test_standard_input_that_is_no_text_is_told(odf: Odf, workspace: Path) -> None:
    refused = odf("sql", "--engine", "datafusion", stdin=b"select 1 \xff")
    assert (refused.code, "Standard input is not text in UTF-8" in refused.says) == (2, True)
    assert odf("sql", "--engine", "datafusion", "-o", "csv", stdin="select 'ž' as x".encode()).out == "x\nž\n"


@pytest.mark.parametrize("word", INSTEAD)
def test_words_from_other_programs_lead_to_commands_that_exist(word: str, odf: Odf) -> None:
    assert word not in COMMANDS | ALSO
    refused = odf(word)
    assert (refused.code, refused.says) == (2, f"error: No such command: {word} (E100)\nhint: {INSTEAD[word]}\n")
    for line in re.findall(r"`odf ([^`]*)`", INSTEAD[word]):
        name = " ".join(part for part in line.split() if part.islower() and not part.startswith("-"))
        assert name in ALL or name in COMMANDS
        for option in re.findall(r"--?[a-z]+", line):
            assert option in odf(*name.split(), "--help").out


def test_option_suggested_is_like_the_one_given(odf: Odf) -> None:
    assert "hint: `odf new --help` shows its usage" in odf("new", "--force").says
    assert "hint: Did you mean --num-records?" in odf("tail", "rates", "--num-record", "3").says
    without_value = odf("tail", "rates", "-n").says
    assert "Option '-n' requires an argument" in without_value
    assert "hint: `odf tail --help` shows its usage" in without_value
