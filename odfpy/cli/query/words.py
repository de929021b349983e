"""Completion in the SQL shell: datasets, columns, keywords, and the shell's own commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from odfpy.cli.screen.output import Format
from odfpy.errors import OdfError

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

DELIMITERS: Final = " \t\n`\"'(),;=<>+-*/%!|&[]{}"
"""Word delimiters; names contain dots, at signs and colons."""

_KEYWORDS: Final = """
    ALL AND ANTI AS ASC BETWEEN BY CASE CAST CROSS CURRENT DATE DESC DISTINCT ELSE END EXCEPT EXISTS EXPLAIN EXTRACT
    FALSE FIRST FOLLOWING FROM FULL GROUP HAVING IN INNER INTERSECT INTERVAL IS JOIN LAST LATERAL LEFT LIKE LIMIT NOT
    NULL NULLS OF OFFSET ON OR ORDER OUTER OVER PARTITION PRECEDING RANGE RIGHT ROWS SELECT SEMI THEN TIMESTAMP TRUE
    UNBOUNDED UNION USING VALUES VERSION WHEN WHERE WINDOW WITH
    ABS AVG COALESCE COUNT DENSE_RANK GREATEST LAG LEAD LEAST LENGTH LOWER MAX MEDIAN MIN NULLIF RANK ROUND ROW_NUMBER
    STDDEV SUBSTRING SUM TRIM UPPER
"""
KEYWORDS: Final = tuple(_KEYWORDS.split())
PROJECTIONS: Final = ("odf_as_at(", "odf_as_at_of(", "odf_as_of(", "odf_changelog(", "odf_current(")

COMMANDS: Final = {
    "\\d": "datasets",
    "\\engine": ("datafusion", "spark"),
    "\\format": tuple(form.value for form in Format),
    "\\limit": ("off",),
    "\\pager": ("off", "on"),
    "\\plot": ("off", "on"),
    "\\timing": ("off", "on"),
    "\\q": (),
    "\\?": (),
}
"""The shell's own commands, and their possible arguments."""

_PLAIN: Final = re.compile(r"[A-Za-z_]\w*")
_BEFORE_TABLE: Final = re.compile(r"\b(?:from|join)\s+$", re.IGNORECASE)


class WordCompleter:
    """Complete words.

    Attributes:
        workspace: the workspace whose datasets are offered.
    """

    def __init__(self, workspace: Workspace, engine: Callable[[], str | None]) -> None:
        self.workspace = workspace
        self._engine = engine
        self._columns: dict[str, list[str]] = {}

    def offers(self, before: str, word: str) -> list[str]:
        """Return the completions of a word.

        Args:
            before: the input before the word, with all lines of the statement.
            word: the prefix typed so far.
        """
        try:
            found = self._command(before, word) if before.lstrip().startswith("\\") else self._sql(before, word)
        except (OdfError, OSError):
            return []
        return sorted(dict.fromkeys(one for one in found if one.startswith(word)))

    def _command(self, before: str, word: str) -> Iterable[str]:
        del word
        wanted = COMMANDS.get(before.strip().split()[0], ())
        return self._datasets() if wanted == "datasets" else wanted

    def _sql(self, before: str, word: str) -> Iterable[str]:
        if not before.strip() and word.startswith("\\"):
            return COMMANDS
        quote = before[-1:] if before[-1:] in ("`", '"', "'") and before.count(before[-1:]) % 2 else ""
        if quote:
            columns = [] if quote == "'" else self._columns_of(before)
            end = quote if quote == "`" else ""  # readline itself closes other quotes
            return [f"{name}{end}" for name in (*self._datasets(), *columns)]
        tables = [*PROJECTIONS, *map(self._written, self._datasets())]
        if _BEFORE_TABLE.search(before):
            return tables
        qualifier, dot, _ = word.rpartition(".")
        columns = [f"{qualifier}{dot}{name}" for name in map(self._written, self._columns_of(f"{before} {word}"))]
        keywords = KEYWORDS if word[:1].isupper() else [keyword.lower() for keyword in KEYWORDS]
        return [*tables, *columns, *(keywords if word else ())]

    def _datasets(self) -> list[str]:
        from odfpy.coordinator.storage.completion_names import dataset_names

        return [name for name, _ in dataset_names(self.workspace.root)]

    def _columns_of(self, text: str) -> list[str]:
        """Return the columns of the datasets named in a statement."""
        named = [name for name in self._datasets() if name in text]
        for name in named:
            if name not in self._columns:
                schema = self.workspace.datasets.state(name).schema
                self._columns[name] = [field.name for field in schema.fields] if schema else []
        return [column for name in named for column in self._columns[name]]

    def _written(self, name: str) -> str:
        """Quote a name as the dialect requires."""
        is_spark = (self._engine() or "spark") == "spark"
        parts = name.split(".") if is_spark else [name]
        if all(_PLAIN.fullmatch(part) for part in parts) and name.upper() not in KEYWORDS:
            return name
        quote = "`" if is_spark else '"'
        return f"{quote}{name}{quote}"

    def attach(self, pending: Callable[[], str]) -> None:
        """Register with readline.

        Args:
            pending: returns the lines before the current one.
        """
        import readline

        found: list[str] = []

        def complete(word: str, number: int) -> str | None:
            nonlocal found
            if number == 0:
                line = readline.get_line_buffer()[: readline.get_begidx()]
                found = self.offers(f"{pending()}{line}", word)
            return found[number] if number < len(found) else None

        readline.set_completer(complete)
        readline.set_completer_delims(DELIMITERS)
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        if not is_libedit:  # makes tabs in pasted text literal, and its lines arrive together
            readline.parse_and_bind("set enable-bracketed-paste on")
