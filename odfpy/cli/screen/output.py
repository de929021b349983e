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
from odfpy.visible import visible_in_json

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
        """The format of that name.

        Raises:
            UsageError: with a suggestion.
        """
        return member_named(cls, "output format", text, error=UsageError)


class Verbosity(Enum):
    """The amount of messages that are printed besides results."""

    QUIET = -1
    NORMAL = 0
    VERBOSE = 1
    DEBUG = 2


_OTHERWISE = "print a table or csv"

Record: TypeAlias = Mapping[str, Any]
Columns: TypeAlias = Mapping[str, "str | Callable[[Record], object]"]
"""Titles of a table, each with the key that it shows or a function of the record."""


class Output:
    """Prints for one command.

    Attributes:
        form: how data is printed.
        verbosity: how much to say.
    """

    def __init__(self, verbosity: Verbosity = Verbosity.NORMAL, form: Format = Format.TABLE) -> None:
        self.verbosity = verbosity
        self.form = form

    # --- Results ---

    @property
    def for_people(self) -> bool:
        """True if results are to be read by people."""
        return self.form is Format.TABLE

    def text(self, line: str = "") -> None:
        """A line of a result."""
        put(sys.stdout, f"{line}\n")

    def drawing(self, text: str) -> None:
        """A picture of ours, with its own colours; what it shows of data has been made visible."""
        sys.stdout.write(f"{text}\n")

    def records(self, records: Sequence[Record], columns: Columns) -> None:
        """Records that are a table for people, with the columns that matter, and trees for everybody else."""
        if self.form is not Format.TABLE:
            self.tree(records)
            return
        show = [(lambda record, key=key: record.get(key)) if isinstance(key, str) else key for key in columns.values()]
        self.rows(list(columns), [[part(record) for part in show] for record in records])

    def tree(self, tree: Any) -> None:
        """Dictionaries, lists and scalars; a list is one record an item, anything else is one record."""
        match self.form:
            case Format.TABLE | Format.YAML:
                from odfpy.codec.yaml import dump

                VisibleStream(sys.stdout).write(dump(tree))
            case Format.JSON:
                self.text(visible_in_json(json.dumps(tree, indent=2, ensure_ascii=False)))
            case Format.NDJSON:
                for item in _records(tree):
                    self.text(visible_in_json(_json(item)))
            case Format.CSV:
                items = _records(tree)
                keys = list(dict.fromkeys(key for item in items for key in item))
                self._csv(keys, ([item.get(key) for key in keys] for item in items))

    def rows(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Rows of plain values under the given columns."""
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
        """True if the form lets rows be printed as they are made."""
        return self.form in (Format.CSV, Format.JSON, Format.NDJSON)

    def flow(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Rows of plain values that are made as they are printed, where the form allows for that.

        JSON that breaks off before its last bracket has met an error.
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
                put(sys.stdout, before + visible_in_json("\n" + item).replace("\n", "\n  "))
                before = ","
            self.text("[]" if before == "[" else "\n]")
        else:
            self.rows(columns, list(rows))

    def arrow(self, table: pa.Table) -> None:
        """The rows of an Arrow table."""
        from odfpy.data.rows.plain_values import columns_of

        columns = columns_of(table)
        self.rows(table.column_names, list(zip(*columns, strict=True)) if columns else [])

    def flush(self) -> None:
        """Let readers have what was printed so far: the command continues."""
        sys.stdout.flush()

    # --- Everything else ---

    def say(self, line: str) -> None:
        """A remark; not with --quiet."""
        if self.verbosity is not Verbosity.QUIET:
            _remark(f"{line}\n")

    def warn(self, line: str) -> None:
        """Warn of what somebody may come to harm by who does not know it; with --quiet, too."""
        _remark(f"{paint('warning:', 'yellow', sys.stderr)} {line}\n")

    def detail(self, line: str) -> None:
        """A remark for --verbose."""
        if self.verbosity.value > 0:
            _remark(f"{line}\n")

    def error(self, message: str, hint: str | None = None, code: str | None = None) -> None:
        """Print an error, what to try, and the code that `odf help` explains, at the end of the first line.

        Args:
            message: what happened, and where.
            hint: what to try, None for nothing.
            code: code of the error.
        """
        first, *rest = message.split("\n")
        if code is not None:
            first = f"{first} {paint(f'({code})', 'dim', sys.stderr)}"
        lines = "\n".join((first, *rest))
        _remark(f"{paint('error:', 'red', sys.stderr)} {lines}\n")
        if hint:
            _remark(f"{paint('hint:', 'cyan', sys.stderr)} {hint}\n")

    # --- Pieces ---

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
    """An error, or that there is none, for programs."""
    if error is None:
        return {"error": None, "code": None, "hint": None}
    return {"error": error.message, "code": error.code, "hint": error.hint}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def cell(value: Any) -> str:
    """A plain value in a table or in CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return _json(value) if isinstance(value, (dict, list)) else str(value)


def _remark(text: str) -> None:
    """Write to standard error what comes after all that was printed, also where both go to one file or pipe."""
    with suppress(OSError, ValueError):  # nobody reads what was printed: its own writer finds that out
        sys.stdout.flush()
    put(sys.stderr, text)
