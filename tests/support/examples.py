"""The number of examples of an expensive property: few by default, many before a release."""

from __future__ import annotations

from hypothesis import settings


def examples(default: int, thorough: int) -> int:
    """Return how many examples a property gets in the profile that runs.

    Args:
        default: for `make test`. What a fault that a change brings would need to show, mostly.
        thorough: for `make test-all`.
    """
    return thorough if settings.get_current_profile_name() == "thorough" else default
