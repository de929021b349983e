"""Password input: from the terminal or standard input, never from the command line."""

from __future__ import annotations

import sys

from odfpy.cli.stdin import line_of_stdin
from odfpy.errors import UsageError


def typed_password(prompt: str, *, again: bool = False) -> str:
    """Ask for a password on the terminal.

    Args:
        prompt: the prompt.
        again: whether to ask twice, as for a new password.

    Raises:
        UsageError: there is no terminal, or the two passwords differ.
    """
    if not sys.stdin.isatty():
        raise UsageError("No terminal to read the password from", hint="--stdin reads it from standard input.")
    from getpass import getpass

    typed = getpass(prompt, sys.stderr)
    if again and getpass("Repeat it: ", sys.stderr) != typed:
        raise UsageError("The passwords differ", hint="Nothing was changed. Try again.")
    return typed


def piped_password() -> str:
    """Read the first line of standard input.

    Raises:
        UsageError: there is no line, or it is not text.
    """
    line = line_of_stdin()
    if not line:
        raise UsageError("No password in standard input", hint="Its first line is the password.")
    return line
