"""Docstrings say what a reader needs: each field of the specification's objects, and where the specification has it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
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


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    wrong = []
    for module in MODULES:
        nodes = (node for node in ast.walk(ast.parse(module.read_text("utf-8"))) if isinstance(node, documented))
        first = ((text.split()[0].strip(".,:;"), node) for node in nodes if (text := ast.get_docstring(node)))
        wrong += [
            f"{name_of(module)}: {getattr(node, 'name', 'the module')}" for word, node in first if word in NO_BEGINNINGS
        ]
    assert wrong == []


def public_functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Those of modules and of public classes; commands and endpoints describe their parameters by themselves."""
    for owner in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")):
        for node in owner.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                declared = [ast.unparse(decorator) for decorator in node.decorator_list] + [ast.unparse(node.args)]
                if not any(re.search(r"typer\.Context|\bQuery\(|router\.|app\.|commands\.", text) for text in declared):
                    yield node


def test_functions_with_several_parameters_say_what_these_are() -> None:
    """Methods without a docstring have that of the interface; thin delegates name the function that describes them."""
    silent = []
    for module in MODULES:
        for function in public_functions(ast.parse(module.read_text(encoding="utf-8"))):
            arguments = function.args
            given = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
            names = given - {"self", "cls"}
            text = ast.get_docstring(function)
            if len(names) >= 3 and text and not re.search(r"^Implement |; see `[\w.]+`\.$", text):
                described = re.findall(r"^ {4}\*{0,2}(\w+): ", text.partition("Args:")[2], re.MULTILINE)
                silent += [f"{name_of(module)}: {function.name}: {name}" for name in sorted(names - set(described))]
    assert silent == []
