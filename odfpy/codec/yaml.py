"""Conversion between YAML and trees, by the rules of YAML 1.2 (dates are text, `yes` is not a truth value).

The library is only imported if there is something to read or write: many short commands do neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odfpy.errors import MalformedManifest

if TYPE_CHECKING:
    from odfpy.codec.yaml_trees import Document


def load_documents(text: str, source: str | None = None) -> list[Document]:
    """Return all non-empty documents of a text, in time linear in its length, which is limited.

    Args:
        text: the YAML text.
        source: origin of the text, for messages.

    Raises:
        MalformedManifest: the text is not YAML; the message names the line.
        TooManyNodes: the text has more nodes than any manifest needs.
    """
    if _is_comment(text):
        return []
    from odfpy.codec.yaml_trees import load

    try:
        return load(text)
    except MalformedManifest as error:
        if source is None:
            raise
        at_line = error.message.startswith("Line ")
        where = f"{source}, l{error.message[1:]}" if at_line else f"{source}: {error.message}"
        raise error.with_message(where, hint=error.hint) from error


def dump(tree: Any) -> str:
    """Return the tree as one document in block style."""
    from odfpy.codec.yaml_trees import dump

    return dump(tree)


def _is_comment(text: str) -> bool:
    """Return whether a text only contains comments, like the settings of a new workspace.

    Unprintable characters may break lines or be invalid: the library decides about them.
    """
    return all((not line or line[0] == "#") and line.isprintable() for line in text.split("\n"))
