"""The number of examples of an expensive property: few by default, many before a release."""

from __future__ import annotations

from hypothesis import settings

_FEW = 50
"""Examples of a property that sets no number, in the default profile; `thorough` has more."""


def examples(default: int, thorough: int) -> int:
    """Return how many examples a property gets in the profile that runs.

    Args:
        default: for `make test`: as many as a fault that a change brings would need to show, mostly.
        thorough: for `make test-all`.
    """
    return thorough if settings().max_examples > _FEW else default
