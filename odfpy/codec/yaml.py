"""YAML text to and from plain trees, by the rules of YAML 1.2 (dates stay text, `yes` is not a truth value).

The library is imported where there is something to read or to write: a short command often has neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odfpy.errors import MalformedManifest

if TYPE_CHECKING:
    from odfpy.codec.yaml_trees import Document


def load_documents(text: str, source: str | None = None) -> list[Document]:
    """Return all documents of a text but empty ones, in time proportional to the text, whose length is limited.

    Args:
        text: YAML.
        source: where the text is from, for messages.

    Raises:
        MalformedManifest: not YAML; the message names the line.
        TooManyNodes: more than a manifest could need.
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
    """Return whether nothing but comments stands there, as in the settings of a new workspace.

    What is not printable may break lines, or not be allowed: that is for the library to say.
    """
    return all((not line or line[0] == "#") and line.isprintable() for line in text.split("\n"))
