"""The IPython magics `%odf` and `%%odf`: SQL in a cell. Enabled by `%load_ext odfpy`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class

from odfpy.client.connection import Connection, connect
from odfpy.client.rows import Rows
from odfpy.errors import UsageError, did_you_mean

_USAGE: Final = (
    "%%odf [--in CONNECTION] [--engine ENGINE] [--as-at TIME] [--limit N] [--with A,B] [--to FRAME] [> NAME]"
)
_OPTIONS: Final = ("in", "engine", "as-at", "limit", "timeout", "with", "to")
_FRAMES: Final[Mapping[str, Callable[[Rows], Any]]] = {
    "rows": lambda rows: rows,
    "arrow": Rows.to_arrow,
    "pandas": Rows.to_pandas,
    "polars": Rows.to_polars,
    "spark": Rows.to_spark,
}
_OPTION: Final = re.compile(r"""\s*--([\w-]+)(?:=|\s+)("[^"]*"|'[^']*'|[^\s"'>]\S*)""")
_TARGET: Final = re.compile(r"\s*>\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class MagicLine:
    """The parsed first line of a cell.

    Attributes:
        options: values by name.
        target: name of the variable for the result.
        rest: the text after the options.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    rest: str = ""


def read_line(line: str, *, is_cell: bool) -> MagicLine:
    """Parse the text after `%odf` or `%%odf`.

    Raises:
        UsageError: the line is invalid.
    """
    options: dict[str, str] = {}
    while (found := _OPTION.match(line)) is not None:
        name, value = found.groups()
        if name not in _OPTIONS:
            otherwise = f"Options: {', '.join('--' + option for option in _OPTIONS)}."
            raise UsageError(f"%odf has no option --{name}", hint=did_you_mean(name, _OPTIONS, otherwise=otherwise))
        options[name] = value.strip(value[0]) if value[0] in "\"'" else value
        line = line[found.end() :]
    rest = line.strip()
    if rest.startswith("--"):  # an SQL comment would have no effect
        options_are = ", ".join(f"--{option}" for option in _OPTIONS)
        raise UsageError(f"Not an option with its value: {rest}", hint=f"Options: {options_are}. %odf? shows more.")
    if not is_cell or not rest:
        return MagicLine(options, None, rest)
    target = _TARGET.fullmatch(rest)
    if target is None:
        raise UsageError(f"Not understood in the first line: {rest}", hint=f"{_USAGE}, and the query below it.")
    if not target.group(1).isidentifier():
        raise UsageError(f"Not a name of a variable: {target.group(1)}", hint="Write > and a name of Python's.")
    return MagicLine(options, target.group(1))


@magics_class
class OdfMagics(Magics):
    """The magics `%odf` and `%%odf`."""

    @line_cell_magic
    def odf(self, line: str, cell: str | None = None) -> Any:
        """SQL over the datasets of a connection.

        ```text
        %%odf [--in CONNECTION] [--engine ENGINE] [--as-at TIME] [--limit N] [--with A,B] [--to FRAME] [> NAME]

        --in        a variable that holds a connection, or a place; the only connection there is, or the workspace here
        --engine    spark or datafusion
        --as-at     as it would have been answered at a time, or at a block
        --limit     rows at most
        --timeout   seconds until it is stopped
        --with      variables that are the values of `?`, in order
        --to        arrow, pandas, polars or spark; otherwise rows that can become each of these
        > NAME      the variable that gets the answer, which is not shown then
        ```
        """
        asked = read_line(line, is_cell=cell is not None)
        text = asked.rest if cell is None else cell
        if not text.strip():
            raise UsageError("There is no query", hint=f"{_USAGE}, and the query below it.")
        options = asked.options
        frame = _frame(options.get("to", "rows"))
        names = [name.strip() for name in options["with"].split(",")] if "with" in options else []
        rows = self._connection(options.get("in")).sql(
            text,
            [self._value(name) for name in names],
            engine=options.get("engine"),
            as_at=options.get("as-at"),
            limit=_number(options, "limit", int),
            timeout=_number(options, "timeout", float),
        )
        answer = frame(rows)
        if asked.target is None:
            return answer
        self._variables[asked.target] = answer
        return None

    @property
    def _variables(self) -> dict[str, Any]:
        assert self.shell is not None  # noqa: S101  IPython has one
        found: dict[str, Any] = self.shell.user_ns
        return found

    def _value(self, name: str) -> Any:
        if name not in self._variables:
            raise UsageError(f"No variable is called {name!r}", hint=did_you_mean(name, self._variables))
        return self._variables[name]

    def _connection(self, name: str | None) -> Connection:
        if name is not None:
            there = self._variables.get(name)
            return there if isinstance(there, Connection) else connect(name)
        # IPython's own references to output begin with an underscore.
        known = {key: value for key, value in self._variables.items() if not key.startswith("_")}
        found = {id(value): key for key, value in known.items() if isinstance(value, Connection)}
        if len(found) > 1:
            names = sorted(found.values())
            raise UsageError(f"There are several connections: {', '.join(names)}", hint=f"Name one: --in {names[0]}")
        return next((known[key] for key in found.values()), None) or connect()


def _frame(name: str) -> Callable[[Rows], Any]:
    if name.lower() not in _FRAMES:
        otherwise = f"One of: {', '.join(_FRAMES)}."
        raise UsageError(f"No frame is called {name!r}", hint=did_you_mean(name, _FRAMES, otherwise=otherwise))
    return _FRAMES[name.lower()]


def _number(options: Mapping[str, str], name: str, kind: Callable[[str], Any]) -> Any:
    if name not in options:
        return None
    try:
        value = kind(options[name])
    except ValueError:
        value = -1
    if not value >= 0:
        raise UsageError(f"--{name} must be a number, 0 or more, not {options[name]}")
    return value


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics; called by IPython for `%load_ext odfpy`."""
    shell.register_magics(OdfMagics)
