"""An error of a preprocessing query says which file has the value that the query cannot handle."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from support.chains.csv_sources import csv_source, polled
from support.chains.workspaces import workspace_with

from odfpy.errors import InvalidQuery

QUERY = 'preprocess: {kind: Sql, engine: datafusion, query: "select cast(price as decimal(18, 2)) as price from input"}'
MANIFEST = csv_source(
    "prices", "{name: price, type: String}", source=polled(), merge=f"{{kind: Append}}\n      {QUERY}"
)


def test_the_file_of_many_is_named(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path / "workspace", MANIFEST)
    folder = workspace.root / "in"
    folder.mkdir()
    for name, price in (("monday.csv", "1.50"), ("tuesday.csv", "n/a")):
        (folder / name).write_text(f"price\n{price}\n")
    (result,) = workspace.pull(["prices"])
    assert isinstance(result.error, InvalidQuery)
    assert result.error.message.startswith("tuesday.csv: Preprocessing with engine datafusion: Cannot cast")
    assert workspace.tail("prices", 5)["price"].to_pylist() == [Decimal("1.50")]
