"""Text of an inferred manifest: the findings, with comments on reasons and alternatives."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from odfpy.chain.sources import FetchFilesGlob, MergeAppend, MergeStrategy
from odfpy.codec.tree import to_tagged_tree, to_tree
from odfpy.data.schemas.type_text import type_text

if TYPE_CHECKING:
    from odfpy.ingest.inference.columns import Column
    from odfpy.ingest.inference.infer import Findings

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})  # special in some YAML version
_UNBROKEN: Final = re.compile(r"(?:`[^`]*`|[^ ])+")
_MAX_LENGTH: Final = 110  # maximum length of a comment line, in characters
_MAX_NAMED: Final = 10


def manifest_text(name: str, findings: Findings) -> str:
    """Return a commented manifest, which users are expected to review.

    Args:
        name: name of the dataset.
        findings: what was inferred.
    """
    return "\n".join(line.rstrip() for line in _lines(name, findings)) + "\n"


def _lines(name: str, findings: Findings) -> Iterator[str]:
    yield from _comment("", f"Inferred from {_seen(findings)}. Read it, change what is wrong, then run `odf add`.")
    for remark in findings.remarks:
        yield from _comment("", f"Not certain: {remark}.")
    yield from ("kind: DatasetSnapshot", "version: 1", "content:")
    yield f"  name: {_scalar(name)}"
    yield from ("  kind: Root", "  metadata:")
    yield from _vocabulary(findings)
    yield from ("    - kind: SetPollingSource", "      fetch:")
    yield from _fetch(findings)
    yield from _prepare(findings)
    yield from ("      read:", *_read(findings))
    yield from ("      merge:", *_merge(findings))


def _seen(findings: Findings) -> str:
    """Describe the sample that the findings are based on."""
    files = len(findings.sample.names)
    return f"{_rows(findings)} of {findings.sample.name}" + (f", the first of {files} files" if files > 1 else "")


def _rows(findings: Findings) -> str:
    """Describe the rows that were examined."""
    rows = f"{findings.rows} row" + "s" * (findings.rows != 1)
    return f"the first {rows}" if not findings.is_whole else f"all {rows}" if findings.rows > 1 else f"the {rows}"


# --- Parts -----------------------------------------------------------------------------------------------------------


def _vocabulary(findings: Findings) -> Iterator[str]:
    if findings.vocabulary is None:
        return
    names = to_tree(findings.vocabulary)
    columns = {column.name for column in findings.columns}
    yield "    - kind: SetVocab"
    if not columns.issuperset(names.values()):
        yield from _comment("      ", "Columns of the data have the names of system columns, which get others.")
        yield from (f"      {key}: {_scalar(value)}" for key, value in names.items() if value not in columns)
    for key, value in names.items():
        if value in columns:
            yield from _comment(
                "      ", "The column that says when something happened; the data does not call it event_time."
            )
            yield f"      {key}: {_scalar(value)}"


def _fetch(findings: Findings) -> Iterator[str]:
    tree = to_tagged_tree(findings.fetch)
    event_time = tree.pop("eventTime", None)
    for key, value in tree.items():
        if key == "path":
            yield from _comment("        ", "Each file is ingested once, in the order of names.")
        yield f"        {key}: {_flow(value)}"
    if event_time is not None:
        yield from _comment("        ", f"{_no_event_time(findings)} Rows get {_time_of(findings)}.")
        yield "        eventTime:"
        yield from (f"          {key}: {_flow(value)}" for key, value in event_time.items())


def _no_event_time(findings: Findings) -> str:
    others = findings.event_time.others
    if not others:
        return "No column has dates or times that could be the event time."
    return f"No event time was chosen; columns with dates or times: {_names(others)} (SetVocab, eventTimeColumn)."


def _time_of(findings: Findings) -> str:
    source = findings.fetch.event_time
    kind = None if source is None else source.KIND
    if kind == "FromPath":
        return "the time in the name of their file"
    of_server = not isinstance(findings.fetch, FetchFilesGlob) and not findings.fetch.url.startswith("file:")
    return "the time when their file was last modified" + (", or fetched if the server does not tell" * of_server)


def _prepare(findings: Findings) -> Iterator[str]:
    if findings.prepare:
        yield "      prepare:"
        yield from (f"        - {_flow(to_tagged_tree(step))}" for step in findings.prepare)


def _read(findings: Findings) -> Iterator[str]:
    tree = to_tagged_tree(replace(findings.read, schema=None))
    if tree.get("separator") == "\t":
        tree["separator"] = "\\t"
    if tree.get("separator") == ",":
        del tree["separator"]
    for key, value in tree.items():
        note = _NOTES.get(key)
        yield f"        {key}: {_flow(value)}" + (f"  # {note}" if note else "")
    for field in findings.left_out:
        yield from _comment("        ", f"Left out {field.name!r}: {field.reason}.")
    yield "        schema:"
    yield from _comment("          ", "A type that is not an Option is required: its values are never null.")
    yield "          fields:"
    for column in findings.columns:
        if column.origin is not None:
            yield from _comment("            ", f"called {column.origin!r} in the file")
        if column.remark is not None:
            yield from _comment("            ", column.remark)
        yield f"            - {_field(column)}" + _role(column, findings)


_NOTES: Final = {
    "encoding": "how the text of the file is encoded",
    "nullValue": "stands for null",
    "dateFormat": "how all dates of the file are written",
    "timestampFormat": "how all times of the file are written",
}


def _role(column: Column, findings: Findings) -> str:
    chosen = findings.event_time.column
    if chosen is None or chosen.name != column.name:
        return ""
    others = findings.event_time.others
    nulls = f"; null in {findings.event_time.nulls} of {_rows(findings)}" if findings.event_time.nulls else ""
    return "  # the event time" + nulls + (f"; others that could be: {_spelled(_names(others))}" if others else "")


def _merge(findings: Findings) -> Iterator[str]:
    yield from _comment("        ", f"{findings.choice.strategy.KIND}: {findings.choice.reason}.")
    if findings.keys:
        keys = "; ".join(_names(key.columns, " + ") for key in findings.keys)
        yield from _comment("        ", f"Without nulls and unique in {_rows(findings)}: {keys}.")
    elif findings.rows:
        yield from _comment("        ", "No column, and no two of them, are without nulls and unique in the rows seen.")
    yield from (f"        {line}" for line in _strategy(findings.choice.strategy))
    for other in findings.others:
        yield from _comment("        ", f"If {other.reason}:")
        yield from (f"        # {line}" for line in _strategy(other.strategy))


def _strategy(strategy: MergeStrategy) -> Iterator[str]:
    yield f"kind: {strategy.KIND}"
    if not isinstance(strategy, MergeAppend):
        yield f"primaryKey: {_flow(list(strategy.primary_key))}"


# --- YAML ------------------------------------------------------------------------------------------------------------


def _names(names: Sequence[str], between: str = ", ") -> str:
    more = len(names) - _MAX_NAMED
    return between.join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _comment(indent: str, text: str) -> Iterator[str]:
    """Yield the lines of a comment. Special characters are escaped, so that values from the data cannot end it."""
    line = ""
    for word in _UNBROKEN.findall(_spelled(text)):
        if line and len(indent) + len(line) + len(word) > _MAX_LENGTH:
            yield f"{indent}# {line}"
            line = ""
        line = f"{line} {word}" if line else word
    yield f"{indent}# {line}"


def _field(column: Column) -> str:
    return _flow({"name": column.name, "type": to_tree(column.field)["type"]})


def _flow(tree: Any) -> str:
    """Return a tree as YAML in flow style, on one line; a type without parameters is written as its name."""
    if isinstance(tree, dict):
        if tree.keys() == {"kind"}:
            return _scalar(tree["kind"])
        return "{" + ", ".join(f"{key}: {_flow(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(_flow, tree)) + "]"
    return _scalar(tree) if isinstance(tree, str) else json.dumps(tree)


def _scalar(text: str) -> str:
    """Return a YAML scalar, quoted if YAML could read the plain text as another type."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + _spelled(re.sub(r'(["\\])', r"\\\1", text)) + '"'


def _spelled(text: str) -> str:
    """Escape non-printable characters as in quoted YAML scalars, so that the text stays on one line."""
    return "".join(character if character.isprintable() else _code(ord(character)) for character in text)


def _code(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def findings_tree(findings: Findings) -> dict[str, Any]:
    """Return the findings as a tree, for programs.

    Args:
        findings: what was inferred.
    """
    chosen = findings.event_time.column
    return {
        "input": findings.sample.name,
        "inputs": max(1, len(findings.sample.names)),
        "rows": findings.rows,
        "isWhole": findings.is_whole,
        "fetch": to_tagged_tree(findings.fetch),
        "prepare": [to_tagged_tree(step) for step in findings.prepare],
        "read": to_tagged_tree(replace(findings.read, schema=None)),
        "columns": [
            {"name": column.name, "type": type_text(column.type), "origin": column.origin, "remark": column.remark}
            for column in findings.columns
        ],
        "leftOut": [{"name": field.name, "reason": field.reason} for field in findings.left_out],
        "eventTime": {
            "column": None if chosen is None else chosen.name,
            "others": list(findings.event_time.others),
            "nulls": findings.event_time.nulls,
        },
        "keys": [list(key.columns) for key in findings.keys],
        "merge": {**to_tagged_tree(findings.choice.strategy), "reason": findings.choice.reason},
        "others": [{**to_tagged_tree(other.strategy), "reason": other.reason} for other in findings.others],
        "vocabulary": None if findings.vocabulary is None else to_tree(findings.vocabulary),
        "remarks": list(findings.remarks),
    }
