"""Reading and writing of YAML trees with PyYAML, by the rules of YAML 1.2; see `odfpy.codec.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from odfpy.codec.tree import Path
from odfpy.errors import MalformedManifest, TooManyNodes

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_MAX_DEPTH = 100
_MAX_DOCUMENTS = 10_000
_MAX_NODES = 300_000  # texts, lists and mappings; a manifest has dozens, one of a very wide dataset thousands
_WIDTH = 2**30  # lines are never folded

_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MAX_NUMBER_LENGTH = 400
_QUOTED = ("'", '"', "|", ">")
_CONSTANTS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
# Texts, since `re` compiles and keeps a pattern when a text needs it: few do, and each takes a hundredth of a command.
_NOT_IN_YAML = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_NOT_LITERAL = r"\A[ \n]|[ \t](\n|\Z)|[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]"


class Document:
    """A YAML document: its tree, and the positions of all values.

    Attributes:
        tree: dicts, lists and scalars.
        line: number of the document's first line, from 1.
    """

    def __init__(self, node: Any) -> None:
        self._places: dict[Path, tuple[int, int]] = {}
        self.line: int = node.start_mark.line + 1
        self.tree = self._build(node, ())

    def line_of(self, path: Path) -> int:
        """Return the line of the deepest part of a path that exists in the document."""
        return self.place_of(path)[0]

    def place_of(self, path: Path) -> tuple[int, int]:
        """Return the line and column, both from 1, of the deepest existing part of a path, or of its key."""
        while path and path not in self._places:
            path = path[:-1]
        return self._places.get(path, (self.line, 1))

    def _build(self, node: Any, path: Path) -> Any:
        self._places[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._build(item, (*path, at)) for at, item in enumerate(node.value)]
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                raise MalformedManifest(f"Line {key_node.start_mark.line + 1}: a key must be text")
            if key in mapping:
                raise MalformedManifest(f"Line {key_node.start_mark.line + 1}: the key {key!r} occurs twice")
            place = (*path, key)
            mapping[key] = self._build(value_node, place)
            self._places[place] = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        return mapping


def _scalar(node: Any) -> Any:
    text: str = node.value
    return text if node.style in _QUOTED else _plain(text)


def _plain(text: str) -> Any:
    """Return the value of a text that is written without quotes."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) > _MAX_NUMBER_LENGTH:
        return text
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def load(text: str) -> list[Document]:
    """Return all non-empty documents of a text; see `odfpy.codec.yaml.load_documents`."""
    is_printable = all(map(str.isprintable, text.split("\n")))  # which all of YAML's characters but a few are
    strange = None if is_printable else re.search(_NOT_IN_YAML, text)
    if strange:
        line = text.count("\n", 0, strange.start()) + 1
        raise MalformedManifest(f"Line {line}: the character U+{ord(strange[0]):04X} cannot stand in YAML")
    try:
        _check_events(text)
        nodes = [node for node in yaml.compose_all(text, Loader=_Loader) if node is not None]
        return [Document(node) for node in nodes if not _is_empty(node)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"Line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise MalformedManifest(f"{place}not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise MalformedManifest(f"Not YAML: {error}") from error


def _check_events(text: str) -> None:
    """Reject texts that could expand to a large tree, or that other readers would interpret differently."""
    depth = documents = nodes = 0
    events: Iterator[Any] = yaml.parse(text, Loader=_Loader)
    for event in events:
        line = event.start_mark.line + 1
        documents += isinstance(event, yaml.DocumentStartEvent)
        nodes += isinstance(event, yaml.NodeEvent)
        if documents > _MAX_DOCUMENTS or nodes > _MAX_NODES:
            what = f"{_MAX_DOCUMENTS} documents" if documents > _MAX_DOCUMENTS else f"{_MAX_NODES} values"
            raise TooManyNodes(
                f"Line {line}: more than {what}", hint="Split the file. Is it data? `odf ingest` takes it."
            )
        if isinstance(event, yaml.AliasEvent):  # a few aliases can expand to gigabytes
            raise MalformedManifest(f"Line {line}: aliases (*{event.anchor}) are not supported")
        if getattr(event, "tag", None) is not None:
            raise MalformedManifest(f"Line {line}: tags ({event.tag}) are not supported", hint="Put text in quotes.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise MalformedManifest(f"Line {line}: nested more than {_MAX_DEPTH} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _is_empty(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style not in _QUOTED and not node.value


class _Writer(_Dumper):  # type: ignore[misc]
    """Writer of block style, with keys in their order, and texts of several lines as literal blocks."""


def _write_text(dumper: Any, text: str) -> Any:
    # The dumper follows YAML 1.1: it quotes some words that are text in 1.2, which is harmless, but not all that are
    # not.
    style = None
    if "\n" in text and not re.search(_NOT_LITERAL, text):
        style = "|"
    elif not isinstance(_plain(text), str):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writer.add_representer(str, _write_text)


def dump(tree: Any) -> str:
    """Return the tree as one document in block style."""
    text: str = yaml.dump(
        tree, Dumper=_Writer, sort_keys=False, allow_unicode=True, default_flow_style=False, width=_WIDTH
    )
    return text
