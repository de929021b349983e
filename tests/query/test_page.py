"""The hour-glass of `docs/query.md` is what comes of its ingests."""

from __future__ import annotations

import re
from pathlib import Path

from support.chains.workspaces import feed, root, workspace_with

from odfpy.query.service import Query

PAGE = Path(__file__).resolve().parents[2] / "docs" / "query.md"
INGESTS = ([(1, "1 EUR 10")], [(5, "1 EUR 12")], [(5, "1 EUR 11"), (7, "2 USD 5")])
DAYS = (3, 6, 8)


def test_the_hour_glass(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("rates", "{kind: UpsertStream, primaryKey: [id]}"))
    heads = []
    for rows in INGESTS:
        for day, row in rows:
            feed(workspace, "rates", row, day=day)
        heads.append(workspace.storage.get("rates").chain.head())

    def shown(table: str) -> str:
        with workspace.query_service.run(Query(f"SELECT name FROM {table} ORDER BY name", "datafusion")) as answer:
            return ", ".join(answer.read_all().column(0).to_pylist())

    found = [
        [
            *(shown(f"odf_as_at_of('rates', '{head}', '2024-01-0{day}')") for day in DAYS),
            shown(f"odf_as_at('rates', '{head}')"),
        ]
        for head in heads
    ]
    lines = re.findall(r"^\| as at ingest .*\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [[cell.strip() for cell in line.split("|")[2:-1]] for line in lines] == found
    assert found[-1] == [
        *(shown(f"odf_as_of('rates', '2024-01-0{day}')") for day in DAYS),
        shown("odf_current('rates')"),
    ]
