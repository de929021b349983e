"""The SQL shell at a terminal: completion, history, lines, pages, forms, times; charts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from support.processes.terminal import Terminal, terminal

from odfpy.cli.query.shell import is_complete
from odfpy.cli.query.words import WordCompleter
from odfpy.cli.screen.plot import MAX_BARS, Chart, chart_of, draw
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import NothingToPlot

if TYPE_CHECKING:
    from cli.conftest import Odf

SHELL = ("sql", "--engine", "datafusion")
NAME = "com.example.rates"


def test_the_tab_key_completes_datasets_columns_keywords_and_commands(workspace: Path) -> None:
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1", columns=120, PAGER="cat") as shell:
        shell.wait_for("odf> ")
        shell.ask("\\limit off")  # it listens
        shell.type("sel\t")
        shell.wait_for("select")
        shell.type(' count(*) as n from "com.example.ra\t')
        shell.wait_for(f'"{NAME}"')
        shell.type(" where na\t")
        shell.wait_for("where name")
        assert "3\n" in shell.ask(" is not null;")
        before = len(shell.screen)
        shell.type("\\tim\t")
        shell.wait_for("\\timing", before)
        shell.ask(" off")
        assert "name         Option<String>" in shell.ask(f"\\d {NAME[:-3]}\t")


@pytest.mark.parametrize("engine", ["spark", "datafusion"])
def test_a_query_needs_neither_an_option_nor_quotes_of_names(engine: str, workspace: Path, odf: Odf) -> None:
    assert workspace.is_dir()
    for name in (NAME, f'"{NAME}"', f"`{NAME}`"):
        query = f"select {name}.id from {name} where {name}.offset < 2"  # which no engine has to answer
        assert odf("sql", "--engine", engine, query, "-o", "csv").out == "id\n1\n2\n"


@pytest.mark.parametrize(
    ("engine", "before", "word", "offered"),
    [
        ("datafusion", "", "sele", ["select"]),
        ("datafusion", "", "SELE", ["SELECT"]),
        ("datafusion", "select * from ", "com.example.r", []),
        ("datafusion", "select * from ", "", "all datasets"),
        ("datafusion", 'select * from "', "com.example.r", ["com.example.rates"]),
        ("spark", "select * from ", "com.example.r", ["com.example.rates"]),
        ("spark", "select * from `", "com.example.r", ["com.example.rates`"]),
        ("spark", "select * from ", "odf_as_", ["odf_as_at(", "odf_as_at_of(", "odf_as_of("]),
        ("spark", "select * from odf_current('", "com.example.r", ["com.example.rates"]),
        ("spark", "select * from com.example.rates where ", "nam", ["name"]),
        ("spark", "select * from com.example.rates r where ", "r.na", ["r.name"]),
        ("spark", "select * from com.example.rates where ", "off", ["offset"]),
        ("datafusion", "select * from trades, ", "pri", []),
        ("spark", "", "\\f", ["\\format"]),
        ("spark", "\\format ", "j", ["json"]),
        ("spark", "\\engine ", "", ["datafusion", "spark"]),
        ("spark", "\\timing ", "o", ["off", "on"]),
        ("spark", "\\d ", "com.example.c", ["com.example.cities"]),
        ("spark", "\\nothing ", "x", []),
    ],
)
def test_offers(engine: str, before: str, word: str, offered: object, workspace: Path) -> None:
    found = WordCompleter(Workspace.open(workspace), lambda: engine).offers(before, word)
    if offered == "all datasets":
        assert '"com.example.rates"' in found
        assert "trades" in found
        assert "odf_current(" in found
        assert "select" not in found
    else:
        assert [one.strip("`") if "offset" in one else one for one in found] == offered


@pytest.mark.parametrize(
    ("text", "dialect", "whole"),
    [
        ("select 1", "spark", False),
        ("select 1;", "spark", True),
        ("select 1; -- done", "spark", True),
        ("select 1 -- not yet;", "spark", False),
        ("select ';", "spark", False),
        ("select ';\n';", "spark", True),
        ("select /* ; */ 1", "datafusion", False),
        ("select '\\' as a;", "datafusion", True),
        ("select 1; select 2", "datafusion", False),
        (";", "spark", True),
    ],
)
def test_a_statement_ends_with_a_semicolon_of_its_own(text: str, dialect: str, whole: bool) -> None:
    assert is_complete(text, dialect) is whole


def leave(shell: Terminal) -> None:
    shell.type("\\q\n")
    assert shell.wait() == 0
    assert "Traceback" not in shell.plain


def test_settings_of_the_shell(workspace: Path) -> None:
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1", PAGER="cat") as shell:
        shell.wait_for("odf> ")
        assert re.search(r"\(1 row, \d+\.\d+ s\)", shell.ask("select 1 as a;"))
        shell.ask("\\timing off")
        assert "row" not in shell.ask("select 1 as a;").partition(";")[2]
        shell.ask("\\format json")
        assert json.loads(shell.ask("select 'x' as b;").partition(";")[2]) == [{"b": "x"}]
        assert "Did you mean ndjson" in shell.ask("\\format nsjon")
        shell.ask("\\format csv")
        assert "b,c\nx,1\n" in shell.ask("select 'x' as b, 1 as c;").replace("\r", "")
        assert "format is csv\n" in shell.ask("\\format")
        shell.ask("\\format table")
        shell.ask("\\limit 2")
        assert "2\n3\n" not in shell.ask("select value from generate_series(1, 5);")
        assert "must be a whole number" in shell.ask("\\limit many")
        shell.ask("\\limit off")
        shell.ask("\\plot")
        assert "█" in shell.ask("select 'a' as name, 2 as n union all select 'b', 3;")
        shell.ask("\\plot off")
        assert "Wrote chart.png" in shell.ask("\\plot chart.png") + shell.ask("select 'a' as name, 2 as n;")
        assert "█" not in shell.ask("select 'a' as name, 2 as n;")
        assert "Must be on or off" in shell.ask("\\pager perhaps")
        assert "Did you mean spark" in shell.ask("\\engine sparc")
        assert "engine is datafusion\n" in shell.ask("\\engine;")
        assert "limit is off\n" in shell.ask("\\limit")
        assert "timing is on\n" in shell.ask("\\timing")
        leave(shell)
    assert (workspace / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_words_of_other_shells(workspace: Path) -> None:
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1", PAGER="cat", columns=120) as shell:
        shell.wait_for("odf> ")
        for words in ("\\d", "\\dt", ".tables", "SHOW TABLES;"):
            assert "com.example.rates   Root" in shell.ask(words)
        assert "Option<String>" in shell.ask(f"describe {NAME};")
        for words in ("help", "\\?;", ".help"):
            assert "Statements end with a semicolon" in shell.ask(words)
        assert "There is no command \\tming" in shell.ask("\\tming")
        shell.ask("-- a remark")
        shell.type("select 1 as n,\n")
        shell.wait_for("...> ")
        assert "timing is off" in shell.ask("\\timing", "...> ")
        shell.ask("  '", "...> ")
        assert "\\n\\d" in shell.ask("\\d' as b;"), "within quotes it is not a command"
        shell.type("exit\n")
        assert shell.wait() == 0


def test_what_is_pasted_comes_as_a_whole(workspace: Path) -> None:
    pasted = "-- two statements\nselect\n\t\t'a;\n\tb' as x;\nselect\t\tnope;\nselect 40 + 2 as y;"
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1", PAGER="cat", columns=120) as shell:
        shell.wait_for("odf> ")
        shell.ask("\\format json")
        told = shell.ask(f"\x1b[200~{pasted}\x1b[201~")
        assert '"x": "a;\\n\\tb"' in told
        assert "No field named nope" in told
        assert '"y": 42' in told
        leave(shell)
    history = (workspace / ".odf" / "cache" / "sql-history").read_text().splitlines()
    assert history == ["\\format json", "select", "\t\t'a;", "\tb' as x;", "select\t\tnope;", "select 40 + 2 as y;"]


def test_what_is_longer_than_the_screen_goes_through_a_pager(workspace: Path) -> None:
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1", PAGER="sed s/^/paged:/") as shell:
        shell.wait_for("odf> ")
        assert "paged:" not in shell.ask("select value from generate_series(1, 5);")
        shown = shell.ask("select value from generate_series(1, 100);")
        assert "paged:   99\n" in shown
        shell.ask("\\pager off")
        assert "paged:" not in shell.ask("select value from generate_series(1, 100);")
        assert "first 10000 rows; `odf export`" in shell.ask("select value from generate_series(1, 10001);")
        leave(shell)
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1", PAGER="no-such-pager") as shell:
        shell.wait_for("odf> ")
        assert "\n   99\n" in shell.ask("select value from generate_series(1, 100);")
        leave(shell)


def test_a_statement_of_several_lines_comes_back_as_one(workspace: Path) -> None:
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1") as shell:
        shell.wait_for("odf> ")
        shell.type("select 40 +\n")
        shell.wait_for("...> ")
        assert "42\n" in shell.ask("2 as answer;")
        shell.type("\x04")
        assert shell.wait() == 0
    history = workspace / ".odf" / "cache" / "sql-history"
    assert history.read_text() == "select 40 + 2 as answer;\n"
    assert history.stat().st_mode & 0o077 == 0
    with terminal(*SHELL, cwd=workspace, NO_COLOR="1") as shell:
        shell.wait_for("odf> ")
        assert "42\n" in shell.ask("\x1b[A"), "the key with the arrow up"
        leave(shell)


def test_statements_of_a_file(odf: Odf, workspace: Path) -> None:
    Path("x.sql").write_text("select 1 as a;\n-- no\nselect 2 as a;\n")
    assert odf(*SHELL, "--script", "x.sql", "-o", "ndjson").out == '{"a":1}\n{"a":2}\n'
    assert odf(*SHELL, "--script", "-", "-o", "csv", stdin=b"select 3 as a").out == "a\n3\n"
    assert "Cannot read y.sql: No such file" in odf(*SHELL, "--script", "y.sql").says
    (workspace / "x.sql").write_bytes(b"\xef\xbb\xbfselect 1 as a; -- one\n\nselect 2 as b, nope;\n")
    done = odf(*SHELL, "--script", "x.sql", "-o", "ndjson")
    assert done.out == '{"a":1}\n'
    assert "x.sql: No field named nope (line 3, column 16)" in done.says
    assert "Two queries were given" in odf(*SHELL, "select 1", "-c", "select 2").says
    assert "--command cannot be combined with --script" in odf(*SHELL, "--script", "x.sql", "-c", "select 1").says


# --- Charts ----------------------------------------------------------------------------------------------------------


def test_a_chart_in_the_terminal(odf: Odf, workspace: Path) -> None:
    drawn = odf(*SHELL, "-c", "select event_time, amount from trades order by event_time", "--plot")
    assert (drawn.code, drawn.err) == (0, "")
    lines = drawn.out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "amount" in lines[1]
    assert "event_time" in lines[-1]
    assert "\x1b" not in drawn.out
    with terminal(
        *SHELL, "-c", "select 'a' as name, 2 as n union all select 'b', 3", "--plot", cwd=workspace
    ) as screen:
        assert screen.wait() == 0
        assert "\x1b[36m█" in screen.screen


def test_a_chart_as_a_file(odf: Odf, workspace: Path) -> None:
    query = "select 'a $ and $ 日本' as name, 2 as n, -1.5 as m union all select null, 3, null"
    drawn = odf(*SHELL, "-c", query, "--png", "chart.png")
    assert (drawn.out, drawn.err) == ("", "Wrote chart.png\n")
    assert Path("chart.png").read_bytes().startswith(b"\x89PNG")
    assert "Cannot write nowhere/x.png" in odf(*SHELL, "-c", query, "--png", "nowhere/x.png").says


@pytest.mark.parametrize("query", ["select 'a' as a", "select 1 as a where false", "select 'a' as a, 'b' as b"])
def test_no_numbers_are_no_chart(query: str, odf: Odf, workspace: Path) -> None:
    assert "(E743)" in odf(*SHELL, "-c", query, "--plot").says


def test_what_a_chart_shows() -> None:
    times = pa.array([0, 86_400_000, None], pa.timestamp("ms", "UTC"))
    chart = chart_of(pa.table({"t": times, "a": [1, None, 3], "b": ["x", "y", "z"], "c": [0.5, float("nan"), 2.5]}))
    assert (chart.across, chart.is_time, chart.names) == ("t", True, ())
    assert [(one.name, one.points) for one in chart.series] == [("a", ((0.0, 1.0),)), ("c", ((0.0, 0.5),))]
    assert chart.values == (("t", "1970-01-01T00:00:00Z"), ("a", "1"), ("c", "0.5"))
    assert chart_of(pa.table({"a": [5, 6]})).series[0].points == ((1.0, 5.0), (2.0, 6.0))
    assert chart_of(pa.table({"a": [5, 6], "b": [1, 2]})).series[0].points == ((5.0, 1.0), (6.0, 2.0))
    far = chart_of(pa.table({"a": [1e308, -1e308, 0.0, 1.0], "b": [0.0, 1.0, float("inf"), 2.0]}))
    assert far.series[0].points == ((1.0, 2.0),)
    spans = pa.array([pa.MonthDayNano([0, 1, 0])], pa.month_day_nano_interval())
    assert len(chart_of(pa.table({"a": spans, "b": [1]})).names) == 1
    with pytest.raises(NothingToPlot, match="null, or not finite"):
        chart_of(pa.table({"a": pa.array([None], pa.float64()), "b": [1]}))
    bars = chart_of(pa.table({"a": [str(number) for number in range(100)], "b": range(100)}))
    assert len(bars.names) == MAX_BARS
    with pytest.raises(NothingToPlot):
        chart_of(pa.table({"a": ["x"]}))


def test_bars_are_as_long_as_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    chart = chart_of(pa.table({"city": ["Zürich", "日本", None], "n": [4, -2, 0]}))
    assert isinstance(chart, Chart)
    lines = draw(chart).splitlines()
    assert lines[0].count("█") == 2 * lines[1].count("█") > 0
    assert lines[1].startswith("日本    -█")
    assert lines[2] == "(none)   0"
