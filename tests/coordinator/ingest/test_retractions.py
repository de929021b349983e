"""Snapshots that came empty, cut off or with other keys do not end a dataset without a word from a person."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chains.workspaces import root, workspace_with

from odfpy.coordinator.ingest.idempotency import Ingest, ingest_once
from odfpy.coordinator.ingest.ingest_request import IngestRequest
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.data.data_warning import DataWarning, WarningKind
from odfpy.errors import HeaderMissing, TooManyRetractions, UsageError

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: {read}
        schema:
          fields:
            - {{name: id, type: Int64}}
            - {{name: name, type: String}}
      {preprocess}
      merge: {merge}
"""
SNAPSHOT = "{kind: Snapshot, primaryKey: [id]}"
POLLED = """
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: in/*, order: ByName}
      prepare: [PREPARE]
      read: {kind: NdJson, schema: {fields: [{name: id, type: Int64}, {name: name, type: String}]}}
      merge: {kind: Snapshot, primaryKey: [id]}
"""


def cities(folder: Path, read: str = "Csv, header: true", merge: str = SNAPSHOT, preprocess: str = "") -> Workspace:
    read = read.replace(", ", "\n        ")
    return workspace_with(folder, MANIFEST.format(read=read, merge=merge, preprocess=preprocess))


def csv(ids: Iterable[int]) -> str:
    return "id,name\n" + "".join(f"{number},city {number}\n" for number in ids)


def ndjson(ids: Iterable[int]) -> str:
    return "".join(f'{{"id":{number},"name":"city {number}"}}\n' for number in ids)


def take_in(workspace: Workspace, content: str | bytes, **options: bool) -> PullResult:
    file = workspace.root / "state"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    (result,) = workspace.ingest("cities", [file], **options)
    return result


def refused(workspace: Workspace, content: str | bytes) -> str:
    """What is said of a state that is refused; it changes nothing."""
    head = workspace.datasets.state("cities").head
    with pytest.raises(TooManyRetractions) as error:
        take_in(workspace, content)
    assert workspace.datasets.state("cities").head == head
    assert "--allow-retractions" in (error.value.hint or "")
    assert "`odf config set --dataset cities retractions.share 100%`" in (error.value.hint or "")
    return error.value.message


def the_warning(result: PullResult) -> DataWarning:
    (warning,) = (warning for warning in result.warnings if warning.kind is WarningKind.RETRACTIONS)
    return warning


# --- CSV without its header ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_a_file_with_nothing_in_it_is_no_state(tmp_path: Path, content: str) -> None:
    workspace = cities(tmp_path)
    take_in(workspace, csv(range(3)))
    with pytest.raises(HeaderMissing, match="state is empty, without even a header"):
        take_in(workspace, content)
    with pytest.raises(HeaderMissing):
        take_in(workspace, content, allow_retractions=True)  # it is the file that is wrong
    assert workspace.datasets.state("cities").num_records == 3


def test_a_first_row_is_not_taken_for_the_header(tmp_path: Path) -> None:
    workspace = cities(tmp_path)
    with pytest.raises(HeaderMissing, match=r"has no header: the values of its first line are a row, '1,city 1'"):
        take_in(workspace, csv(range(1, 4)).partition("\n")[2])


@pytest.mark.parametrize("header", ["ID;Title", "nr;1999", "Id;title"])
def test_a_header_may_have_names_of_its_own(tmp_path: Path, header: str) -> None:
    workspace = cities(tmp_path, read="Csv, header: true, separator: ';'")
    assert take_in(workspace, f"{header}\n1;a\n").num_records == 1


def test_a_column_may_be_called_by_a_year(tmp_path: Path) -> None:
    manifest = MANIFEST.format(
        read="Csv\n        header: true", merge="{kind: Snapshot, primaryKey: [name]}", preprocess=""
    )
    workspace = workspace_with(tmp_path, manifest)
    assert take_in(workspace, "1999,country\n7,NO\n").num_records == 1


def test_other_strategies_lose_nothing_by_an_empty_file(tmp_path: Path) -> None:
    workspace = cities(tmp_path, merge="{kind: Ledger, primaryKey: [id]}")
    take_in(workspace, csv(range(20)))
    assert take_in(workspace, "").outcome is PullOutcome.UP_TO_DATE


# --- States that end most rows ---------------------------------------------------------------------------------------


def test_an_empty_state_is_refused(tmp_path: Path) -> None:
    workspace = cities(tmp_path)
    take_in(workspace, csv(range(20)))
    assert refused(workspace, "id,name\n") == (
        f"cities: {workspace.root / 'state'}: The new state has no rows, and would retract all 20 rows of the current state, such as"
        " id = 0; id = 1; id = 2; more than 50% needs --allow-retractions"
    )


def test_a_state_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    workspace = cities(tmp_path)
    take_in(workspace, csv(range(40)))
    assert "has 19 rows, and would retract 21 of 40 rows" in refused(workspace, csv(range(19)))
    result = take_in(workspace, csv(range(20)))  # half of them is not more than half
    assert (result.counts["retracted"], result.warnings) == (20, ())


def test_a_state_with_other_keys_is_refused(tmp_path: Path) -> None:
    workspace = cities(tmp_path)
    take_in(workspace, csv(range(20)))
    assert "has 20 rows, and would retract all 20 rows" in refused(workspace, csv(range(100, 120)))


def test_what_is_allowed_is_done_and_told(tmp_path: Path) -> None:
    workspace = cities(tmp_path)
    take_in(workspace, csv(range(20)))
    result = take_in(workspace, "id,name\n", allow_retractions=True)
    assert result.counts["retracted"] == 20
    keys = tuple(f"id = {number}" for number in range(10))
    assert the_warning(result) == DataWarning(
        WarningKind.RETRACTIONS,
        "retracted all 20 rows of the current state, such as id = 0; id = 1; id = 2: the new state has no rows",
        20,
        keys,
    )


def test_a_few_rows_may_go_with_a_warning(tmp_path: Path) -> None:
    workspace = cities(tmp_path)
    take_in(workspace, csv(range(9)))
    assert the_warning(take_in(workspace, csv(range(2)))).message == (
        "retracted 7 of 9 rows of the current state, such as id = 2; id = 3; id = 4"
    )
    assert the_warning(take_in(workspace, "id,name\n")).count == 2
    assert take_in(workspace, "id,name\n").warnings == ()


def test_a_dataset_may_have_another_share(tmp_path: Path) -> None:
    workspace = cities(tmp_path)
    settings = workspace.settings_of("cities")
    take_in(workspace, csv(range(100)))
    settings.set("retractions.share", "9%")
    assert "more than 9% needs --allow-retractions" in refused(workspace, csv(range(90)))
    settings.set("retractions.share", "100%")
    assert the_warning(take_in(workspace, csv([]))).count == 100
    for wrong in ("200%", "half", "50"):
        with pytest.raises(UsageError, match=r"retractions\.share is a share such as 50%"):
            settings.set("retractions.share", wrong)


def test_the_first_state_may_be_empty(tmp_path: Path) -> None:
    assert take_in(cities(tmp_path), "id,name\n").warnings == ()


# --- The ways in which a state comes empty ---------------------------------------------------------------------------


def parquet(ids: range) -> bytes:
    table = pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(map(str, ids), pa.string())})
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("read", "full", "empty"),
    [
        ("Json", f"[{','.join(ndjson(range(12)).splitlines())}]", "[]"),
        ("Json", f"[{','.join(ndjson(range(12)).splitlines())}]", ""),
        ("NdJson", ndjson(range(12)), ""),
        ("Parquet", parquet(range(12)), parquet(range(0))),
        ("Csv", csv(range(12)).partition("\n")[2], ""),
    ],
    ids=["json-array", "json-nothing", "ndjson", "parquet", "csv-without-header"],
)
def test_formats_with_no_rows(tmp_path: Path, read: str, full: str | bytes, empty: str | bytes) -> None:
    workspace = cities(tmp_path, read=read)
    take_in(workspace, full)
    assert "all 12 rows" in refused(workspace, empty)


def test_a_preprocessing_query_that_gives_no_rows(tmp_path: Path) -> None:
    query = "preprocess: {kind: Sql, engine: datafusion, query: \"select * from input where name <> 'gone'\"}"
    workspace = cities(tmp_path, preprocess=query)
    take_in(workspace, csv(range(12)))
    assert "all 12 rows" in refused(workspace, "id,name\n" + "".join(f"{number},gone\n" for number in range(12)))


def test_standard_input_that_ends_at_once(tmp_path: Path) -> None:
    workspace = cities(tmp_path, read="NdJson")
    take_in(workspace, ndjson(range(12)))
    with pytest.raises(TooManyRetractions, match="standard input: The new state has no rows"):
        list(workspace.ingest("cities", stdin=io.BytesIO()))


def test_an_empty_body_over_http(tmp_path: Path) -> None:
    workspace = cities(tmp_path, read="NdJson")
    take_in(workspace, ndjson(range(12)))
    dataset = workspace.storage.get("cities")
    body = tmp_path / "body"
    body.touch()
    with pytest.raises(TooManyRetractions):
        ingest_once(
            dataset,
            Ingest(IngestRequest("cities", files=(body,)), "digest", "the body"),
            None,
            workspace.engines.registry,
        )


def test_an_empty_member_of_an_archive_and_what_comes_after_it(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, POLLED.replace("PREPARE", "{kind: Decompress, format: Zip}"))
    (tmp_path / "in").mkdir()
    for name, content in (("1.zip", ndjson(range(12))), ("2.zip", "")):
        with zipfile.ZipFile(tmp_path / "in" / name, "w") as archive:
            archive.writestr("state.ndjson", content)
    (result,) = workspace.pull(["cities"])
    assert isinstance(result.error, TooManyRetractions)
    assert "2.zip: The new state has no rows" in result.error.message
    assert workspace.datasets.state("cities").num_records == 12, "what came before is committed"
    (result,) = workspace.pull(["cities"], allow_retractions=True)
    assert result.error is None
    assert the_warning(result).count == 12


# --- Strategies that say themselves what ends ------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["UpsertStream", "ChangelogStream"])
def test_what_is_retracted_by_name_is_not_asked_about(tmp_path: Path, strategy: str) -> None:
    manifest = root("cities", f"{{kind: {strategy}, primaryKey: [id]}}").replace(
        "            - {name: id", "            - {name: op, type: Int32}\n            - {name: id"
    )
    workspace = workspace_with(tmp_path, manifest)
    for op in (0, 1):
        rows = (f'{{"op":{op},"event_time":"2024-01-01","id":{at},"name":"a"}}\n' for at in range(20))
        result = take_in(workspace, "".join(rows))
    assert (result.counts["retracted"], result.warnings) == (20, ())
