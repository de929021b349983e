"""Templates in the texts of fetch steps: `${{ env.NAME || 'default' }}`.

Alternatives are tried from left to right: an environment variable, a text in single quotes, or a number. The value of a
variable is used unchanged, never as a template itself. Values are often secrets, so errors and progress show the text
with its templates, never with their values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from odfpy.errors import FetchError, InvalidValue

_TEMPLATE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_ALTERNATIVE = re.compile(
    r"\s*(?:env\.(?P<name>[A-Za-z0-9_-]+)|'(?P<text>[^']*)'|(?P<number>-?[0-9]+(?:\.[0-9]+)?))\s*(?:\|\||\Z)"
)
_VARIABLE = re.compile(r"\benv\.([A-Za-z0-9_-]+)")
_USER = re.compile(r"(?<=//)[^/?#@]*@")


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Return the text with all templates replaced.

    Raises:
        FetchError: a variable is not set and has no default; the message names it.
        InvalidValue: a template is not of the form above.
    """
    return _TEMPLATE.sub(lambda match: _value(match[1], environment), text)


def variables_of(text: str) -> list[str]:
    """Return the names of the environment variables in a text's templates, in order."""
    return [name for template in _TEMPLATE.findall(text) for name in _VARIABLE.findall(template)]


def filled_in(text: str, value: str) -> str:
    """Replace each template by the same value."""
    return _TEMPLATE.sub(lambda _: value, text)


def without_secrets(url: str) -> str:
    """Return a URL for display, with or without templates: without user, password and query."""
    templates = _TEMPLATE.findall(url)
    numbers = iter(range(len(templates)))
    masked = _TEMPLATE.sub(lambda _: f"\0{next(numbers)}\0", url)
    shown, *query = re.split(r"[?#]", _USER.sub("", masked), maxsplit=1)
    plain = re.sub("\0([0-9]+)\0", lambda match: "${{" + templates[int(match[1])] + "}}", shown)
    return plain + ("?..." if query else "")


def _value(template: str, environment: Mapping[str, str]) -> str:
    names: list[str] = []
    at = 0
    while at < len(template) or not names:
        alternative = _ALTERNATIVE.match(template, at)
        if alternative is None:
            raise InvalidValue(
                f"Template ${{{{{template}}}}} is not valid", hint="Write it as ${{ env.NAME || 'default' }}."
            )
        name, text, number = alternative.group("name", "text", "number")
        if name is None:
            return str(text if text is not None else number)
        if name in environment:
            return environment[name]
        names.append(name)
        at = alternative.end()
    raise FetchError(
        f"The environment variable {' or '.join(names)} is not set, but the source needs it",
        hint=f"Set it, or give a default in the manifest: ${{{{ env.{names[0]} || '...' }}}}.",
    )
