"""Small YAML files of a workspace, each a manifest with `kind`, `version` and `content`."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from odfpy.codec.tree import Path as Place
from odfpy.codec.tree import TreeError, from_tree, to_tree
from odfpy.codec.yaml import dump, load_documents
from odfpy.errors import MalformedManifest, OdfError
from odfpy.files import read_regular, replace_file

VERSION = 1

_NO_FILE: Final = (errno.EINVAL, errno.EISDIR)  # a pipe or folder: see `open_regular`

T = TypeVar("T")


def load_document(
    path: Path, kind: str, type_: type[T], check: Callable[[T, Place], None] = lambda _content, _place: None
) -> T | None:
    """Return the content of a file, None if it does not exist.

    Args:
        path: path of the file.
        kind: the `kind` of the manifest.
        type_: class of the content.
        check: validates the content, and raises `TreeError` with the path of an error.

    Raises:
        MalformedManifest: the file is not a manifest of the kind; the message names file and line.
        OdfError: the file cannot be read, or is not a regular file.
    """
    try:
        text = read_regular(path).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise MalformedManifest(f"{path}: it is not UTF-8", hint=_HINT) from error
    except OSError as error:
        hint = _HINT if error.errno in _NO_FILE else None
        raise OdfError(f"Cannot read {path}: {error.strerror}", hint=hint) from error
    try:
        documents = load_documents(text, str(path))
    except MalformedManifest as error:
        raise error.with_message(error.message, hint=error.hint or _HINT) from error
    if len(documents) != 1:
        raise MalformedManifest(f"{path}: one document expected, found {len(documents)}", hint=_HINT)
    try:
        content: T = from_tree(type_, _content(documents[0].tree, kind), ("content",))
        check(content, ("content",))
    except TreeError as error:
        line = documents[0].line_of(error.path)
        raise MalformedManifest(f"{path}, line {line}: {error.message}", hint=error.hint or _HINT) from error
    return content


def save_document(path: Path, kind: str, content: Any) -> None:
    """Write a file atomically.

    Args:
        path: path of the file.
        kind: the `kind` of the manifest.
        content: a value of the class for the kind.
    """
    text = dump({"kind": kind, "version": VERSION, "content": to_tree(content)})
    replace_file(path, text.encode(), mode=0o600)  # URLs stored by earlier releases may contain passwords


def _content(tree: Any, kind: str) -> Any:
    if not isinstance(tree, dict) or set(tree) != {"kind", "version", "content"}:
        raise TreeError((), "expected `kind`, `version` and `content`")
    if tree["kind"] != kind:
        raise TreeError(("kind",), f"expected {kind}, found {tree['kind']!r}")
    if tree["version"] != VERSION:
        raise TreeError(("version",), f"expected {VERSION}, found {tree['version']!r}")
    return tree["content"]


_HINT = "Correct the file, or remove it and set it up again."
