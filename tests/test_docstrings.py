"""Docstrings say what a reader needs: each field of the specification's objects, and where the specification has it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import cleandoc
from pathlib import Path
from types import ModuleType

import pytest

from odfpy.chain import events, read_steps, sources
from odfpy.dataset import attachments

SPECIFICATION = "https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#"


def dataclasses_of(*modules: ModuleType) -> list[type]:
    """The dataclasses that some modules define."""
    return [
        one for module in modules for one in vars(module).values()
        if isinstance(one, type) and is_dataclass(one) and one.__module__ == module.__name__
    ]  # fmt: skip


@pytest.mark.parametrize(
    "kind", dataclasses_of(events, sources, read_steps, attachments), ids=lambda kind: kind.__name__
)
def test_fields_of_events_and_sources_have_a_sentence_and_a_link(kind: type) -> None:
    doc = cleandoc(kind.__doc__ or "")
    described = dict(re.findall(r"^ {4}(\w+): (.+)", doc, re.MULTILINE))
    assert described.keys() == {field.name for field in fields(kind)}
    assert SPECIFICATION in doc


MODULES = sorted((Path(__file__).resolve().parents[1] / "odfpy").rglob("*.py"))
NO_BEGINNINGS = {"Whether", "What", "Which", "Where", "How", "When", "Who", "See", "As", "From", "Tells", "Gives", "If"}


def name_of(module: Path) -> str:
    return "/".join(module.parts[module.parts.index("odfpy") :])


def public_functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Those of modules and of public classes; commands and endpoints describe their parameters by themselves."""
    for owner in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")):
        for node in owner.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                declared = [ast.unparse(decorator) for decorator in node.decorator_list] + [ast.unparse(node.args)]
                if not any(re.search(r"typer\.Context|\bQuery\(|router\.|app\.|commands\.", text) for text in declared):
                    yield node


@cache
def findings() -> dict[str, list[str]]:
    """What is wrong in any module; each is read once for all tests."""
    found: dict[str, list[str]] = {"beginnings": [], "silent": [], "unknown": []}
    for module in MODULES:
        tree = ast.parse(module.read_text(encoding="utf-8"))
        found["beginnings"] += wrong_beginnings(module, tree)
        for function in public_functions(tree):
            arguments = function.args
            several = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            stars = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
            names = {one.arg for one in several} - {"self", "cls"}
            text = ast.get_docstring(function)
            described = re.findall(r"^ {4}\*{0,2}(\w+): ", (text or "").partition("Args:")[2], re.MULTILINE)
            if len(names) >= 3 and text and not re.search(r"^Implement |; see `[\w.]+`\.$", text):
                found["silent"] += [
                    f"{name_of(module)}: {function.name}: {name}" for name in sorted(names - set(described))
                ]
            if text and (args := re.search(r"^Args:\n((?: {4}.*\n?|\n(?= {4}))+)", text, re.MULTILINE)):
                told = set(re.findall(r"^ {4}\*{0,2}(\w+): ", args[1], re.MULTILINE))
                known = {one.arg for one in (*several, *stars)}
                found["unknown"] += [f"{name_of(module)}: {function.name}: {name}" for name in sorted(told - known)]
    return found


def wrong_beginnings(module: Path, tree: ast.Module) -> Iterator[str]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        text = ast.get_docstring(node) if isinstance(node, documented) else None
        if text and text.split()[0].strip(".,:;") in NO_BEGINNINGS:
            yield f"{name_of(module)}: {getattr(node, 'name', 'the module')}"


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    assert findings()["beginnings"] == []


def test_functions_with_several_parameters_say_what_these_are() -> None:
    """Methods without a docstring have that of the interface; thin delegates name the function that describes them."""
    assert findings()["silent"] == []


def test_docstrings_describe_parameters_that_there_are() -> None:
    """A whole build of the site warns of others, too."""
    assert findings()["unknown"] == []
