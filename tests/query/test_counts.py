"""Counts that are known by the form of the query: the parser would have said the same."""

from __future__ import annotations

import re

import pytest
from sqlglot.dialects.dialect import Dialect as Grammar
from support.chains.workspaces import feed, root, workspace_with

from odfpy.coordinator.workspace import Workspace
from odfpy.query import plan as planning
from odfpy.query.counts import count_of, counted
from odfpy.query.dialects import DIALECTS, Dialect
from odfpy.query.log_query import simple_query
from odfpy.query.plan import QueryPlan, plan
from odfpy.query.query import Query
from odfpy.query.quoting import quote_datasets
from odfpy.query.tables import named_tables, split_statements

NAMES = ("rates", "Rates", "com.example.rates", "COM.example.Rates", "com.select.values", "_x.y_1")


def words_of(dialect: Dialect) -> set[str]:
    """All words that mean something to the parser."""
    grammar = Grammar.get_or_raise(dialect.sqlglot)
    tables = ("FUNCTIONS", "FUNCTION_PARSERS", "NO_PAREN_FUNCTIONS", "NO_PAREN_FUNCTION_PARSERS")
    words = {str(getattr(word, "name", word)) for name in tables for word in getattr(grammar.parser_class, name)}
    return {word for word in words | set(grammar.tokenizer_class.KEYWORDS) if re.fullmatch(r"[A-Za-z_]\w*", word)}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_the_parser_takes_every_such_name_for_a_table(dialect: Dialect) -> None:
    for name in (*NAMES, *sorted(words_of(dialect))):
        text = f"Select count(*)\n from {name}"
        if counted(text) is None:
            continue
        quoted = quote_datasets(text, dialect, lambda _: True)
        assert simple_query(quoted, dialect, "offset") == count_of(name, dialect), name
        assert [(one.text, one.is_sure) for one in named_tables(quoted, dialect.sqlglot)] == [(name, True)]


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from select",
        "select count(*) as n from rates",
        "select count(*), 1 from rates",
        "select count(*) from rates r",
        "select count(*) from rates where true",
        "select count(*) from `rates`",
        "select count(*) from a-b",
        "select count(*) from rates@main",
        "select count(*) from 1a",
        "select count(*) from a.1b",
        "select count(*) from odf_current('rates')",
        "select count(1) from rates",
        "select count(*) from rates -- all",
        "explain select count(*) from rates",
        "select count(*) from rates; select 1",
        "select count(*) from räte",
    ],
)
def test_everything_else_is_parsed(text: str) -> None:
    assert counted(text) is None


@pytest.mark.parametrize(
    "text", [" select count(*) from rates ;\n", "select count(*) from rates", "select count(*) from a.b;"]
)
@pytest.mark.parametrize("in_place", [True, False])
def test_it_is_one_statement(text: str, in_place: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    known = split_statements(text, DIALECTS["spark"], in_place=in_place)
    monkeypatch.setattr("odfpy.query.tables.counted", lambda _: None)
    assert known == split_statements(text, DIALECTS["spark"], in_place=in_place)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = workspace_with(
        tmp_path_factory.mktemp("workspace"), root("rates"), root("com.example.rates"), root("empty")
    )
    for name in ("rates", "com.example.rates"):
        feed(found, name, "1 a", "2 b")
    return found


@pytest.mark.parametrize("engine", DIALECTS)
@pytest.mark.parametrize("name", ["rates", "RATES", "com.example.rates", "com.Example.rates"])
def test_the_plan_is_that_of_the_parser(
    name: str, engine: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned() -> tuple[object, ...]:
        found: QueryPlan = plan(workspace.queries.service.resolver, Query(f"select count(*) from {name};", engine))
        references = [reference for reference, _ in found.tables]
        return found.text, found.shown, references, found.inputs, found.path, found.simple, found.num_parameters

    known = planned()
    monkeypatch.setattr(planning, "counted", lambda _: None)
    assert known == planned()
    assert known[4] == "chain"


@pytest.mark.parametrize("name", ["nowhere", "rate", "empty"])
def test_what_cannot_be_counted_is_told_as_ever(
    name: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> str:
        try:
            return plan(workspace.queries.service.resolver, Query(f"select count(*) from {name}")).path
        except Exception as error:  # noqa: BLE001 - whatever it is
            return f"{type(error).__name__}: {error} {getattr(error, 'hint', None)}"

    known = told()
    monkeypatch.setattr(planning, "counted", lambda _: None)
    assert known == told()
