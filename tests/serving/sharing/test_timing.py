"""The work for what is missing, and for what is hidden, is the same, so that its time tells nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from serving.sharing.conftest import Shared
from sqlalchemy import Engine, event

CALLS: list[tuple[str, Any]] = [
    ("version", None), ("metadata", None), ("query", {}), ("changes?startingVersion=0", None),
]  # fmt: skip


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements that any database is asked meanwhile, without values."""
    seen: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        del connection, cursor, rest
        seen.append(re.sub(r"\s+", " ", statement))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@pytest.mark.parametrize("who", ["all", "eur", "nothing"])
@pytest.mark.parametrize(("call", "body"), CALLS)
def test_missing_and_hidden_tables_ask_the_database_the_same(shared: Shared, who: str, call: str, body: Any) -> None:
    def asked(table: str) -> list[str]:
        path = f"shares/{table.replace('.', '/').replace('/', '/schemas/', 1).replace('/main/', '/main/tables/')}"
        shared.ask(f"{path}/{call}", who, body)  # what the first one fetches, later ones remember
        with statements() as seen:
            assert shared.ask(f"{path}/{call}", who, body).status == 404
        return seen

    hidden = asked("hidden.main.rates")
    assert hidden
    for missing in ("hidden.main.nosuch", "nosuch.main.rates"):
        assert asked(missing) == hidden, missing


@pytest.mark.parametrize("call", ["", "/schemas", "/all-tables", "/schemas/main/tables"])
def test_missing_and_hidden_shares_ask_the_database_the_same(shared: Shared, call: str) -> None:
    def asked(share: str) -> list[str]:
        shared.ask(f"shares/{share}{call}")
        with statements() as seen:
            assert shared.ask(f"shares/{share}{call}").status == 404
        return seen

    assert asked("hidden") == asked("nosuch") != []
