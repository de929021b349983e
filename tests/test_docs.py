"""The documentation says what is so: tables are made again, links lead somewhere, commands and settings exist."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from support.engine.spark_here import in_place
from support.pages.engine import QueryExample, changes_of, query_examples
from support.pages.merge import Example, examples, made_of
from support.pages.watermarks import PolicyExample, policy_examples, table_of

from odfpy.cli.commands import COMMANDS, app
from odfpy.coordinator.workspace import Workspace
from odfpy.ingest.merge import MERGES
from odfpy.settings.sections import DATASET_SETTINGS, SETTINGS

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = [
    REPOSITORY / "README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    *sorted((REPOSITORY / "examples").glob("*/README.md")),
]
QUERIES = list(query_examples((REPOSITORY / "docs" / "engine.md").read_text(encoding="utf-8")))
POLICIES = list(policy_examples((REPOSITORY / "docs" / "watermarks.md").read_text(encoding="utf-8")))
EXAMPLES = list(examples((REPOSITORY / "docs" / "merge-strategies.md").read_text(encoding="utf-8")))


def test_every_merge_strategy_has_an_example() -> None:
    assert sorted(example.name for example in EXAMPLES) == sorted(strategy.KIND for strategy in MERGES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_table_of_a_merge_strategy_is_what_comes_of_its_files(example: Example, tmp_path: Path) -> None:
    assert example.table == made_of(example, tmp_path)


def test_every_watermark_policy_has_an_example() -> None:
    settings = [dict(example.settings).keys() for example in POLICIES]
    assert settings == [set(), {"watermark.lag"}, {"watermark.lag", "watermark.idle"}]


@pytest.mark.parametrize("example", POLICIES, ids=lambda example: example.name)
def test_the_table_of_a_watermark_policy_is_what_comes_of_it(
    example: PolicyExample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table_of(example, tmp_path, lambda now: monkeypatch.setattr(time, "time_ns", lambda: now.nanos))
    assert example.table == made


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, spark: object) -> Iterator[Workspace]:
    """A workspace for all queries, whose engine runs in this process."""
    with pytest.MonkeyPatch.context() as patch:
        in_place(patch, spark)
        yield Workspace.init(tmp_path_factory.mktemp("queries"))


@pytest.mark.spark
@pytest.mark.parametrize("example", QUERIES, ids=lambda example: example.name)
def test_the_table_of_a_class_of_queries_is_what_comes_of_its_query(
    example: QueryExample, workspace: Workspace
) -> None:
    assert example.table == changes_of(example, workspace, QUERIES.index(example))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://)([^)\s]*)\)", text):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {
                re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
            }


def test_paths_for_contributors_are_there() -> None:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = [text for text in re.findall(r"(?<!`)`([\w./-]+)`(?!`)", page) if "/" in text and "NAME" not in text]
    assert len(paths) > 50
    assert [path for path in paths if not (REPOSITORY / path).exists()] == [], "write paths from the repository on"


def test_functions_on_the_paths_of_contributors_are_defined_in_their_modules() -> None:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## Paths through the code\n")[2].partition("\n## ")[0]
    steps = re.findall(r"^\d+\. `([\w/]+\.py)`: (.*?)(?=^\d+\. |^$)", section, re.MULTILINE | re.DOTALL)
    assert len(steps) > 25
    for path, text in steps:
        tree = ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        defined = {node.name for node in tree.body if isinstance(node, functions)}
        defined |= {
            f"{owner.name}.{node.name}" for owner in classes for node in owner.body if isinstance(node, functions)
        }
        named = re.findall(r"`(\w+(?:\.\w+)?)`", text.partition(". ")[0])
        assert named, path
        assert [name for name in named if name not in defined | {"IngestRequest"}] == [], path


def test_every_command_and_option_is_on_the_page_of_commands() -> None:
    page = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    root = typer.main.get_command(app)
    with root.make_context("odf", ["version"]) as context:
        for name in COMMANDS:
            command = root.get_command(context, name)
            assert f"`odf {name}" in page
            for sub in getattr(command, "commands", {}):
                assert re.search(rf"odf {name} [a-z|\\]*\b{sub}\b", page), f"{name} {sub}"
            if not hasattr(command, "commands"):
                options = {max(param.opts, key=len) for param in command.params if param.param_type_name == "option"}
                assert not {option for option in options - COMMON if option not in page}, name


COMMON = {"--output", "--help", "--recursive", "--num-records", "--num-commits", "--limit", "--command", "--file"}
"""Options that the page has by their short names, or in general."""


def test_every_setting_is_on_the_page_of_commands() -> None:
    page = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [key for key in (*SETTINGS, *DATASET_SETTINGS) if f"| `{key}` |" not in page] == []


WRITTEN = [
    *PAGES,
    *sorted((REPOSITORY / "docs" / "adr").glob("*.md")),
    *(REPOSITORY / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_lines_are_wrapped(page: Path) -> None:
    """Tables cannot be wrapped, and code stays as it is."""
    text = re.sub(r"^ *(```|~~~).*?^ *\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in text.split("\n") if len(line) > 120 and not line.lstrip().startswith("|")] == []
