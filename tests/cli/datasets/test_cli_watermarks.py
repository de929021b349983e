"""Watermarks at the terminal: what holds them back, through several levels; settings of a dataset; moving one by hand."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with

from odfpy.coordinator.storage.results import DatasetHandle, LineageNode
from odfpy.coordinator.workspace import Workspace
from odfpy.dataset.identity import DatasetId, KeyPair
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetAlias

if TYPE_CHECKING:
    from cli.conftest import Odf

SAME = "select op, event_time, id, name from source"
BOTH = (
    derivative("both")
    .replace("[{datasetRef: root, alias: source}]", "[{datasetRef: fast}, {datasetRef: slow}]")
    .replace("from source where id > 1", "from fast union all select op, event_time, id, name from slow")
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`fast` and `slow`, `both` of them, `deep` derived from that; `late` is derived from `fast` and never pulled."""
    folder = tmp_path_factory.mktemp("made") / "workspace"
    workspace = workspace_with(
        folder, root("fast"), root("slow"), BOTH, derivative("deep", "both", SAME), derivative("late", "fast", SAME)
    )
    feed(workspace, "fast", "1 a", day=20)
    feed(workspace, "slow", "1 a", day=2)
    assert [result.error for result in workspace.pull(["both", "deep"])] == [None, None]
    return folder


@pytest.fixture
def levels(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A copy of it, which is the current folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Workspace.open(tmp_path)


def new_id() -> DatasetId:
    return KeyPair.generate().dataset_id


def lineage(odf: Odf, name: str) -> list[str]:
    return odf("inspect", "lineage", name).out.splitlines()


def test_the_lineage_shows_which_input_holds_the_watermark_back(odf: Odf, levels: Workspace) -> None:
    assert lineage(odf, "deep") == [
        "deep  derivative, watermark 2024-01-02T00:00:00Z",
        "└─ both  derivative, watermark 2024-01-02T00:00:00Z  <- holds it back",
        "   ├─ fast  root, watermark 2024-01-20T00:00:00Z",
        "   └─ slow  root, watermark 2024-01-02T00:00:00Z  <- holds it back",
    ]
    assert lineage(odf, "late")[0] == "late  derivative, no watermark"
    assert "holds" not in lineage(odf, "late")[1], "it has not been pulled"
    tree = odf("inspect", "lineage", "both", "-o", "json").json
    assert [(item["name"], item["takenIn"], item["holdsBack"]) for item in tree["inputs"]] == [
        ("fast", "2024-01-20T00:00:00Z", False),
        ("slow", "2024-01-02T00:00:00Z", True),
    ]


def test_an_input_that_is_further_already_only_needs_a_pull(odf: Odf, levels: Workspace) -> None:
    assert odf("pull", "slow", "--set-watermark", "2024-01-10").code == 0
    told = "slow  root, watermark 2024-01-10T00:00:00Z, ingested up to 2024-01-02T00:00:00Z  <- holds it back"
    assert lineage(odf, "both")[2] == f"└─ {told}"
    assert [result.num_blocks for result in levels.pull(["both"])] == [1]
    assert odf("show", "deep", "-o", "json").json["heldBackBy"] == ["both"], "it is that which is further now"
    assert [result.error for result in levels.pull(["deep"])] == [None]
    assert odf("show", "deep", "-o", "json").json["heldBackBy"] == ["slow"]


def test_an_input_without_a_watermark_holds_back_most(odf: Odf, tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("fast"), root("slow"), BOTH)
    workspace.settings_of("slow").set("watermark.lag", "999999w")  # so that it never gets one
    feed(workspace, "fast", "1 a", day=20)
    feed(workspace, "slow", "1 a", day=2)
    assert [result.watermark for result in workspace.pull(["both"])] == [None]
    assert odf("-w", str(tmp_path), "inspect", "lineage", "both").out.splitlines() == [
        "both  derivative, no watermark",
        "├─ fast  root, watermark 2024-01-20T00:00:00Z",
        "└─ slow  root, no watermark  <- holds it back",
    ]


def test_each_dataset_is_looked_at_once_however_many_ways_lead_to_it() -> None:
    """Thirty levels, each twice derived from the one below: a thousand million ways."""
    root_ = LineageNode(DatasetHandle(new_id(), DatasetAlias.parse("root")), DatasetKind.ROOT, (), holds_back=True)
    node = root_
    for level in range(30):
        handle = DatasetHandle(new_id(), DatasetAlias.parse(f"level-{level}"))
        node = LineageNode(handle, DatasetKind.DERIVATIVE, (node, node), holds_back=True)
    assert node.held_back_by == (root_.handle,)


def test_show_has_the_inputs_as_they_are_taken_in(odf: Odf, levels: Workspace) -> None:
    shown = odf("show", "both", "-o", "json").json
    assert shown["watermark"] == "2024-01-02T00:00:00Z"
    assert shown["heldBackBy"] == ["slow"]
    assert shown["inputWatermarks"][1] == {
        "name": "slow",
        "watermark": "2024-01-02T00:00:00Z",
        "takenIn": "2024-01-02T00:00:00Z",
        "holdsBack": True,
    }


@pytest.mark.parametrize("wide", [("--wide",), ("-w",), ("-w", "-o", "table")])
def test_the_wide_list_names_what_holds_back(wide: tuple[str, ...], odf: Odf, levels: Workspace) -> None:
    head, *lines = odf("list", *wide).out.splitlines()
    watermark, held = head.index("Watermark"), head.index("Held back by")
    blocks = head.index("Blocks")
    assert [(line.split()[0], line[watermark:held].strip(), line[held:blocks].strip()) for line in lines] == [
        ("both", "2024-01-02T00:00:00Z", "slow"),
        ("deep", "2024-01-02T00:00:00Z", "slow"),
        ("fast", "2024-01-20T00:00:00Z", ""),
        ("late", "", ""),
        ("slow", "2024-01-02T00:00:00Z", ""),
    ]


def test_with_a_folder_w_is_still_the_workspace(
    odf: Odf, levels: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert [record["name"] for record in odf("list", "-w", str(tmp_path), "-o", "json").json][:2] == ["both", "deep"]
    assert odf("-w", str(tmp_path), "list", "-w").out.splitlines()[0].split()[-1] == "Head"


def test_what_cannot_be_read_does_not_keep_the_rest_from_being_shown(odf: Odf, levels: Workspace) -> None:
    folder = levels.storage.get("slow").folder
    (folder / "refs" / "head").write_text("no hash")
    listed = odf("list", "-w", "-o", "json")
    assert listed.code == 1
    assert {record["name"]: record.get("heldBackBy") for record in listed.json} == {
        "both": [], "deep": [], "fast": [], "late": [], "slow": None,
    }  # fmt: skip
    shown = odf("show", "both", "-o", "json")
    assert (shown.code, shown.json["inputs"]) == (0, ["fast", "slow"])


# --- Settings of a dataset -------------------------------------------------------------------------------------------


def test_settings_of_a_dataset(odf: Odf, levels: Workspace) -> None:
    assert odf("config", "get", "--dataset", "slow", "watermark.lag").out == "0s\n"
    told = odf("config", "set", "--dataset", "slow", "watermark.lag", "P1D")
    assert told.err.startswith("watermark.lag is now P1D (")
    assert odf("config", "set", "watermark.idle", "12h", "-d", "slow").code == 0
    listed = odf("config", "list", "--dataset", "slow", "-o", "json").json
    settings = {"watermark.lag": "P1D", "watermark.idle": "12h"}
    assert {item["key"]: item["value"] for item in listed} == {
        **settings,
        "retractions.share": "50%",
        "copy.files": "all",
    }
    assert odf("show", "slow", "-o", "json").json["settings"] == settings
    assert "Watermark\nlag: 1d\nidle: 12h\n" in odf("inspect", "source", "slow").out
    assert odf("config", "unset", "--dataset", "slow", "watermark.idle").err == "watermark.idle is now not set\n"
    assert odf("config", "unset", "--dataset", "slow", "watermark.lag").err == "watermark.lag is now 0s (default)\n"
    assert "settings" not in odf("show", "slow", "-o", "json").json
    assert "watermark.lag" not in odf("config", "list").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["set", "-d", "slow", "watermark.lag", "1 day"],
            "watermark.lag is a duration such as 30m, 12h, 1d or PT1H, not",
        ),
        (["set", "-d", "slow", "watermark.lag", "-1d"], "No such option"),
        (["set", "-d", "slow", "watermark.lagg", "1d"], "Did you mean watermark.lag?"),
        (["set", "-d", "slow", "engine.memory", "1g"], "Omit --dataset."),
        (["set", "watermark.lag", "1d"], "Add --dataset NAME."),
        (["set", "-d", "slow", "watermark.lag", "1d", "--user"], "Omit --user or --dataset."),
        (["set", "-d", "both", "watermark.lag", "1d"], "both is derivative: its watermark follows from its inputs"),
        (["list", "-d", "both"], "`odf inspect lineage both` shows which input holds it back."),
        (["unset", "-d", "slow", "nothing"], "`odf config list --dataset NAME` shows all of them."),
    ],
)
def test_wrong_settings_of_a_dataset(words: list[str], said: str, odf: Odf, levels: Workspace) -> None:
    refused = odf("config", *words)
    assert refused.code == 2
    assert said in refused.says


def test_a_dataset_that_is_not_there(odf: Odf, levels: Workspace) -> None:
    refused = odf("config", "get", "-d", "slwo", "watermark.lag")
    assert (refused.code, "Did you mean slow?" in refused.says) == (1, True)


# --- By hand ---------------------------------------------------------------------------------------------------------


def test_moving_a_watermark_by_hand(odf: Odf, levels: Workspace) -> None:
    moved = odf("pull", "slow", "--set-watermark", "2024-01-10T12:00:00+02:00")
    assert moved.err.startswith("slow: updated, 0 records in 1 block, watermark 2024-01-10T10:00:00Z (")
    assert odf("pull", "slow", "--set-watermark", "2024-01-10T10:00:00Z").err.startswith("slow: up to date")
    back = odf("pull", "slow", "--set-watermark", "2024-01-09")
    assert len(moved.err.splitlines()) == 1
    assert (back.code, "at 2024-01-10T10:00:00Z already and cannot go back to 2024-01-09" in back.says) == (1, True)
    far = odf("pull", "slow", "--set-watermark", "9999-01-01")
    assert far.err.splitlines()[1] == "  note: it is in the future: until then, all rows will be late"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["both", "--set-watermark", "2024-02-01"], "both is derivative"),
        (["slow", "--set-watermark", "soon"], "Not a time: 'soon'"),
        (["slow", "fast", "--set-watermark", "2024-02-01"], "exactly one dataset"),
        (["s%", "--set-watermark", "2024-02-01"], "s%"),
        (["--all", "--set-watermark", "2024-02-01"], "exactly one dataset"),
    ],
)
def test_watermarks_that_cannot_be_moved(words: list[str], said: str, odf: Odf, levels: Workspace) -> None:
    heads = {summary.head for summary in levels.datasets.all()}
    refused = odf("pull", *words)
    assert refused.code == 2
    assert said in refused.says
    assert {summary.head for summary in levels.datasets.all()} == heads


def test_late_rows_are_counted_against_the_watermark_of_the_policy(odf: Odf, levels: Workspace) -> None:
    levels.settings_of("slow").set("watermark.lag", "3d")
    assert "watermark 2024-01-06T00:00:00Z (2 rows read: 1 new, 1 corrected, 1 late; " in told(
        odf, (9, 1, "b"), (2, 2, "b")
    )
    assert "watermark 2024-01-06T00:00:00Z (2 rows read: 2 corrected, 1 late; " in told(odf, (7, 1, "c"), (6, 2, "c"))


def told(odf: Odf, *rows: tuple[int, int, str]) -> str:
    """What is said of an ingest of rows given as day, id and name."""
    lines = (f'{{"event_time":"2024-01-{day:02d}T00:00:00Z","id":{key},"name":"{name}"}}\n' for day, key, name in rows)
    return odf("ingest", "slow", "--stdin", stdin="".join(lines).encode()).err
