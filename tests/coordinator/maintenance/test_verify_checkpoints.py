"""Checkpoints are a cache: `odf verify` remarks on those that are gone, and names those that are not what they were."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import copied, derivative, feed, root, workspace_with

from odfpy.cli.app import run
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.engine.contract import TransformRequest, TransformResponse
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.engine.registry import EngineRegistry


@dataclass(frozen=True)
class Keeping(DataFusionEngine):
    """An engine that keeps something between its runs."""

    went_on_from: list[str | None] = field(default_factory=list)

    def transform(self, request: TransformRequest) -> TransformResponse:
        self.went_on_from.append(request.prev_checkpoint_path)
        Path(request.new_checkpoint_path).write_text(f"kept for {request.dataset_alias} at {request.next_offset}")
        return super().transform(request)


def keep(patch: pytest.MonkeyPatch) -> Keeping:
    """Let workspaces use such an engine."""
    engine = Keeping()
    patch.setattr(EngineRegistry, "standard", lambda *_, **__: EngineRegistry({"datafusion": lambda: engine}))
    return engine


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A derivative that has been pulled three times, and another one."""
    with pytest.MonkeyPatch.context() as patch:
        keep(patch)
        folder = tmp_path_factory.mktemp("prepared")
        made = workspace_with(folder, root(merge="{kind: Append}"), derivative(), derivative("other"))
        for day in (1, 2, 3):
            feed(made, "root", f"{day}1 a", f"{day}2 b", day=day)
            assert [result.outcome for result in made.pull(["derived", "other"])] == [PullOutcome.UPDATED] * 2
    return made


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Keeping:
    return keep(monkeypatch)


@pytest.fixture
def workspace(prepared: Workspace, engine: Keeping, tmp_path: Path) -> Workspace:
    del engine
    return copied(prepared, tmp_path / "w")


def checkpoints(workspace: Workspace, name: str = "derived") -> list[Path]:
    """The files, in the order of the blocks that name them."""
    dataset = workspace.storage.get(name)
    events = [hashed.block.event for hashed in reversed(list(dataset.chain.iter_blocks()))]
    found = [event.new_checkpoint for event in events if getattr(event, "new_checkpoint", None)]
    return [dataset.folder / "checkpoints" / str(one.physical_hash) for one in found]


Verify = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def verify(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> Verify:
    """`odf verify derived`: exit code and report."""

    def call(*options: str) -> tuple[int, dict[str, Any]]:
        capfd.readouterr()
        code = run(["-w", str(workspace.root), "verify", "derived", "-o", "json", *options])
        (report,) = json.loads(capfd.readouterr().out)
        return code, report

    return call


OPTIONS: list[list[str]] = [[], ["--from-start"], ["--integrity"]]


@pytest.mark.parametrize("options", OPTIONS, ids=["checkpoints", "from-start", "integrity"])
def test_checkpoints_that_are_gone_are_one_remark_and_the_data_is_valid(
    workspace: Workspace, verify: Verify, options: list[str]
) -> None:
    first, second, last = checkpoints(workspace)
    for gone, message in (
        (second, "Missing checkpoint"),
        (first, "Missing checkpoints: 2 of 3; the last one"),
        (last, "Missing checkpoints: 3 of 3; the last one"),
    ):
        gone.unlink()
        code, report = verify(*options)
        assert (code, report["ok"]) == (0, True)
        (finding,) = report["findings"]
        assert (finding["severity"], finding["check"], finding["message"]) == ("warning", "checkpoint", message)
        assert finding["file"] == str(last if gone == last else second)
        assert "Nothing is lost" in finding["hint"]
        assert report["transformsReplayed"] == (0 if options == ["--integrity"] else 3)


DAMAGES: dict[str, Callable[[Path, Path], bytes]] = {
    "a byte": lambda file, _: bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:],
    "its end": lambda file, _: file.read_bytes()[:-1],
    "all": lambda _, __: b"",
    "that of another dataset": lambda _, other: other.read_bytes(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_checkpoint_that_is_wrong_is_named_and_not_used(
    workspace: Workspace, engine: Keeping, verify: Verify, damage: str
) -> None:
    wrong = checkpoints(workspace)[1]
    block = next(
        str(hashed.hash)
        for hashed in workspace.storage.get("derived").chain.iter_blocks()
        if (kept := getattr(hashed.block.event, "new_checkpoint", None)) and str(kept.physical_hash) == wrong.name
    )
    wrong.write_bytes(DAMAGES[damage](wrong, checkpoints(workspace, "other")[1]))
    del engine.went_on_from[:]
    for options in OPTIONS:
        code, report = verify(*options)
        assert (code, report["ok"]) == (1, False)
        (finding,) = report["findings"]
        assert (finding["severity"], finding["file"], finding["block"]) == ("error", str(wrong), block)
        assert finding["message"].startswith("Damaged checkpoint: ")
        assert finding["hint"].startswith("Delete the file, or copy")
        assert report["transformsReplayed"] == (0 if options == ["--integrity"] else 3)
    assert str(wrong) not in engine.went_on_from
    wrong.unlink()
    assert verify()[0] == 0


def test_a_pull_goes_on_without_the_last_checkpoint_but_not_from_a_wrong_one(
    workspace: Workspace, engine: Keeping
) -> None:
    last = checkpoints(workspace)[-1]
    for damage in DAMAGES.values():
        whole = last.read_bytes()
        last.write_bytes(damage(last, checkpoints(workspace, "other")[-1]))
        feed(workspace, "root", "9 z", day=9)
        head = workspace.storage.get("derived").state.head
        (result,) = workspace.pull(["derived"])
        assert result.error is not None
        assert "Damaged checkpoint" in result.error.message
        assert str(last) in result.error.message
        assert "Delete the file" in (result.error.hint or "")
        assert workspace.storage.get("derived").state.head == head
        last.write_bytes(whole)
    last.unlink()
    (result,) = workspace.pull(["derived"])
    assert (result.outcome, engine.went_on_from[-1]) == (PullOutcome.UPDATED, None)
    (report,) = workspace.verify(["derived"])
    assert report.ok
