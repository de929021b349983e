"""The user who gives a command."""

from __future__ import annotations

import getpass


def user_name() -> str | None:
    """Return their name; None where their number has none, as in a container that runs under any."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
