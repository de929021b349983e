"""What the Tab key offers: first what `odf` answers to a shell, then the shells themselves, as far as they are there.

`.ci/packages` installs zsh and fish where they are missing; bash is everywhere.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.processes.terminal import REPOSITORY, environment, program_at_terminal

from odfpy.cli.commands import COMMANDS
from odfpy.cli.completion import SHELLS
from odfpy.coordinator.workspace import Workspace
from odfpy.settings.sections import DATASET_SETTINGS, SETTINGS

if TYPE_CHECKING:
    from cli.conftest import Odf

ROOTS = ["com.example.cities", "com.example.empty", "com.example.rates", "com.example.stock"]
NAMES = [*ROOTS, "com.example.upper", "trades"]
FILES = ["files"]


@pytest.fixture
def offered(odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """What is offered for a line of bash; `files` where it is to complete files itself."""
    assert odf("repo", "add", "mirror", str(workspace / "mirror")).code == 0

    def call(line: str, shell: str = "bash") -> list[str]:
        words = [line] if shell == "bash" else line.split(" ")[1:]
        monkeypatch.setenv("_ODF_COMPLETE", shell)
        answer = odf(*words)
        monkeypatch.delenv("_ODF_COMPLETE")
        assert (answer.code, answer.err) == (0, "")
        kind, *lines = answer.out.splitlines()
        return FILES if kind == "files" else [line.partition("\t")[0] for line in lines]

    return call


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("odf ", [*COMMANDS, "help"]),
        ("odf ver", ["verify", "verify-result", "version"]),
        ("odf inspect li", ["lineage"]),
        ("odf show com.example.", [*ROOTS, "com.example.upper"]),
        ("odf show com.example.rates ", []),
        ("odf -q -w . show tr", ["trades"]),
        ("odf -w /nowhere/at/all show ", []),
        ("odf pull trades com.example.e", ["com.example.empty"]),
        ("odf pull ", [*NAMES, "mirror/"]),
        ("odf pull ./", FILES),
        ("odf push --to ", ["mirror"]),
        ("odf push --to=m", ["--to=mirror"]),
        ("odf push --to mirror com.example.u", ["com.example.upper"]),
        ("odf repo delete ", ["mirror"]),
        ("odf repo add ", []),
        ("odf config set ", list(SETTINGS)),
        (
            "odf config set --dataset com.example.rates water",
            [one for one in DATASET_SETTINGS if one.startswith("water")],
        ),
        ("odf config get --dataset=com.example.rates ", list(DATASET_SETTINGS)),
        ("odf config unset -d com.example.s", ["com.example.stock"]),
        ("odf pull --a", ["--all", "--as", "--allow-retractions", "--allow-future"]),
        ("odf log -", ["--limit", "--oneline", "--output", "--workspace", "--quiet", "--verbose", "--help"]),
        ("odf list --output ", ["table", "json", "ndjson", "csv", "yaml"]),
        ("odf sql --engine s", ["spark"]),
        ("odf add ", FILES),
        ("odf ingest com.example.rates ", FILES),
        ("odf help E50", ["E500", "E501", "E502", "E503", "E504", "E505", "E506", "E507"]),
        ("odf help pu", ["pull", "push"]),
        ("odf nonsense ", []),
        ("odf completion z", ["zsh"]),
    ],
)
def test_offers(line: str, words: list[str], offered: object) -> None:
    for shell in SHELLS:
        assert offered(line, shell) == words  # type: ignore[operator]


def test_what_belongs_to_a_dataset_is_offered_behind_its_name(odf: Odf, offered: object) -> None:
    for words in (["tag", "com.example.rates", "v1"], ["branch", "com.example.rates", "staging"]):
        assert odf(*words).code == 0
    for line, words in {
        "odf tag com.example.rates ": ["v1"],
        "odf merge com.example.rates ": ["staging"],
        "odf diff com.example.rates ": ["head", "v1", "staging"],
        "odf diff com.example.rates v1 h": ["head"],
        "odf tail com.example.rates@": ["com.example.rates@staging", "com.example.rates@v1"],
        "odf log com.example.rates@s": ["com.example.rates@staging"],
        "odf verify com.example.cities com.example.rates@v": ["com.example.rates@v1"],
        "odf tail nothing@": [],
        "odf ls com.example.s": ["com.example.stock"],
        "odf diff com.example.rates v1 head --key id,n": ["id,name"],
        "odf export com.example.rates --as-at v": ["v1"],
        "odf export com.example.rates --to x --partition-by n": ["name"],
        "odf export --partition-by ": [],
        "odf export com.example.rates --to ": FILES,
    }.items():
        assert offered(line) == words, line  # type: ignore[operator]


def test_ids_are_offered_where_one_is_begun(workspace: Path, offered: object) -> None:
    ids = {str(summary.handle.id) for summary in Workspace.open(workspace).datasets.all()}
    assert set(offered("odf show did:odf:")) == ids  # type: ignore[operator]


def test_a_quote_may_be_open(offered: object) -> None:
    assert offered('odf show "com.example.r') == ["com.example.rates"]  # type: ignore[operator]


def test_outside_of_a_workspace_nothing_is_offered_and_nothing_said(
    offered: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in ("odf show ", "odf push --to ", "odf repo delete "):
        assert offered(line) == []  # type: ignore[operator]


def test_an_answer_takes_little_time_since_little_is_loaded(workspace: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "from odfpy.cli.app import main; main()", "odf pull com"],
        cwd=workspace, env=environment(_ODF_COMPLETE="bash"), capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "com.example.rates" in done.stdout
    assert not loaded & {"odfpy.chain.events", "odfpy.coordinator.workspace", "yaml", "pyarrow", "rich", "numpy"}


def test_another_shell_is_refused(odf: Odf) -> None:
    refused = odf("completion", "fsh")
    assert refused.code == 2
    assert "Did you mean fish?" in refused.says


# --- The shells themselves -------------------------------------------------------------------------------------------

START = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
    "fish": ["--no-config", "-i"],
}
THERE = [shell for shell in SHELLS if shutil.which(shell)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with an `odf` of this source."""
    program = tmp_path / "bin" / "odf"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(REPOSITORY)!r})\nfrom odfpy.cli.app import main\nmain()\n"
    )
    program.chmod(0o755)
    return f"{program.parent}:/usr/bin:/bin"


@pytest.mark.parametrize("shell", THERE)
def test_tab_completes_at_the_prompt_of_a_real_shell(shell: str, workspace: Path, path: str) -> None:
    dataset_id = str(Workspace.open(workspace).datasets.handle("trades").id)
    Workspace.open(workspace).remotes.repositories.add("mirror", str(workspace / "mirror"))
    script = workspace / "completion"
    with script.open("wb") as file:
        subprocess.run(["odf", "completion", shell], stdout=file, env=environment(PATH=path), check=True)
    variables = {"PATH": path, "PS1": "$ ", "HOME": str(workspace), "ZDOTDIR": str(workspace), "TERM": "dumb"}
    with program_at_terminal(shell, *START[shell], cwd=workspace, columns=200, **variables) as prompt:
        if shell == "zsh":
            prompt.type("autoload -Uz compinit; compinit -D -u\n")
        prompt.type("source ./completion; echo rea''dy\n")
        prompt.wait_for("ready")
        for typed, completed in (
            ("odf show com.example.rat", "odf show com.example.rates"),
            (f"odf show {dataset_id[:-8]}", f"odf show {dataset_id}"),
            ("odf push --to mir", "odf push --to mirror"),
            ("odf pull --rec", "odf pull --recursive"),
        ):
            before = len(prompt.screen)
            prompt.type(f"{typed}\t")
            prompt.wait_for(completed, before)
            prompt.type("\x15")  # takes the line away again


@pytest.mark.parametrize("shell", THERE)
def test_the_script_of_a_shell_is_right_for_it(shell: str, odf: Odf, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(odf("completion", shell).out)
    subprocess.run([shell, "-n", str(script)], check=True)
