"""Output of commands in the requested format: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from odfpy.cli.screen.terminal import VisibleStream, paint, put
from odfpy.errors import OdfError, UsageError, member_named
from odfpy.escaping import escape_controls_in_json

if TYPE_CHECKING:
    import pyarrow as pa


class Format(Enum):
    """A format of printed data."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"
    YAML = "yaml"

    @classmethod
    def parse(cls, text: str) -> Format:
        """Return the format of a name.

        Raises:
            UsageError: the format is unknown; the message has a suggestion.
        """
        return member_named(cls, "output format", text, error=UsageError)


class Verbosity(Enum):
    """The verbosity: the number of messages printed besides results."""

    QUIET = -1
    NORMAL = 0
    VERBOSE = 1
    DEBUG = 2


_OTHERWISE = "print a table or csv"

Record: TypeAlias = Mapping[str, Any]
Columns: TypeAlias = Mapping[str, "str | Callable[[Record], object]"]
"""Columns of a table: for each title, the key of a record, or a function of the record."""


class Output:
    """The output of one command.

    Attributes:
        form: format of the results.
        verbosity: which messages are printed.
    """

    def __init__(self, verbosity: Verbosity = Verbosity.NORMAL, form: Format = Format.TABLE) -> None:
        self.verbosity = verbosity
        self.form = form

    # --- Results ---

    @property
    def for_people(self) -> bool:
        """True if people read the results."""
        return self.form is Format.TABLE

    def text(self, line: str = "") -> None:
        """Print a line of a result."""
        put(sys.stdout, f"{line}\n")

    def drawing(self, text: str) -> None:
        """Print a drawing with its own colors; data in it must already be sanitized."""
        sys.stdout.write(f"{text}\n")

    def records(self, records: Sequence[Record], columns: Columns) -> None:
        """Print records: as a table with the given columns for people, as trees for programs."""
        if self.form is not Format.TABLE:
            self.tree(records)
            return
        show = [(lambda record, key=key: record.get(key)) if isinstance(key, str) else key for key in columns.values()]
        self.rows(list(columns), [[part(record) for part in show] for record in records])

    def tree(self, tree: Any) -> None:
        """Print a tree of dictionaries, lists and scalars. A list is one record per item, anything else one record."""
        match self.form:
            case Format.TABLE | Format.YAML:
                from odfpy.codec.yaml import dump

                VisibleStream(sys.stdout).write(dump(tree))
            case Format.JSON:
                self.text(escape_controls_in_json(json.dumps(tree, indent=2, ensure_ascii=False)))
            case Format.NDJSON:
                for item in _records(tree):
                    self.text(escape_controls_in_json(_json(item)))
            case Format.CSV:
                items = _records(tree)
                keys = list(dict.fromkeys(key for item in items for key in item))
                self._csv(keys, ([item.get(key) for key in keys] for item in items))

    def rows(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print rows of plain values under the given columns."""
        from odfpy.data.rows.plain_values import is_number, plain, require_distinct

        right = {number for number in range(len(columns)) if is_number(row[number] for row in rows)}
        values = ([plain(cell) for cell in row] for row in rows)
        if self.form is Format.TABLE:
            self._table(columns, [[cell(value) for value in row] for row in values], right)
        elif self.form is Format.CSV:
            self._csv(columns, values)
        else:
            require_distinct(columns, _OTHERWISE)
            self.tree([dict(zip(columns, row, strict=True)) for row in values])

    @property
    def is_streamed(self) -> bool:
        """True if the form allows printing rows as they arrive."""
        return self.form in (Format.CSV, Format.JSON, Format.NDJSON)

    def flow(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print rows of plain values, as they arrive if the form allows it.

        If an error occurs, JSON ends without its last bracket.
        """
        from odfpy.data.rows.plain_values import plain, require_distinct

        if self.form is Format.CSV:
            self._csv(columns, ([plain(value) for value in row] for row in rows))
            return
        require_distinct(columns, _OTHERWISE)
        if self.form is Format.NDJSON:
            for row in rows:
                self.tree(dict(zip(columns, map(plain, row), strict=True)))
        elif self.form is Format.JSON:
            before = "["
            for row in rows:
                item = json.dumps(dict(zip(columns, map(plain, row), strict=True)), indent=2, ensure_ascii=False)
                put(sys.stdout, before + escape_controls_in_json("\n" + item).replace("\n", "\n  "))
                before = ","
            self.text("[]" if before == "[" else "\n]")
        else:
            self.rows(columns, list(rows))

    def arrow(self, table: pa.Table) -> None:
        """Print the rows of an Arrow table."""
        from odfpy.data.rows.plain_values import columns_of

        columns = columns_of(table)
        self.rows(table.column_names, list(zip(*columns, strict=True)) if columns else [])

    def flush(self) -> None:
        """Flush printed output, for commands that continue."""
        sys.stdout.flush()

    # --- Everything else ---

    def info(self, line: str) -> None:
        """Print a remark, unless --quiet is given."""
        if self.verbosity is not Verbosity.QUIET:
            _remark(f"{line}\n")

    def warn(self, line: str) -> None:
        """Print a warning about possible harm, also with --quiet."""
        _remark(f"{paint('warning:', 'yellow', sys.stderr)} {line}\n")

    def detail(self, line: str) -> None:
        """Print a remark if --verbose is given."""
        if self.verbosity.value > 0:
            _remark(f"{line}\n")

    def error(self, message: str, hint: str | None = None, code: str | None = None) -> None:
        """Print an error, a hint, and the code for `odf help` at the end of the first line.

        Args:
            message: description of the error, with its location.
            hint: advice for the user, or None.
            code: code of the error.
        """
        first, *rest = message.split("\n")
        if code is not None:
            first = f"{first} {paint(f'({code})', 'dim', sys.stderr)}"
        lines = "\n".join((first, *rest))
        _remark(f"{paint('error:', 'red', sys.stderr)} {lines}\n")
        if hint:
            _remark(f"{paint('hint:', 'cyan', sys.stderr)} {hint}\n")

    # --- Helpers ---

    def _table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], right: set[int]) -> None:
        from odfpy.data.rows.text_table import lines_of

        width = None
        if sys.stdout.isatty():
            import shutil

            width = shutil.get_terminal_size().columns
        for line in lines_of(columns, rows, right=right, width=width, heading=lambda t: paint(t, "bold", sys.stdout)):
            self.text(line)

    def _csv(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        import csv

        writer = csv.writer(VisibleStream(sys.stdout), lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([cell(value) for value in row] for row in rows)


def _records(tree: Any) -> list[dict[str, Any]]:
    return tree if isinstance(tree, list) else [tree]


def error_tree(error: OdfError | None) -> dict[str, Any]:
    """Return an error as a tree for programs; its values are null if there is no error."""
    if error is None:
        return {"error": None, "code": None, "hint": None}
    return {"error": error.message, "code": error.code, "hint": error.hint}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def cell(value: Any) -> str:
    """Format a plain value for a table or CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return _json(value) if isinstance(value, (dict, list)) else str(value)


def _remark(text: str) -> None:
    """Write to standard error after all printed output, even if both go to the same file or pipe."""
    with suppress(OSError, ValueError):  # the reader has exited; the next write to standard output reports it
        sys.stdout.flush()
    put(sys.stderr, text)
