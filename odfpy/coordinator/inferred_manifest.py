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


def manifest_text(name: str, found: Findings) -> str:
    """Return a commented manifest, which users are expected to review.

    Args:
        name: name of the dataset.
        found: the findings.
    """
    return "\n".join(line.rstrip() for line in _lines(name, found)) + "\n"


def _lines(name: str, found: Findings) -> Iterator[str]:
    yield from _comment("", f"Inferred from {_seen(found)}. Read it, change what is wrong, then run `odf add`.")
    for remark in found.remarks:
        yield from _comment("", f"Not certain: {remark}.")
    yield from ("kind: DatasetSnapshot", "version: 1", "content:")
    yield f"  name: {_scalar(name)}"
    yield from ("  kind: Root", "  metadata:")
    yield from _vocabulary(found)
    yield from ("    - kind: SetPollingSource", "      fetch:")
    yield from _fetch(found)
    yield from _prepare(found)
    yield from ("      read:", *_read(found))
    yield from ("      merge:", *_merge(found))


def _seen(found: Findings) -> str:
    """Describe the sample that the findings are based on."""
    files = len(found.sample.names)
    return f"{_rows(found)} of {found.sample.name}" + (f", the first of {files} files" if files > 1 else "")


def _rows(found: Findings) -> str:
    """Describe the rows that were examined."""
    rows = f"{found.rows} row" + "s" * (found.rows != 1)
    return f"the first {rows}" if not found.is_whole else f"all {rows}" if found.rows > 1 else f"the {rows}"


# --- Parts -----------------------------------------------------------------------------------------------------------


def _vocabulary(found: Findings) -> Iterator[str]:
    if found.vocabulary is None:
        return
    names = to_tree(found.vocabulary)
    columns = {column.name for column in found.columns}
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


def _fetch(found: Findings) -> Iterator[str]:
    tree = to_tagged_tree(found.fetch)
    event_time = tree.pop("eventTime", None)
    for key, value in tree.items():
        if key == "path":
            yield from _comment("        ", "Each file is ingested once, in the order of names.")
        yield f"        {key}: {_flow(value)}"
    if event_time is not None:
        yield from _comment("        ", f"{_no_event_time(found)} Rows get {_time_of(found)}.")
        yield "        eventTime:"
        yield from (f"          {key}: {_flow(value)}" for key, value in event_time.items())


def _no_event_time(found: Findings) -> str:
    others = found.event_time.others
    if not others:
        return "No column has dates or times that could be the event time."
    return f"No event time was chosen; columns with dates or times: {_names(others)} (SetVocab, eventTimeColumn)."


def _time_of(found: Findings) -> str:
    source = found.fetch.event_time
    kind = None if source is None else source.KIND
    if kind == "FromPath":
        return "the time in the name of their file"
    of_server = not isinstance(found.fetch, FetchFilesGlob) and not found.fetch.url.startswith("file:")
    return "the time when their file was last modified" + (", or fetched if the server does not tell" * of_server)


def _prepare(found: Findings) -> Iterator[str]:
    if found.prepare:
        yield "      prepare:"
        yield from (f"        - {_flow(to_tagged_tree(step))}" for step in found.prepare)


def _read(found: Findings) -> Iterator[str]:
    tree = to_tagged_tree(replace(found.read, schema=None))
    if tree.get("separator") == "\t":
        tree["separator"] = "\\t"
    if tree.get("separator") == ",":
        del tree["separator"]
    for key, value in tree.items():
        note = _NOTES.get(key)
        yield f"        {key}: {_flow(value)}" + (f"  # {note}" if note else "")
    for one in found.left_out:
        yield from _comment("        ", f"Left out {one.name!r}: {one.reason}.")
    yield "        schema:"
    yield from _comment("          ", "A type that is not an Option is required: its values are never null.")
    yield "          fields:"
    for column in found.columns:
        if column.origin is not None:
            yield from _comment("            ", f"called {column.origin!r} in the file")
        if column.remark is not None:
            yield from _comment("            ", column.remark)
        yield f"            - {_field(column)}" + _role(column, found)


_NOTES: Final = {
    "encoding": "see above",
    "nullValue": "stands for null",
    "dateFormat": "how all dates of the file are written",
    "timestampFormat": "how all times of the file are written",
}


def _role(column: Column, found: Findings) -> str:
    chosen = found.event_time.column
    if chosen is None or chosen.name != column.name:
        return ""
    others = found.event_time.others
    nulls = f"; null in {found.event_time.nulls} of {_rows(found)}" if found.event_time.nulls else ""
    return "  # the event time" + nulls + (f"; others that could be: {_spelled(_names(others))}" if others else "")


def _merge(found: Findings) -> Iterator[str]:
    yield from _comment("        ", f"{found.choice.strategy.KIND}: {found.choice.reason}.")
    if found.keys:
        keys = "; ".join(_names(key.columns, " + ") for key in found.keys)
        yield from _comment("        ", f"Without nulls and unique in {_rows(found)}: {keys}.")
    elif found.rows:
        yield from _comment("        ", "No column, and no two of them, are without nulls and unique in the rows seen.")
    yield from (f"        {line}" for line in _strategy(found.choice.strategy))
    for other in found.others:
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
    return "".join(one if one.isprintable() else _code(ord(one)) for one in text)


def _code(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def findings_tree(found: Findings) -> dict[str, Any]:
    """Return the findings as a tree, for programs.

    Args:
        found: the findings.
    """
    chosen = found.event_time.column
    return {
        "input": found.sample.name,
        "inputs": max(1, len(found.sample.names)),
        "rows": found.rows,
        "isWhole": found.is_whole,
        "fetch": to_tagged_tree(found.fetch),
        "prepare": [to_tagged_tree(step) for step in found.prepare],
        "read": to_tagged_tree(replace(found.read, schema=None)),
        "columns": [
            {"name": column.name, "type": type_text(column.type), "origin": column.origin, "remark": column.remark}
            for column in found.columns
        ],
        "leftOut": [{"name": one.name, "reason": one.reason} for one in found.left_out],
        "eventTime": {
            "column": None if chosen is None else chosen.name,
            "others": list(found.event_time.others),
            "nulls": found.event_time.nulls,
        },
        "keys": [list(key.columns) for key in found.keys],
        "merge": {**to_tagged_tree(found.choice.strategy), "reason": found.choice.reason},
        "others": [{**to_tagged_tree(other.strategy), "reason": other.reason} for other in found.others],
        "vocabulary": None if found.vocabulary is None else to_tree(found.vocabulary),
        "remarks": list(found.remarks),
    }
