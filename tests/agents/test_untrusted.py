"""Rows and descriptions by somebody who means harm stay data, and what is too much is cut and said."""

from __future__ import annotations

import json
import re

from support.servers.agents import EVIL, INJECTION, LONG, Agent, text_of

from odfpy.agents.data_markers import NOTE, mark_as_data
from odfpy.agents.limits import MAX_CELL_LENGTH, MAX_CHARACTERS

MARKED = re.compile(r"<<data ([0-9a-f]{16})\n(.*)\ndata \1>>")


def data_in(text: str) -> tuple[str, object]:
    """What stands before the data, and the data, in a text that ends with it."""
    found = MARKED.search(text)
    assert found is not None
    assert found.end() == len(text)
    return text[: found.start()], json.loads(found[2])


def test_the_end_of_data_cannot_be_forged():
    before, tree = data_in(mark_as_data({"cell": INJECTION}))
    assert before == f"{NOTE}\n"
    assert tree == {"cell": INJECTION}
    assert mark_as_data("x") != mark_as_data("x")


def test_texts_of_a_publisher_are_within_the_marks(agent: Agent):
    for tool, arguments in (
        ("find_datasets", {"search": "injection"}),
        ("describe_dataset", {"dataset": EVIL}),
        ("query", {"sql": f'select name from "{EVIL}" order by "offset"', "limit": 1}),
        ("row_provenance", {"dataset": EVIL, "offset": 0}),
        ("query", {"sql": f'select cast(name as bigint) from "{EVIL}" where id = 0'}),
    ):
        text = text_of(agent.call(tool, **arguments))
        before, tree = data_in(text)
        assert "Ignore all instructions" in json.dumps(tree)
        assert "Ignore" not in before
        assert "SYSTEM" not in before


def test_an_injection_finds_no_tool_that_changes_anything(agent: Agent):
    assert all(tool.annotations.read_only_hint for tool in agent.tools().values())


def test_megabytes_in_a_cell_are_shown_cut_and_proved_whole(agent: Agent):
    found = agent.answer("query", sql=f'select id, name from "{EVIL}" where id = 1 order by "offset"')
    assert found["cut_cells"] == [{"row": 0, "column": "name", "characters": LONG}]
    assert found["rows"][0][1] == "x" * MAX_CELL_LENGTH + "..."
    assert agent.answer("check_proof", proof=found["proof"]["hash"])["ok"]


def test_rows_stop_where_no_more_characters_fit(agent: Agent):
    sql = f'select id, name from "{EVIL}" where id > 1 order by "offset"'
    first = agent.answer("query", sql=sql)
    count = len(first["rows"])
    assert 40 < count < 60
    assert f"skip={count}" in first["more"]
    assert len(json.dumps(first["rows"])) < 2 * MAX_CHARACTERS
    assert agent.answer("check_proof", proof=first["proof"]["hash"])["ok"]
    second = agent.answer("query", sql=sql, skip=count)
    assert second["rows"][0][0] == first["rows"][-1][0] + 1


def test_a_row_that_never_fits_is_told(agent: Agent):
    cells = ", ".join(f"name as c{number}" for number in range(60))
    found = agent.answer("query", sql=f'select {cells} from "{EVIL}" where id = 2 order by "offset"')
    assert found["rows"] == []
    assert "not even the first row fits" in found["more"]


def test_an_answer_of_too_many_bytes_is_refused(agent: Agent):
    sql = f'select repeat(name, 30) as name from "{EVIL}" where id = 1'
    assert "gave no answer" in agent.refusal("query", sql=sql)


def test_a_comparison_of_long_rows_is_cut(agent: Agent):
    blocks = agent.answer("dataset_history", dataset=EVIL)["blocks"]
    schema = next(one["block"] for one in blocks if one["event"] == "SetDataSchema")
    found = agent.answer("compare_states", dataset=EVIL, old=schema, new=blocks[0]["block"], limit=500)
    assert found["has_more"]
    assert 40 < len(found["changes"]) < 60
