"""Conversion of DataFusion's errors. It reports positions only for syntax errors; others are searched in the text.

A message names a column, a function, a value or an operator. If the query contains it once, that is the position.
Otherwise each occurrence is changed in turn, and the query planned again: the right one changes the message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import InvalidQuery, NondeterministicQuery, OdfError, did_you_mean

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

Retry = Callable[[int, int, str], object]
"""Plans a query with the text between two positions replaced; nothing is run."""

REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys(("now", "current_timestamp", "current_date", "current_time", "today"), "reads the clock"),
    **dict.fromkeys(("random", "rand", "uuid"), "is random"),
    **dict.fromkeys(("input_file_name", "file_row_index"), "depends on how the data is stored in files"),
    "version": "depends on the environment of the engine",
}
"""Functions removed from the session; a test compares them with DataFusion's own description of its functions."""

_WITHOUT_PARENTHESES: Final = ("current_timestamp", "current_date", "current_time")
_NAME: Final = r'(?:"(?:[^"]|"")*"|\w+)'
_PATH: Final = rf"{_NAME}(?:\.{_NAME})*"
_FUNCTION: Final = re.compile(r"Invalid function '([^']+)'")
_FIELD: Final = re.compile(rf"No field named ({_PATH})")
_VALID: Final = re.compile(r"Valid fields are (.*)\.", re.DOTALL)
_SUGGESTED: Final = re.compile(r"Did you mean '(.*?)'\?")
_CANDIDATES: Final = re.compile(r"Candidate functions:\s*(.*)", re.DOTALL)
_PARSER_PLACE: Final = re.compile(r"(?: at)? Line: (\d+), Column: (\d+)")
_PREFIX: Final = re.compile(
    r"^(?:(?:DataFusion|SQL|Schema|Arrow|Execution|Internal|External|Cast|Parser|Compute) error: "
    r"|Error during planning: |This feature is not implemented: )+"
)
_PARSER_ERROR: Final = re.compile(r'^(?:ParserError|TokenizerError)\("(.*)"\)$', re.DOTALL)
_OVER: Final = frozenset(
    "row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value".split()  # noqa: SIM905
)
"""Functions that exist only over windows."""

_MAX_TRIED: Final = 20
_MAX_LENGTH: Final = 2000
"""Maximum characters of a DataFusion message, which may contain a whole expression."""
_TYPES: Final = "Convert both to one type with CAST(... AS type)."
_A_CAST: Final = "Write a value of that type, or try_cast(... AS type), which gives NULL instead."
_UNGROUPED: Final = "`{dotted}` is neither in GROUP BY nor in an aggregate function"
_TO_GROUP: Final = "Add it to GROUP BY, or aggregate it, for example with max(...)."
_SIBLINGS: Final = {
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "%": "*",
    "=": "<>",
    "<>": "=",
    "!=": "=",
    "<": ">=",
    ">": "<=",
}
"""Operators that bind as strongly."""


@dataclass(frozen=True, slots=True)
class _Mistake:
    """A kind of message.

    Attributes:
        message: pattern of the message; the name of its group tells what to search for in the query: `column`, `dotted`
            (the same without quotes), `function`, `operator`, `text` (in quotes), `number`, `word`.
        says: replacement message, with the groups of the pattern; None for the original one.
        hint: how to fix it.
        otherwise: words to search for if the query does not contain it.
    """

    message: re.Pattern[str]
    says: str | None = None
    hint: str | None = None
    otherwise: tuple[str, ...] = ()


def _mistake(message: str, says: str | None = None, hint: str | None = None, *otherwise: str) -> _Mistake:
    return _Mistake(re.compile(message, re.DOTALL), says, hint, otherwise)


_MISTAKES: Final = (
    _mistake(rf"Ambiguous reference to \w+ field (?P<column>{_PATH})", None, "Qualify it with the alias of a table."),
    _mistake(rf"No field named (?P<column>{_PATH})", "No field named {column}"),
    _mistake(rf"Invalid qualifier (?P<column>{_PATH})", None, "Name a table of FROM by its name or alias."),
    _mistake(r"(?P<function>COUNT) DISTINCT with multiple", None, "Count the distinct values of one column."),
    _mistake(r"Invalid function '(?P<function>[^']+)'", "There is no function `{function}`"),
    _mistake(
        r"table function '(?P<function>[^']+)' not found",
        "There is no table function `{function}`",
        "Datasets are tables by their names; files cannot be read by path.",
    ),
    _mistake(
        r"argument types '(?P<call>(?P<function>\w+)\(.*?\))'",
        "There is no function `{call}`",
        "Convert its arguments with CAST(... AS type).",
    ),
    _mistake(r"expression .* (?P<operator>[-+*/%&|]) .* to valid types", None, _TYPES),
    _mistake(r"type for (?:\w+ )*operation .* (?P<operator>[<>=!]+) ", None, _TYPES),
    _mistake(r"type for (?:\w+ )*operation .* (?P<word>[A-Z]+) ", None, _TYPES),
    _mistake(r"string type for string concat operation .* (?P<operator>\|\|)", None, _TYPES),
    _mistake(r"type to coerce .* in (?P<word>LIKE|ILIKE|SIMILAR)", None, _TYPES),
    _mistake(r"Cannot cast string '(?P<text>.*)' to value of", None, _A_CAST, "cast", "::"),
    _mistake(
        r"Error parsing timestamp from '(?P<text>.*?)'(?::| using)",
        None,
        "Write times as '2024-03-01T12:00:00Z'.",
        "cast",
        "::",
    ),
    _mistake(r'Invalid input syntax for type \w+: "(?P<text>.*)"', None, "Write intervals as '1 day', '2 hours'."),
    _mistake(r"Can't cast value (?P<number>\S+) to type", None, _A_CAST, "cast", "::"),
    _mistake(
        r'column "(?P<dotted>[^"]*)" must appear in the GROUP BY',
        _UNGROUPED,
        _TO_GROUP,
        "*",
    ),
    _mistake(
        r"(?P<word>HAVING) clause references: (?P<dotted>\S+) must appear",
        _UNGROUPED,
        _TO_GROUP,
    ),
    _mistake(r"(?:Expected|^)\s*(?P<word>LIMIT|OFFSET)", None, "Write a whole number, at least 0."),
    _mistake(r"not allowed in the (?P<word>\w+) clause", None, None),
    _mistake(
        r"(?P<word>UNION|INTERSECT|EXCEPT) queries have different", None, "Select the same number of columns in each."
    ),
    _mistake(
        r"non-boolean predicate '(?P<dotted>[^']*)' returning (?P<type>.*)",
        "`{dotted}` is not a condition, it is {type}",
        "Use a comparison.",
        "where",
        "having",
    ),
    _mistake(r"(?P<word>Join) condition must be boolean type", None, "Use a comparison."),
    _mistake(r"Unary operator '(?P<word>[^']+)'"),
    _mistake(r"'(?P<function>\w+)\(.*' is nested inside", None, "Compute the inner one in a subquery."),
    _mistake(
        r'expression "(?P<dotted>[^"]*)" at position \d+ and .* same name',
        "Two columns of the result are called `{dotted}`",
        "Rename one of them with AS.",
    ),
    _mistake(r"(?P<function>unnest)\(\) can only"),
    _mistake(r"Field (?P<column>\w+) not found in struct"),
    _mistake(r"(?:out of bounds, specified:|column with position) (?P<number>\d+)"),
    _mistake(r"Placeholder '[$:](?P<word>[^']+)'", None, "Write the value itself."),
    _mistake(r"window (?P<word>\w+) is not defined", None, "Write OVER (...), or WINDOW name AS (...) at the end."),
    _mistake(r"Unsupported SQL type (?P<word>\w+)"),
    _mistake(r"Date part '(?P<word>[^']+)' not supported"),
    _mistake(r"granularity: '(?P<text>[^']+)'"),
    _mistake(r"Month value '(?P<number>\d+)' is out of range"),
    _mistake(r"data length across (?P<word>values) list", None, "Write as many values in each row."),
    _mistake(
        r"subquery returned more than one row", None, "Take one of them, as max(...) or LIMIT 1 does.", "( select"
    ),
    _mistake(r"subquery should only return one column", None, "Select one column in it.", "( select"),
    _mistake(r"logical expression Wildcard", "`*` is not a value", "Name a column."),
    _mistake(
        r"RecursionLimitExceeded",
        "The query nests too deeply for DataFusion",
        "Write it in several steps or queries of WITH; IN (...) and concat_ws(...) take many values at once.",
    ),
    _mistake(
        r"ArrowMemoryError|alloc of size \d+ failed",
        "The query exceeded its memory limit",
        "Request less: fewer rows or columns, shorter lists and texts.",
    ),
    _mistake(r"memory allocation failed|Resources exhausted", None, "Request less: shorter lists and texts."),
    _mistake(r"Divide by zero", None, "Divide by NULLIF(..., 0), which gives NULL instead.", "/", "%"),
    _mistake(r"to (Nanosecond|Timestamp\(ns\))", None, "Write arrow_cast('...', 'Timestamp(Millisecond, None)')."),
    _mistake(r"Overflow happened on: \S+ (?P<operator>[-+*/%]) ", None, "CAST to a wider type first."),
)


@contextmanager
def datafusion_errors(source: SourceText, retry: Retry | None = None) -> Iterator[None]:
    """Convert all exceptions of DataFusion inside the block.

    Args:
        source: the query.
        retry: plans the query with a modified text, to find out which of several positions is meant.

    Raises:
        NondeterministicQuery: a function that is left out.
        InvalidQuery: any other error, since DataFusion does not tell more.
        KeyboardInterrupt: the person has interrupted it.
    """
    try:
        yield
    except OdfError:
        raise
    except SystemError as error:
        # An interruption during a callback from native code is raised in this form.
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise _translated(str(error), source, retry) from error
    except Exception as error:  # DataFusion's Python binding has no exceptions of its own
        raise _translated(str(error), source, retry) from error


def _translated(message: str, source: SourceText, retry: Retry | None) -> OdfError:
    left_out = _left_out(message)
    if left_out is not None:
        spans = list(_Places(source).words(left_out))
        where = source.at(*spans[0]) if spans else source.whole()
        hint = "Take the value from a column of an input."
        return NondeterministicQuery(f"`{left_out}` {REFUSED[left_out]}{where}", hint=hint)
    text = _PREFIX.sub("", message.rsplit("caused by", 1)[-1].strip())
    parser = _PARSER_ERROR.match(text)
    if parser:
        return _of_syntax(parser.group(1).replace('\\"', '"'), source)
    for mistake in _MISTAKES:
        match = mistake.message.search(text)
        if match is not None:
            spans = _Places(source).of(match, mistake.otherwise)
            span = _position_meant(spans, message, source, retry)
            sentence = _in_one_line(text) if mistake.says is None else mistake.says.format(**match.groupdict())
            where = source.at(*span) if span else source.whole()
            is_quoted = span is not None and source.text[span[0]] == '"'
            return InvalidQuery(f"{sentence}{where}", hint=_suggestion(text, is_quoted=is_quoted) or mistake.hint)
    return InvalidQuery(_in_one_line(text) + source.whole())


def _left_out(message: str) -> str | None:
    function, field = _FUNCTION.search(message), _FIELD.search(message)
    if function is not None and function.group(1) in REFUSED:
        return function.group(1)
    return field.group(1) if field is not None and field.group(1) in _WITHOUT_PARENTHESES else None


def _in_one_line(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _MAX_LENGTH else f"{line[:_MAX_LENGTH]}..."


def _of_syntax(text: str, source: SourceText) -> InvalidQuery:
    """Return the error of its parser, with the position; at the end of the text, the parser names none."""
    place = _PARSER_PLACE.search(text)
    end = len(source.text.rstrip())
    at = source.position(int(place.group(1)), int(place.group(2)) - 1) if place else end
    sentence = _in_one_line(_PARSER_PLACE.sub("", text)).replace("found: EOF", "found: the end")
    return InvalidQuery(f"{sentence}{source.at(at)}", hint=source.misspelt_before(at))


# --- Hints -----------------------------------------------------------------------------------------------------------


def _suggestion(text: str, *, is_quoted: bool) -> str | None:
    """Suggest a similar name for an unknown column or function."""
    if (field := _FIELD.search(text)) is not None:
        return _other_column(field.group(1), text, " Texts are written in single quotes." if is_quoted else "")
    if (function := _FUNCTION.search(text)) is not None:
        name, suggested = function.group(1), _SUGGESTED.search(text)
        if name.lower() in _OVER:
            return f"It is of windows: write {name}(...) OVER (ORDER BY ...)."
        others = "Only functions of DataFusion are available; functions of Spark SQL need the engine spark."
        return did_you_mean(name, [suggested.group(1)] if suggested else [], otherwise=others)
    candidates = _CANDIDATES.search(text)
    signatures = candidates.group(1).split("\n\t") if candidates else []
    known = [signature for signature in signatures if "(UserDefined)" not in signature]
    return f"There is {', '.join(signature.strip() for signature in known)}." if known else None


def _other_column(wanted: str, text: str, more: str) -> str | None:
    valid, suggested = _VALID.search(text), _SUGGESTED.search(text)
    known = re.findall(_PATH, valid.group(1)) if valid else [suggested.group(1)] if suggested else []
    name = _parts(wanted)[-1]
    if same := [column for column in known if _parts(column)[-1] == name and "." in wanted]:
        return f"Did you mean {' or '.join(same)}?"
    there_are = f"There are {', '.join(known)}.{more}" if known else more.strip() or None
    return did_you_mean(name, {_parts(column)[-1] for column in known}, otherwise=there_are)


def _parts(path: str) -> list[str]:
    """Return the names of a path, without quotes."""
    parts = re.findall(_NAME, path)
    return [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]


# --- Places ----------------------------------------------------------------------------------------------------------


class _Places:
    """The positions of names and functions in a query."""

    def __init__(self, source: SourceText) -> None:
        from sqlglot import TokenError, tokenize

        try:
            text = source.text.replace("`", '"')  # DataFusion accepts both as quotes of names
            self._tokens: Sequence[Token] = tokenize(text, dialect="postgres")
        except TokenError:
            self._tokens = ()

    def of(self, match: re.Match[str], otherwise: Sequence[str]) -> list[tuple[int, int]]:
        """Return the positions of a message's names; if there are none, of other words."""
        named = match.groupdict()
        by_kind: dict[str, Callable[[str], Iterator[tuple[int, int]]]] = {
            "column": lambda text: self._paths(_parts(text)),
            "dotted": lambda text: self._paths(text.split(".")),
            "function": self._functions,
            "text": lambda text: self._where(lambda token: _is(token, "STRING") and token.text == text),
            "number": lambda text: self._where(lambda token: _is(token, "NUMBER") and token.text == text),
            "operator": self.words,
            "word": self.words,
        }
        for kind, places in by_kind.items():
            if kind in named and (spans := list(places(named[kind]))):
                return spans
        if "function" in named:
            return list(self._functions())  # it has several names
        return [span for words in otherwise for span in self.words(*words.split())]

    def words(self, *words: str) -> Iterator[tuple[int, int]]:
        """Yield unquoted words or operators, in order."""
        for at in range(len(self._tokens) - len(words) + 1):
            tokens = self._tokens[at : at + len(words)]
            if all(
                token.text.lower() == word.lower() and not _is(token, "STRING", "IDENTIFIER")
                for token, word in zip(tokens, words, strict=True)
            ):
                yield tokens[0].start, tokens[-1].end + 1

    def _where(self, condition: Callable[[Any], bool]) -> Iterator[tuple[int, int]]:
        return ((token.start, token.end + 1) for token in self._tokens if condition(token))

    def _functions(self, name: str | None = None) -> Iterator[tuple[int, int]]:
        """Yield where a function is called, or any."""
        for token, after in zip(self._tokens, self._tokens[1:], strict=False):
            is_it = token.text.isidentifier() if name is None else token.text.lower() == name.lower()
            if is_it and _is(after, "L_PAREN"):
                yield token.start, token.end + 1

    def _paths(self, parts: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield a name with all that is before its dots; or else alone, since messages add the table."""
        for wanted in (parts, parts[-1:]):
            is_found = False
            for at in range(len(self._tokens) - 2 * len(wanted) + 2):
                tokens = self._tokens[at : at + 2 * len(wanted) - 1]
                names = [token.text for token in tokens[::2] if not _is(token, "STRING", "NUMBER")]
                if names == list(wanted) and all(_is(dot, "DOT") for dot in tokens[1::2]):
                    is_found = True
                    yield tokens[0].start, tokens[-1].end + 1
            if is_found:
                return


def _is(token: Any, *kinds: str) -> bool:
    return token.token_type.name in kinds


def _position_meant(
    spans: Sequence[tuple[int, int]], message: str, source: SourceText, retry: Retry | None
) -> tuple[int, int] | None:
    """Return the position that a message refers to: the only one, or the one whose replacement changes the message."""
    if len(spans) <= 1 or retry is None:
        return spans[0] if len(spans) == 1 else None
    if _message(retry, 0, 0, "") != message:
        return None  # it is of the rows
    for start, end in spans[:_MAX_TRIED]:
        if _message(retry, start, end, _another(source.text, start, end)) != message:
            return start, end
    return None


def _another(text: str, start: int, end: int) -> str:
    """Return a replacement text with another meaning."""
    written = text[start:end]
    if text[end:].lstrip().startswith("(") and written.isidentifier():
        return "coalesce"  # accepts any number and types of arguments
    if written in _SIBLINGS:
        return _SIBLINGS[written]
    if written[0] in "'\"`":
        return f"{written[:-1]}_{written[-1]}"
    return f"{written}0" if written.isdecimal() else f"{written}_"


def _message(retry: Retry, start: int, end: int, text: str) -> str | None:
    try:
        retry(start, end, text)
    except Exception as error:  # noqa: BLE001 - DataFusion's Python binding has no exceptions of its own
        return str(error)
    return None
