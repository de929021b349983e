r"""Patterns that extract metadata from a path: `EXTRACT~FORMAT`, as in datalake.

`.*job-(?P<job_id>[0-9]+).log$~job{job_id}` translates `/var/log/jobs/job-1234.log` to `job1234`.

EXTRACT is an RE2 regular expression, which takes time proportional to the path, since patterns and paths may come from
different people. So there are no look-around assertions and no back-references; `\z` is the end of the path instead of
`\Z`, `\d` and `\w` are ASCII, and a repetition count is at most 1000. A group that does not participate in the match is
empty.
"""

from __future__ import annotations

import re
from typing import Final

from odfpy.archive.naming.format_text import FormatText
from odfpy.archive.record import reasons_against_path
from odfpy.errors import UsageError

MAX_LENGTH: Final = 1000
"""Maximum characters of a regular expression."""

_WHOLE: Final = "_odfpy_whole"
_TOKEN: Final = re.compile(
    r"""\\Q.*?(?:\\E|\Z)                               # what is literal,
      | \\.                                            # also a single character,
      | \[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]      # or in a class; in first place, `]` is one like others
      | \((?!\?)                                       # a group without a name
    """,
    re.VERBOSE | re.DOTALL,
)
"""Tokens of a regular expression: unnamed groups, and everything that might look like one. Arrow requires names for all
groups, and nothing refers to a group by its number."""

_SYNTAX: Final = "It is a regular expression for RE2: https://github.com/google/re2/wiki/Syntax"


class TranslationFailed(UsageError, code="E860"):
    """A translator pattern is invalid, or does not match a path."""


class NoMatch(TranslationFailed, code="E861"):
    """A path does not match a translator pattern."""


class Translator:
    """A pattern that translates a path to a word.

    >>> Translator(r".*job-(?P<job_id>[0-9]+).log$~job{job_id}").translate("/var/log/jobs/job-1234.log")
    'job1234'
    """

    def __init__(self, expression: str) -> None:
        """
        Args:
            expression: `EXTRACT~FORMAT`.

        Raises:
            TranslationFailed: the expression is invalid.
        """
        self.expression = expression
        extract, *formats = expression.split("~")
        if len(formats) != 1:
            raise TranslationFailed(
                f"{expression!r} has {len(formats)} times '~', and needs it once",
                hint=r"It separates a regular expression and a format: '.*job-(?P<id>[0-9]+)\.log$~job{id}'.",
            )
        self._extract, groups = _compiled(extract)
        try:
            self._format = FormatText(formats[0])
            self._format.require(groups, f"The expression has {', '.join(groups) or 'no groups with names'}.")
        except UsageError as error:
            raise TranslationFailed(error.message, hint=error.hint) from None

    def translate(self, path: str) -> str:
        """Translate a path.

        Args:
            path: absolute path; the regular expression is matched from its beginning.

        Raises:
            NoMatch: the path does not match.
            TranslationFailed: the path is not absolute.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        reasons = list(reasons_against_path(path))
        if reasons:
            raise TranslationFailed(reasons[0])
        groups = pc.extract_regex(pa.array([path]), self._extract)[0].as_py()
        if groups is None:
            extract = self.expression.partition("~")[0]
            raise NoMatch(
                f"{path} does not match {extract!r}", hint="A pattern is matched from the first character on."
            )
        return self._format.fill(groups)


def _compiled(extract: str) -> tuple[str, list[str]]:
    """Return the expression in Arrow's syntax, and the names of its groups."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(extract) > MAX_LENGTH:
        raise TranslationFailed(f"A regular expression has {len(extract)} characters, {MAX_LENGTH} are allowed")
    plain = _TOKEN.sub(lambda match: "(?:" if match.group() == "(" else match.group(), extract)
    nothing = pa.array([], pa.string())
    try:
        # Compile it alone first: `a)(b` would be valid inside a group, and errors should show the original text.
        pc.extract_regex(nothing, plain)
        expression = rf"\A(?P<{_WHOLE}>{plain})"
        names = [field.name for field in pc.extract_regex(nothing, expression).type]
    except (pa.ArrowException, UnicodeEncodeError) as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise TranslationFailed(f"{extract!r} is not a regular expression: {reason}", hint=_SYNTAX) from None
    names.remove(_WHOLE)
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if twice:
        raise TranslationFailed(f"{extract!r} has two groups {twice[0]!r}", hint="Give each a name of its own.")
    return expression, names
