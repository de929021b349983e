"""The examples of `docs/python.md` give what stands there."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from support.chains.connecting import RATES
from support.chains.workspaces import derivative, feed, root, workspace_with

import odfpy

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = workspace_with(
        tmp_path,
        root(RATES, "{kind: UpsertStream, primaryKey: [id]}"),
        derivative("com.example.screamed", RATES),
    )
    for day, rows in ((1, ["1 EUR 10", "2 CHF 9"]), (5, ["1 EUR 12"]), (9, ["3 USD 5"])):
        feed(workspace, RATES, *rows, day=day)
    monkeypatch.chdir(tmp_path)
    text = re.sub(r"^```.*$", "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest(text, {"odfpy": odfpy}, PAGE.name, str(PAGE), 0)
    said: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(examples, out=said.append)
    assert done.attempted > 10
    assert not done.failed, "".join(said)
