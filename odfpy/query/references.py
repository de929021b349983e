"""Temporal projections of datasets in a query: `ds TIMESTAMP AS OF '...'`, `odf_current('ds')` and others.

Each projection is replaced by the name of a table of this query; the other modules resolve the table. If possible, the
text keeps its length, and always its lines, so that positions in it are positions in the original. The text is scanned
token by token for projections only: everything else is left to the engine's parser.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from odfpy.data.timestamp import Timestamp
from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import InvalidValue, WrongProjection, did_you_mean
from odfpy.query.dialects import Dialect

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

_CONSTANTS: Final = "Arguments are constants: names and times in quotes, offsets as numbers."
_A_TIME: Final = "Write it in quotes, as '2024-03-01T12:00:00Z' or '2024-03-01'."
_A_BLOCK: Final = "Write the number of a block, or its hash, tag or branch in quotes; odf_as_at() takes an offset, too."
_A_MOMENT: Final = "Write a time as '2024-03-01T12:00:00Z', a block or tag in quotes, an offset as a number from 0 on."
_PREFIX: Final = "odf_"
_FORMS: Final = {
    "odf_changelog": "odf_changelog('dataset')",
    "odf_current": "odf_current('dataset' [, 'key column', ...])",
    "odf_as_at": "odf_as_at('dataset', time | block | tag | offset)",
    "odf_as_of": "odf_as_of('dataset', time)",
    "odf_as_at_of": "odf_as_at_of('dataset', time | block | tag | offset, time)",
}


class LogView(Enum):
    """The view of a log as a table."""

    LOG = "changelog"
    STATE = "current state"


@dataclass(frozen=True, slots=True)
class AtTime:
    """A dataset as at a system time."""

    time: Timestamp


@dataclass(frozen=True, slots=True)
class AtBlock:
    """A dataset as at a block: a hash, a tag, a branch or a number.

    Attributes:
        text: the block in its original notation.
        or_time: whether a time would be valid in its position too, but the text is not a time.
    """

    text: str
    or_time: bool = False


@dataclass(frozen=True, slots=True)
class AtOffset:
    """A dataset as at its row with this offset, which is the last one read."""

    offset: int


PointInTime = AtTime | AtBlock | AtOffset


@dataclass(frozen=True, slots=True)
class TableReference:
    """A reference to a dataset in a query.

    Attributes:
        table: name of its table.
        dataset: name of the dataset, in its original notation.
        shown: the view of the log.
        at: system time, block or offset; None for the head.
        of: upper limit of event time.
        keys: the primary key, if the query states one.
        start: offset in the text.
        end: end offset, exclusive.
    """

    table: str
    dataset: str
    shown: LogView = LogView.LOG
    at: PointInTime | None = None
    of: Timestamp | None = None
    keys: tuple[str, ...] | None = None
    start: int = 0
    end: int = 0


def find_projections(text: str, dialect: Dialect) -> tuple[str, list[TableReference]]:
    """Return a query with temporal projections replaced by names of tables, and the references of these names.

    Raises:
        WrongProjection: a projection is malformed; the message shows its position.
    """
    from sqlglot.errors import TokenError

    try:
        tokens = dialect.tokens(text)
    except TokenError:
        return text, []  # the engine reports the error
    found: list[TableReference] = []
    names: list[str] = []
    at = 0
    while at < len(tokens):
        reader = _Reader(SourceText(text), tokens, at, f"__q{len(found) + 1}")
        reference = reader.call() or reader.time_travel()
        if reference is None:
            at += 1
            continue
        found.append(reference)
        at = reader.at
        named = dialect.quoted(reference.table)
        if not _is_name(tokens[at : at + 1]) and not _is(tokens[at : at + 1], "ALIAS"):
            named += f" AS {dialect.quoted(reference.dataset)}"
        names.append(named)
    plain = text
    # Replaced from last to first: a name may be longer than the original, but earlier positions stay valid.
    for reference, named in reversed(list(zip(found, names, strict=True))):
        start, end = reference.start, reference.end
        plain = plain[:start] + _padded(named, text[start:end]) + plain[end:]
    return plain, found


def _padded(named: str, written: str) -> str:
    """Return a text padded to the length and lines of another; it is longer if it does not fit between line ends."""
    lines = written.count("\n")
    return named + " " * (len(written) - len(named) - lines) + "\n" * lines


class _Reader:
    """Parser of a projection that may begin at a token.

    Attributes:
        at: index of the first unread token.
    """

    def __init__(self, source: SourceText, tokens: Sequence[Token], at: int, table: str) -> None:
        self.at = at
        self._source = source
        self._tokens = tokens
        self._first = at
        self._table = table

    # --- odf_...( ) ---

    def call(self) -> TableReference | None:
        """Parse `odf_current('ds')` and similar calls."""
        name = self._token(0)
        if name is None or not name.text.lower().startswith(_PREFIX) or not _is([self._token(1)], "L_PAREN"):
            return None
        self.at += 2
        function = name.text.lower()
        if function not in _FORMS:
            forms = did_you_mean(function, _FORMS, otherwise=f"There are {', '.join(_FORMS)}.")
            raise self._wrong(f"There is no `{function}`", name, forms)
        arguments = list(self._arguments(function))
        if not arguments:
            raise self._wrong(f"`{function}` is of a dataset", name, f"Write {_FORMS[function]}.")
        dataset, rest = self._name(arguments[0]), arguments[1:]
        wanted = {"odf_changelog": 0, "odf_as_at": 1, "odf_as_of": 1, "odf_as_at_of": 2}.get(function)
        if wanted is not None and len(rest) != wanted:
            raise self._wrong(
                f"`{function}` has {wanted + 1} argument{'s' if wanted else ''}, not {len(arguments)}",
                name,
                f"Write {_FORMS[function]}.",
            )
        shown = LogView.LOG if function == "odf_changelog" else LogView.STATE
        at = self._moment(rest[0]) if function in ("odf_as_at", "odf_as_at_of") else None
        of = self._time(rest[-1]) if function in ("odf_as_of", "odf_as_at_of") else None
        keys = tuple(map(self._name, rest)) if function == "odf_current" and rest else None
        return self._reference(dataset, shown, at, of, keys)

    def _arguments(self, function: str) -> Iterator[list[Token]]:
        """Yield the tokens of each argument, and consume the closing parenthesis."""
        argument: list[Token] = []
        while (token := self._token(0)) is not None:
            self.at += 1
            if _is([token], "R_PAREN"):
                if argument:
                    yield argument
                return
            if _is([token], "L_PAREN"):
                raise self._wrong(f"An argument of `{function}` is not a constant", token, _CONSTANTS)
            if _is([token], "COMMA"):
                yield argument or [token]
                argument = []
            else:
                argument.append(token)
        raise self._wrong(f"`{function}` has no closing parenthesis", self._tokens[self._first], f"{_FORMS[function]}")

    # --- ds TIMESTAMP AS OF ---

    def time_travel(self) -> TableReference | None:
        """Parse `ds TIMESTAMP AS OF '...'` and `ds VERSION AS OF '...'`."""
        before = self._tokens[self._first - 1 : self._first] if self._first else []
        if not _is_name([self._token(0)]) or _is(before, "DOT"):
            return None
        parts = [self._tokens[self.at]]
        ahead = 1
        while _is([self._token(ahead)], "DOT") and _is_name([self._token(ahead + 1)]):
            parts.append(self._tokens[self.at + ahead + 1])
            ahead += 2
        ahead += _is([self._token(ahead)], "FOR")
        words = [self._word(ahead + more) for more in range(3)]
        if words[0] not in ("timestamp", "system_time", "version", "system_version") or words[1:] != ["as", "of"]:
            return None
        value = self._constant(ahead + 3)
        if not value:
            wrong = self._token(ahead + 3) or self._tokens[-1]
            what = "version" if words[0].endswith("version") else "time"
            raise self._wrong(
                f"The requested {what} is not a constant", wrong, _A_BLOCK if what == "version" else _A_TIME
            )
        self.at += ahead + 3 + len(value)
        if words[0] in ("timestamp", "system_time"):
            moment: PointInTime = AtTime(self._time(value))
        else:
            moment = AtBlock(
                str(self._number(value, "The number of a block")) if _is(value, "NUMBER") else self._name(value)
            )
        return self._reference(".".join(part.text for part in parts), LogView.STATE, moment, None, None)

    def _constant(self, ahead: int) -> list[Token]:
        token, after = self._token(ahead), self._token(ahead + 1)
        if token is None or not (_is([token], "STRING", "NUMBER") or (self._is_type(token) and _is([after], "STRING"))):
            return []
        return [token] if not self._is_type(token) else [token, self._tokens[self.at + ahead + 1]]

    # --- Values ---

    def _name(self, argument: Sequence[Token]) -> str:
        """Return a name, given as a string or as an identifier."""
        parts = argument[::2]
        is_dotted = _is_name(parts) and all(_is([token], "DOT") for token in argument[1::2])
        if not is_dotted and not (len(argument) == 1 and _is(argument, "STRING")):
            raise self._wrong("A name is expected", argument[0], _CONSTANTS)
        return ".".join(token.text for token in parts)

    def _moment(self, argument: Sequence[Token]) -> PointInTime:
        """Return a time, an offset or a block; a text that is a valid time is a time."""
        if _is(argument, "NUMBER"):
            return AtOffset(self._number(argument))
        if len(argument) == 1 and _is(argument, "STRING"):
            try:
                return AtTime(Timestamp.parse(argument[0].text))
            except InvalidValue:
                if argument[0].text.count("-") > 1 or ":" in argument[0].text:
                    return AtTime(self._time(argument))  # it looks like a time: report why it is none
                return AtBlock(argument[0].text, or_time=True)
        if not (len(argument) == 2 and self._is_type(argument[0])):
            raise self._wrong("A time, a block, a tag or an offset is expected", argument[0], _A_MOMENT)
        return AtTime(self._time(argument))

    def _time(self, argument: Sequence[Token]) -> Timestamp:
        literal = argument[-1]
        typed = len(argument) == 2 and self._is_type(argument[0])
        if not _is([literal], "STRING") or not (typed or len(argument) == 1):
            raise self._wrong("A time is expected", argument[0], _A_TIME)
        try:
            return Timestamp.parse(literal.text)
        except InvalidValue as error:
            raise self._wrong(error.message, literal, error.hint or _A_TIME) from error

    def _number(self, argument: Sequence[Token], what: str = "An offset") -> int:
        if len(argument) != 1 or not argument[0].text.isdecimal():
            raise self._wrong(f"{what} is a whole number", argument[0], _CONSTANTS)
        return int(argument[0].text)

    # --- Tokens ---

    def _reference(
        self, dataset: str, shown: LogView, at: PointInTime | None, of: Timestamp | None, keys: tuple[str, ...] | None
    ) -> TableReference:
        start, end = self._tokens[self._first].start, self._tokens[self.at - 1].end + 1
        return TableReference(self._table, dataset, shown, at, of, keys, start, end)

    def _token(self, ahead: int) -> Token | None:
        return self._tokens[self.at + ahead] if self.at + ahead < len(self._tokens) else None

    def _word(self, ahead: int) -> str:
        token = self._token(ahead)
        return "" if token is None else token.text.lower()

    @staticmethod
    def _is_type(token: Token) -> bool:
        return token.text.lower() in ("timestamp", "date") and not _is([token], "STRING", "IDENTIFIER")

    def _wrong(self, message: str, token: Token, hint: str | None) -> WrongProjection:
        return WrongProjection(f"{message}{self._source.at(token.start, token.end + 1)}", hint=hint)


def _is(tokens: Sequence[Any], *kinds: str) -> bool:
    return bool(tokens) and all(token is not None and token.token_type.name in kinds for token in tokens)


def _is_name(tokens: Sequence[Any]) -> bool:
    return _is(tokens, "VAR", "IDENTIFIER")
