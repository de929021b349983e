"""`odf diff DATASET A B`: what became of each row between two moments."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from support.chains.workspaces import feed, root, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import AddData
from odfpy.coordinator.reading.compare import Change, RowChange
from odfpy.coordinator.workspace import Workspace

if TYPE_CHECKING:
    from cli.conftest import Odf

NAME = "com.example.stock"  # 1 a, corrected to 1 b; 2 c
NESTED = """
kind: DatasetSnapshot
version: 1
content:
  name: ds
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: NdJson}}
      merge: {merge}
"""
ROW = b'{"event_time":"2024-02-01T00:00:00Z","id":%d,"name":"new"}\n'


@pytest.fixture
def changed(workspace: Path, odf: Odf) -> Path:
    odf("tag", NAME, "before")
    assert odf("ingest", NAME, "--stdin", stdin=ROW % 2 + ROW % 7).code == 0
    return workspace


def test_a_person_sees_rows_that_came_went_and_changed(odf: Odf, changed: Path) -> None:
    assert odf("diff", NAME, "before", "head").out == (
        f"{NAME}: before to head, by id: 1 added, 0 removed, 1 changed\n"
        "\n"
        "   id  event_time                                    name\n"
        "~   2  2024-01-01T00:00:00Z -> 2024-02-01T00:00:00Z  c -> new\n"
        "+   7  2024-02-01T00:00:00Z                          new\n"
    )
    assert "- " in odf("diff", NAME, "head", "before").out
    shown = odf("diff", NAME, "before", "head", "--rows", "1")
    assert shown.err == "1 more row; --rows shows more\n"


def test_programs_get_old_and_new_cells(odf: Odf, changed: Path) -> None:
    old = {"event_time": "2024-01-01T00:00:00Z", "id": 2, "name": "c"}
    new = {"event_time": "2024-02-01T00:00:00Z", "id": 2, "name": "new"}
    records = [
        {"change": "changed", "count": 1, "key": {"id": 2}, "old": old, "new": new},
        {"change": "added", "count": 1, "key": {"id": 7}, "old": None, "new": {**new, "id": 7}},
    ]
    assert odf("diff", NAME, "before", "head", "-o", "json").json == records
    printed = odf("diff", NAME, "before", "head", "-o", "ndjson").out
    assert [json.loads(line) for line in printed.splitlines()] == records
    assert odf("diff", NAME, "before", "head", "-o", "yaml").out.startswith("- change: changed\n")
    assert odf("diff", NAME, "before", "head", "-o", "csv").out == (
        "change,count,event_time,id,name\n"
        "-C,1,2024-01-01T00:00:00Z,2,c\n"
        "+C,1,2024-02-01T00:00:00Z,2,new\n"
        "+A,1,2024-02-01T00:00:00Z,7,new\n"
    )


def test_moments_are_blocks_tags_branches_and_times(odf: Odf, changed: Path) -> None:
    block = next(Workspace.open(changed).datasets.log(f"{NAME}@before"))
    before, number = str(block.hash), block.block.sequence_number
    expected = odf("diff", NAME, "before", "head", "-o", "json").json
    for moment in (before, before[:16], str(number)):
        assert odf("diff", NAME, moment, "2999-01-01", "-o", "json").json == expected
    assert odf("ingest", NAME, "--stdin", "--branch", "staging", stdin=ROW % 9).code == 0
    (added,) = odf("diff", NAME, "head", "staging", "-o", "json").json
    assert (added["change"], added["key"]) == ("added", {"id": 9})


def test_the_exit_code_tells_a_script(odf: Odf, changed: Path) -> None:
    assert odf("diff", NAME, "before", "head").code == 0
    assert odf("diff", NAME, "before", "head", "--exit-code").code == 1
    assert odf("diff", NAME, "head", "head", "--exit-code").code == 0
    assert odf("diff", NAME, "nothing", "head", "--exit-code").code == 2
    odf("ingest", NAME, "--stdin", "--branch", "staging", stdin=ROW % 9)
    assert odf("diff", NAME, "staging", "--exit-code").code == 1


def test_a_key_may_be_given(odf: Odf, changed: Path) -> None:
    """Of several rows of a key, the last counts."""
    (one, other) = odf("diff", NAME, "before", "head", "--key", "event_time", "-o", "json").json
    assert (one["change"], one["old"]["id"], one["new"]["id"]) == ("changed", 2, 1)
    assert (other["change"], other["new"]["id"]) == ("added", 7)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([NAME, "nothing", "head"], "has no block, tag or branch 'nothing'"),
        ([NAME, "0", "2020-01-01"], "did not exist yet at 2020-01-01T00:00:00Z"),
        ([NAME, "0", "2020-13-01"], "Not a time: '2020-13-01'"),
        ([NAME, "0", "head", "--key", "idd"], "Did you mean id?"),
        ([NAME, "staging", "--key", "id"], "--key needs two versions to compare"),
        (["com.example.empty", "0", "head"], "no data yet"),
    ],
)
def test_wrong_input_is_told(words: list[str], says: str, odf: Odf, workspace: Path) -> None:
    assert says in odf("diff", *words).says


# --- Against a model -------------------------------------------------------------------------------------------------


def states(workspace: Workspace, name: str) -> list[list[dict[str, Any]]]:
    """The rows that are there after each block with data, by replaying the log."""
    found: list[list[dict[str, Any]]] = []
    rows: list[dict[str, Any]] = []
    log = workspace.tail(name, 10_000).to_pylist()
    for at, row in enumerate(log):
        time = row["event_time"].strftime("%Y-%m-%dT%H:%M:%SZ")
        cells = {"event_time": time, "id": row["id"], "name": row["name"]}
        if row["op"] in (0, 3):
            rows.append(cells)
        else:
            rows.remove(cells)
        if at + 1 == len(log) or log[at + 1]["system_time"] != log[at]["system_time"]:
            found.append([*rows])
    return found


@pytest.mark.parametrize("merge", ["{kind: Snapshot, primaryKey: [id]}", "{kind: Append}"])
def test_differences_are_those_of_the_states(merge: str, tmp_path: Path) -> None:
    random = Random(7)
    workspace = workspace_with(tmp_path / "workspace", root("ds", merge))
    for _ in range(3):
        chosen = random.sample(range(8), 5) if "Snapshot" in merge else random.choices(range(3), k=4)
        feed(workspace, "ds", *(f"{key} {random.choice('ab') if random.random() < 0.8 else ''}" for key in chosen))
    added = [one.block for one in workspace.datasets.log("ds") if isinstance(one.block.event, AddData)]
    blocks = [str(block.sequence_number) for block in reversed(added)]
    models = states(workspace, "ds")
    assert len(blocks) == len(models) == 3
    for a, old in zip(blocks, models, strict=True):
        for b, new in zip(blocks, models, strict=True):
            with workspace.compare("ds", a, b) as found:
                assert list(found) == (by_key if found.key else by_rows)(old, new)


def by_key(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[RowChange]:
    before, after = ({row["id"]: row for row in rows} for rows in (old, new))
    changes = []
    for key in sorted({*before, *after}):
        a, b = before.get(key), after.get(key)
        if a != b:
            what = Change.ADDED if a is None else Change.REMOVED if b is None else Change.CHANGED
            changes.append(RowChange(what, {"id": key}, a, b))
    return changes


def by_rows(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[RowChange]:
    counts = Counter(tuple(row.items()) for row in new)
    counts.subtract(tuple(row.items()) for row in old)
    found = [
        RowChange(Change.ADDED, {}, None, dict(row), count)
        if count > 0
        else RowChange(Change.REMOVED, {}, dict(row), None, -count)
        for row, count in counts.items()
        if count
    ]
    return sorted(found, key=lambda one: [(v is None, v) for v in (one.old or one.new or {}).values()])


def test_a_column_that_came_later_was_empty_before(tmp_path: Path) -> None:
    manifest = root("ds", "{kind: UpsertStream, primaryKey: [id]}")
    workspace = workspace_with(tmp_path / "workspace", manifest)
    feed(workspace, "ds", "1 a", "2 b")
    feed(workspace, "ds", "3 c")
    note = "\n            - {name: note, type: {kind: Option, inner: String}}"
    more = manifest.replace("inner: String}}", f"inner: String}}}}{note}")
    workspace.add(list(load_snapshots(more, "manifest")), replace=True)
    file = tmp_path / "more.ndjson"
    file.write_text('{"event_time":"2024-01-02T00:00:00Z","id":2,"name":"b","note":"n"}\n')
    (result,) = workspace.ingest("ds", [file])
    assert result.error is None
    with workspace.compare("ds", str(3), "head") as found:
        assert [(one.change.value, one.key["id"]) for one in found] == [("changed", 2), ("added", 3)]


@pytest.mark.parametrize("key", ["id", "k", ""])
def test_a_member_of_a_struct_that_came_later_was_empty_before(key: str, tmp_path: Path) -> None:
    """Structs of other types cannot be compared, and a struct may be what rows are known by."""
    merge = "{kind: Snapshot, primaryKey: [id]}" if key else "{kind: Append}"
    workspace = workspace_with(tmp_path / "workspace", NESTED.format(merge=merge))
    states = [
        ({"a": 1, "in": {"x": 1}}, {"a": 2, "in": {"x": 1}}, None),
        ({"a": 1, "b'c": "x", "in": {"y": [1], "x": 1}}, {"a": 2, "in": {"x": 1}}, None),
    ]
    for state in states:
        rows = [{"event_time": "2024-01-01T00:00:00Z", "id": number, "k": k} for number, k in enumerate(state)]
        file = tmp_path / "rows.ndjson"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        assert [result.error for result in workspace.ingest("ds", [file])] == [None]
    whole = [k and {**k, "b'c": None, "in": {"x": 1, "y": None}} for k in states[0]]
    new = {"a": 1, "in": {"y": [1], "x": 1}, "b'c": "x"}
    with workspace.compare("ds", str(3), "head", key=[key] if key else []) as found:
        changes = [((one.old or {}).get("k"), (one.new or {}).get("k")) for one in found]
    if key == "id":
        assert changes == [(whole[0], new)]
    elif key == "k":
        assert sorted(changes, key=str) == sorted([(whole[0], None), (None, new)], key=str)
    else:
        assert sorted(changes, key=str) == sorted([(None, new), (None, whole[1]), (None, None)], key=str)


@pytest.mark.parametrize("key", ["id", "__is", ""])
def test_columns_may_have_any_names(key: str, tmp_path: Path) -> None:
    merge = "{kind: Snapshot, primaryKey: [id]}" if key else "{kind: Append}"
    workspace = workspace_with(tmp_path / "workspace", NESTED.format(merge=merge))
    names = ("__is", "__n", "__count", "__change", "__odf", "__odf_", "a0", "b1", "a")
    file = tmp_path / "rows.ndjson"
    for value in (1, 2):
        row = {"event_time": "2024-01-01T00:00:00Z", "id": 1, **dict.fromkeys(names, value)}
        file.write_text(f"{json.dumps(row)}\n")
        assert [result.error for result in workspace.ingest("ds", [file])] == [None]
    with workspace.compare("ds", str(3), "head", key=[key] if key else []) as found:
        changes = [((one.old or {}).get("__is"), (one.new or {}).get("a0")) for one in found]
    both = {"id": [(1, 2)], "__is": [(None, 2), (1, None)], "": [(None, 2)]}
    assert sorted(changes, key=str) == sorted(both[key], key=str)
