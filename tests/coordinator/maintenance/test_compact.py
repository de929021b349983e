"""Compaction: fewer, larger slices, and nothing else that anybody could tell from the rows or the state."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.chains.workspaces import derivative, feed, root, rows, workspace_with
from support.examples import examples

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import AddData, DataSlice, MetadataEvent, SetDataSchema, SetInfo, SourceState
from odfpy.chain.rules import NoOpEvent
from odfpy.chain.slices import slice_paths, slices_of
from odfpy.chain.state import ChainState
from odfpy.coordinator.ingest.watched_folder import STATE_KIND, FileStamp
from odfpy.coordinator.maintenance.compact import CompactOptions
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataField, DataSchema, Int64, Option, String
from odfpy.data.schemas.system_columns import system_fields
from odfpy.data.slices.slice import read_slice
from odfpy.data.slices.writer import SliceWriter
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.errors import HashMismatch, UsageError

APPEND = "{kind: Append}"
START = Timestamp.parse("2030-01-01T00:00:00Z")
FIRST = DataSchema((*system_fields(DEFAULT_VOCABULARY), DataField("id", Int64())))
MORE = DataSchema((*FIRST.fields, DataField("name", Option(String()))))


def after(hours: int) -> Timestamp:
    return Timestamp(START.nanos + hours * 3600 * 10**9)


# --- Any history -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """Something that happens to a root dataset: rows, a watermark, a source state, a description, a column."""

    rows: int = 0
    watermark: int = 0
    source: str | None = None
    watched: bool = False
    words: str | None = None
    grows: bool = False


STEPS = st.lists(
    st.one_of(
        st.builds(
            Step,
            rows=st.integers(0, 5),
            watermark=st.integers(0, 2),
            source=st.sampled_from([None, "a", "a", "b"]),
            watched=st.booleans(),
        ),
        st.builds(Step, rows=st.integers(1, 5)),
        st.builds(Step, words=st.sampled_from("xy")),
        st.just(Step(grows=True)),
    ),
    max_size=12,
)
OPTIONS = st.builds(CompactOptions, st.sampled_from([1, 4, 9, 1000]), st.sampled_from([1, 5000, 10**9]))


def lived(dataset: StoredDataset, steps: list[Step], folder: Path) -> None:
    """Let all that happen, one commit each."""
    schema, watermark = FIRST, None
    commit(dataset, [SetDataSchema(schema=schema)], 0)
    for number, step in enumerate(steps):
        if step.words is not None:
            commit(dataset, [SetInfo(step.words)], number)
        elif step.grows:
            schema = MORE
            commit(dataset, [SetDataSchema(schema=schema)], number)
        else:
            state = dataset.chain.state()
            if step.watermark:
                watermark = after((0 if watermark is None else (watermark.nanos - START.nanos) // 36 // 10**11) + 1)
            data = written(dataset, schema, state, step.rows, number, folder) if step.rows else None
            kind = STATE_KIND if step.watched else "x"
            value = f"file-{number} 2024-01-01T00:00:00Z {number}" if step.watched else str(number % 3)
            source = None if step.source is None else SourceState(step.source, kind, value)
            commit(dataset, [AddData(None, state.last_offset, data, None, watermark, source)], number)


def commit(dataset: StoredDataset, events: list[MetadataEvent], number: int) -> None:
    chain = dataset.layout.chain
    with suppress(NoOpEvent):
        chain.commit(chain.prepare(chain.state(), events, after(number)))


def written(
    dataset: StoredDataset, schema: DataSchema, state: ChainState, count: int, number: int, folder: Path
) -> DataSlice:
    first = state.next_offset
    values: dict[str, Any] = {
        "offset": range(first, first + count),
        "op": [0] * count,
        "system_time": [after(number).millis] * count,
        "event_time": [after(at % 7).millis for at in range(count)],
        "id": range(count),
        "name": ["a" if at % 2 else None for at in range(count)],
    }
    with SliceWriter(folder / "new", schema, DEFAULT_VOCABULARY) as writer:
        arrow = to_arrow(schema)
        writer.write(pa.table([pa.array(list(values[field.name]), field.type) for field in arrow], schema=arrow))
        info = writer.finish()
    dataset.layout.data.insert_file(folder / "new", info.physical_hash)
    return DataSlice(info.logical_hash, info.physical_hash, OffsetInterval(first, first + count - 1), info.size)


def changelog(dataset: StoredDataset) -> list[dict[str, Any]]:
    """Every row with its system columns, by the slices that the chain names."""
    files = slice_paths(dataset.layout.data, slices_of(dataset.chain.in_order()))
    return [row for file in files for row in read_slice(file).to_pylist()]


def known_files(dataset: StoredDataset) -> set[FileStamp]:
    """Files of a watched folder that were taken in; other states of sources are known by the last one of each."""
    events = (hashed.block.event for hashed in dataset.chain.in_order())
    states = (event.new_source_state for event in events if isinstance(event, AddData))
    found = (FileStamp.of_state(state) for state in states if state is not None)
    return {stamp for stamp in found if stamp is not None}


def meaning(state: ChainState) -> tuple[Any, ...]:
    """What a state says, but for what compaction changes."""
    sources = {one.source_name: one for one in state.source_states}
    return (
        state.dataset_id, state.kind, state.schema, state.vocab, state.info, state.push_sources, state.last_offset,
        state.watermark, sources, state.system_time, state.checkpoint,
    )  # fmt: skip


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a root that is empty."""
    folder = tmp_path_factory.mktemp("empty")
    workspace_with(folder, root(merge=APPEND))
    return folder


A, ROW, WORDS = Step(source="a"), Step(rows=1), Step(words="x")
WIDE = CompactOptions(1000, 10**9)


@settings(max_examples=examples(6, 20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, OPTIONS)
@example([Step(), A, ROW, WORDS, A], CompactOptions(1, 5000)).via("the last block says what the merged one says")
@example([A, ROW, Step(words="y"), A, ROW, WORDS, A], WIDE).via("and so does the one before")
@example([A, WORDS, A, A], WIDE).via("another state in between, and taken back")
def test_compaction_keeps_the_changelog_and_the_state(empty: Path, steps: list[Step], options: CompactOptions) -> None:
    with tempfile.TemporaryDirectory() as place:
        workspace = Workspace.open(shutil.copytree(empty, Path(place) / "workspace"))
        dataset = workspace.storage.get("root")
        lived(dataset, steps, Path(place))
        before, rows_before, files = dataset.chain.state(), changelog(dataset), known_files(dataset)
        plan = workspace.maintenance.plan_compact("root", options)

        result = workspace.maintenance.compact("root", options)

        now = dataset.chain.state()
        assert changelog(dataset) == rows_before
        assert meaning(now) == meaning(before)
        assert known_files(dataset) == files
        slices = slices_of(dataset.chain.in_order())
        assert (result.slices[1], result.blocks[1]) == (len(slices), now.sequence_number + 1)
        assert (plan.changes, plan.slices, plan.old_head) == (result.changes, result.slices, result.old_head)
        assert plan.blocks == result.blocks
        assert result.slices[1] <= result.slices[0]
        assert result.blocks[1] <= result.blocks[0]
        assert (result.blocks[1] < result.blocks[0]) or not result.changes or result.slices[1] < result.slices[0]
        (report,) = workspace.verify(["root"])
        assert {finding.check for finding in report.findings} <= {"clock"}  # the rows are of the future
        if options.max_bytes == 10**9:  # one slice takes less than several, so that another one may fit
            assert not workspace.maintenance.compact("root", options).changes


# --- Single cases ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root of five slices, and two datasets derived from it, one by way of the other."""
    folder = tmp_path_factory.mktemp("prepared")
    made = workspace_with(folder, root(merge=APPEND), derivative(), derivative("further", "derived"))
    for day in range(1, 6):
        feed(made, "root", f"{day} a", f"{day + 1} b", day=day)
    assert [result.error for result in made.pull(all=True)] == [None] * 3
    return folder


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path) -> Workspace:
    return Workspace.open(shutil.copytree(prepared, tmp_path / "workspace"))


def test_small_slices_become_one(workspace: Workspace) -> None:
    before = rows(workspace, "root")
    result = workspace.maintenance.compact("root")
    assert (result.slices, result.blocks) == ((5, 1), (8, 4))
    assert rows(workspace, "root") == before
    assert feed(workspace, "root", "7 x", day=7).num_records == 1, "and it goes on"
    assert rows(workspace, "root") == [*before, "+A 7 x"]


def test_limits_fill_slices_from_the_first_on(workspace: Workspace) -> None:
    result = workspace.maintenance.compact("root", CompactOptions(max_records=4))
    assert result.slices == (5, 3)
    sizes = [item.data.offset_interval for item in slices_of(workspace.storage.get("root").chain.in_order())]
    assert [(one.start, one.end) for one in sizes] == [(0, 3), (4, 7), (8, 9)]


def test_what_is_full_already_stays_when_more_is_compacted(workspace: Workspace) -> None:
    workspace.maintenance.compact("root", CompactOptions(max_records=4))
    chain = workspace.storage.get("root").chain
    before = [hashed.hash for hashed in chain.in_order()]
    for day in (8, 9):
        feed(workspace, "root", f"{day} x", day=day)
    workspace.maintenance.compact("root", CompactOptions(max_records=4))
    now = [hashed.hash for hashed in chain.in_order()]
    assert len(now) == len(before)
    assert now[:-1] == before[:-1]


def test_everybody_who_compacts_a_history_gets_the_same_one(workspace: Workspace, tmp_path: Path) -> None:
    list(workspace.push(["root"], to=str(tmp_path / "pushed")))
    other = Workspace.init(tmp_path / "other")
    list(other.pull([str(tmp_path / "pushed")], as_name="copy"))
    assert other.maintenance.compact("copy").new_head == workspace.maintenance.compact("root").new_head


def test_derivatives_are_told_of_and_made_again_where_asked(workspace: Workspace) -> None:
    before = {name: sorted(rows(workspace, name)) for name in ("derived", "further")}
    plan = workspace.maintenance.plan_compact("root")
    assert list(map(str, plan.downstream.diverged)) == ["derived"]
    assert list(map(str, plan.downstream.further)) == ["further"]
    workspace.maintenance.compact("root")

    failed = {result.name: result for result in workspace.pull(all=True)}
    assert failed["root"].error is None
    error = failed["derived"].error
    assert error is not None
    assert error.code == "E640"
    assert "--reset-derivatives-on-diverged-input" in str(error.hint)
    plans = {one.name: one for one in workspace.plan_pull(["derived"])}
    assert plans["derived"].error is not None
    plans = {one.name: one for one in workspace.plan_pull(["derived"], reset_derivatives=True)}
    assert "would be recomputed" in plans["derived"].notes[0]

    again = {result.name: result for result in workspace.pull(all=True, reset_derivatives=True)}
    assert {name: result.error for name, result in again.items()} == dict.fromkeys(again, None)
    assert "recomputed" in again["derived"].notes[0]
    assert "to be recomputed, too: further" in again["derived"].notes
    assert {name: sorted(rows(workspace, name)) for name in before} == before
    list(workspace.maintenance.gc())
    assert [report.findings for report in workspace.verify(all=True)] == [(), (), ()]
    assert {result.outcome.value for result in workspace.pull(all=True, reset_derivatives=True)} == {"up to date"}


def test_all_blocks_of_a_derivative_that_is_made_again_are_signed(workspace: Workspace) -> None:
    shouted = derivative(query="select op, event_time, id, upper(name) as name from source")
    workspace.add(load_snapshots(shouted, "manifest"), replace=True)
    assert [result.error for result in workspace.pull(["derived"])] == [None]
    workspace.maintenance.compact("root")
    assert [result.error for result in workspace.pull(["derived"], reset_derivatives=True)] == [None]
    (report,) = workspace.verify(["derived"])
    assert report.findings == ()
    assert report.signatures is not None
    assert report.signatures.unsigned == 0


def test_a_derivative_verifies_until_the_old_history_of_its_input_is_removed(workspace: Workspace) -> None:
    workspace.maintenance.compact("root")
    assert all(report.ok for report in workspace.verify(all=True))
    list(workspace.maintenance.gc())
    (report,) = workspace.verify(["derived"])
    (finding,) = report.findings
    assert "its input root was compacted, reset or overwritten" in finding.message
    assert finding.code == "E640"


def test_an_error_leaves_a_derivative_as_it_was(workspace: Workspace) -> None:
    workspace.maintenance.compact("root")
    fails = derivative(query="select op, event_time, id, cast(1 / (id - id) as string) as name from source")
    workspace.add(load_snapshots(fails, "manifest"), replace=True)
    before, head = rows(workspace, "derived"), workspace.datasets.state("derived").head
    (result,) = workspace.pull(["derived"], reset_derivatives=True)
    assert result.error is not None
    assert (rows(workspace, "derived"), workspace.datasets.state("derived").head) == (before, head)


def test_a_derivative_is_not_compacted_but_may_lose_its_rows(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="derived is a derivative"):
        workspace.maintenance.compact("derived")
    before = rows(workspace, "derived")
    result = workspace.maintenance.compact("derived", CompactOptions(keep_metadata_only=True))
    assert (result.slices[1], list(map(str, result.downstream.diverged))) == (0, ["further"])
    assert rows(workspace, "derived") == []
    assert [one.error for one in workspace.pull(["derived"])] == [None]
    assert rows(workspace, "derived") == before


def test_a_damaged_slice_is_not_compacted(workspace: Workspace) -> None:
    folder = workspace.storage.get("root").folder
    file = min((folder / "data").iterdir())
    data = bytearray(file.read_bytes())
    data[40] ^= 1
    file.write_bytes(bytes(data))
    head = (folder / "refs" / "head").read_text()
    with pytest.raises(HashMismatch, match=file.name):
        workspace.maintenance.compact("root")
    assert (folder / "refs" / "head").read_text() == head


def test_files_of_a_watched_folder_are_remembered(workspace: Workspace, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for number in range(3):
        line = f'{{"event_time":"2024-02-0{number + 1}T00:00:00Z","id":{number},"name":null}}\n'
        (inbox / f"{number}.ndjson").write_text(line)

    def taken_in() -> int:
        looks = iter(range(2))

        def pause() -> None:
            if next(looks, None) is None:
                raise KeyboardInterrupt

        found = workspace.watch("root", inbox, settle=0, pause=pause)
        count = 0
        with suppress(KeyboardInterrupt):
            for result in found:
                assert result.error is None
                count += 1
        return count

    assert taken_in() == 3
    result = workspace.maintenance.compact("root")
    assert result.slices == (8, 1)
    assert taken_in() == 0
