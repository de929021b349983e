"""The one form of a JSON value that is signed and hashed (RFC 8785, JSON Canonicalization Scheme)."""

from __future__ import annotations

from typing import Any

from odfpy.errors import MalformedData


def canonical_json(tree: Any) -> bytes:
    """Return a tree of dictionaries, lists, texts, numbers, booleans and None as canonical JSON in UTF-8.

    Raises:
        MalformedData: something in it has no canonical form, such as a whole number beyond 2^53 or a lone surrogate.
    """
    import rfc8785  # only what is signed pays for it

    try:
        return rfc8785.dumps(tree)
    except rfc8785.CanonicalizationError as error:
        raise MalformedData(f"No canonical JSON: {error}") from error
