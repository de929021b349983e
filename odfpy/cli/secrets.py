"""Command lines without what nobody else may see, for what people send to others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from odfpy.settings.sections import SETTINGS

_USER: Final = re.compile(r"://[^/@]*@")
_OPTIONS: Final = ("--token", "--secret", "--password")


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command with "***" for tokens, values of secret settings, and users of URLs."""
    secret = {key for key, setting in SETTINGS.items() if setting.meaning.is_secret}
    shown = []
    for before, argument in zip(("", *arguments), arguments, strict=False):
        name, is_joined, _ = argument.partition("=")
        if before in _OPTIONS or before in secret:
            shown.append("***")
        elif name in _OPTIONS and is_joined:
            shown.append(f"{name}=***")
        else:
            shown.append(_USER.sub("://", argument))
    return shown
