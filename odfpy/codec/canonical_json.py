"""The canonical form of JSON, which is signed and hashed (RFC 8785, JSON Canonicalization Scheme)."""

from __future__ import annotations

from typing import Any

from odfpy.errors import MalformedData


def canonical_json(tree: Any) -> bytes:
    """Return a tree of dictionaries, lists, texts, numbers, booleans and None as canonical JSON in UTF-8.

    Raises:
        MalformedData: a value has no canonical form, such as an integer beyond 2^53 or an unpaired surrogate.
    """
    import rfc8785  # only needed for signatures

    try:
        return rfc8785.dumps(tree)
    except rfc8785.CanonicalizationError as error:
        raise MalformedData(f"No canonical JSON: {error}") from error
