"""`%odf` and `%%odf` in an IPython of this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell
from support.chains.connecting import RATES
from traitlets.config import Config

import odfpy
from odfpy.client.connection import Connection
from odfpy.client.magic import OdfMagics, read_line
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import UsageError


@pytest.fixture
def shell(here: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """With the extension, and a connection in the variable `odf`; it remembers nothing."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    found = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    found.run_cell("%load_ext odfpy")
    found.user_ns["odf"] = here
    yield found
    found.restore_sys_module_state()


def run(shell: Any, cell: str) -> Any:
    done = shell.run_cell(cell)
    if done.error_in_exec is not None:
        raise done.error_in_exec
    return done.result


def test_a_cell_of_sql_gives_rows(shell: Any) -> None:
    rows = run(shell, f'%%odf\nSELECT id\nFROM "{RATES}"\nWHERE op = 0')
    assert rows.to_arrow().to_pydict() == {"id": [1, 2, 3]}


def test_the_answer_goes_into_a_variable(shell: Any) -> None:
    assert run(shell, f'%%odf --to pandas > found\nSELECT max(id) AS m FROM "{RATES}"') is None
    assert isinstance(shell.user_ns["found"], pd.DataFrame)
    assert shell.user_ns["found"]["m"].tolist() == [3]


def test_a_line_of_sql_is_an_expression(shell: Any) -> None:
    run(shell, f'found = %odf --to arrow SELECT id FROM "{RATES}" WHERE id > 2')
    assert shell.user_ns["found"] == pa.table({"id": [3]}, shell.user_ns["found"].schema)


def test_options_of_a_query(shell: Any, workspace: Workspace) -> None:
    rows = run(shell, f"%%odf --engine spark --limit 2\nSELECT * FROM `{RATES}`")
    assert len(rows) == 2
    first, *_ = (block for block in reversed(list(workspace.datasets.log(RATES))) if block.block.sequence_number == 3)
    at = first.block.system_time
    assert run(shell, f'%odf --as-at {at} SELECT count(*) AS n FROM "{RATES}"').table.to_pydict() == {"n": [2]}
    shell.user_ns["least"] = 2
    found = run(shell, f'%%odf --with least --timeout 60 --to polars\nSELECT id FROM "{RATES}" WHERE id > ?')
    assert found["id"].to_list() == [3]


def test_the_connection_is_the_only_one_or_the_one_that_is_named(shell: Any, workspace: Workspace) -> None:
    shell.user_ns["other"] = odfpy.connect(workspace)
    with pytest.raises(UsageError, match="several connections: odf, other"):
        run(shell, "%odf SELECT 1 AS one")
    for place in ("odf", f"'{workspace.root}' --engine datafusion"):
        assert run(shell, f"%odf --in {place} SELECT 1 AS one").table.to_pydict() == {"one": [1]}


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%odf", "no query"),
        ("%%odf\n ", "no query"),
        ("%odf --engin spark SELECT 1", "no option --engin"),
        ("%odf --help", "Not an option with its value: --help"),
        ("%%odf --limit\nSELECT 1", "Not an option with its value: --limit"),
        ("%%odf --limit -1\nSELECT 1", "--limit must be a number, 0 or more, not -1"),
        ("%%odf SELECT 1\nSELECT 1", "Not understood in the first line: SELECT 1"),
        ("%%odf > 1a\nSELECT 1", "Not a name of a variable: 1a"),
        ("%%odf --limit few\nSELECT 1", "0 or more, not few"),
        ("%%odf --to panda\nSELECT 1", "No frame is called 'panda'"),
        ("%%odf --with nobody\nSELECT ?", "No variable is called 'nobody'"),
        ("%%odf --engine duckdb\nSELECT 1", "No engine is called 'duckdb'"),
    ],
)
def test_what_makes_no_sense(shell: Any, cell: str, said: str) -> None:
    with pytest.raises(odfpy.OdfError, match=said):
        run(shell, cell)


def test_errors_are_shown_without_a_traceback(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell('%%odf\nSELECT * FROM "com.example.rate"')
    shown = capsys.readouterr()
    assert "Did you mean com.example.rates?" in shown.out + shown.err
    assert "Traceback" not in shown.out + shown.err


def test_the_first_line_is_read_option_by_option() -> None:
    asked = read_line(""" --as-at "2024-01-01 10:00" --engine=spark > rows """, is_cell=True)
    assert (dict(asked.options), asked.target) == ({"as-at": "2024-01-01 10:00", "engine": "spark"}, "rows")
    assert read_line("SELECT 1 > 0 -- no option", is_cell=False).rest == "SELECT 1 > 0 -- no option"


def test_the_help_names_every_option() -> None:
    from odfpy.client.magic import _OPTIONS

    assert all(f"--{option}" in str(OdfMagics.odf.__doc__) for option in _OPTIONS)
