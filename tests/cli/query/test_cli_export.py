"""`odf export`: all rows or none, in the form that is wanted, with a sidecar that says where they are from."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset
from support.processes.terminal import PATIENCE, environment, start, wait_until_interruptible

from odfpy.coordinator.reading.export_target import WORKSHOP, ExportTarget
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import AlreadyExists

if TYPE_CHECKING:
    from cli.conftest import Odf

NAME = "com.example.stock"  # 1 a, corrected to 1 b; 2 c
DF = ("--engine", "datafusion")


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.name.startswith((".tmp-", WORKSHOP)))


def test_a_parquet_file_has_the_rows_and_the_types_of_the_dataset(odf: Odf, workspace: Path) -> None:
    done = odf("export", NAME, "--to", "stock.parquet")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("Exported: stock.parquet, 2 rows, ")
    table = pq.read_table(workspace / "stock.parquet")
    assert table.equals(Workspace.open(workspace).tail(NAME, 100))
    column = pq.ParquetFile("stock.parquet").metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"


def test_the_sidecar_says_what_the_rows_are_made_from(odf: Odf, workspace: Path) -> None:
    assert odf("export", NAME, "--to", "stock.csv").code == 0
    told = json.loads((workspace / "stock.csv.odf.json").read_text())
    state = Workspace.open(workspace).datasets.state(NAME)
    assert told["query"] == f'SELECT * FROM "{NAME}"'
    assert told["inputs"] == [
        {
            "id": str(state.dataset_id),
            "alias": NAME,
            "blockHash": str(state.head),
            "sequenceNumber": state.sequence_number,
            "offsets": {"start": 0, "end": state.last_offset},
        }
    ]
    (file,) = told["files"]
    data = (workspace / "stock.csv").read_bytes()
    assert file == {
        "path": "stock.csv",
        "rows": told["rows"],
        "size": len(data),
        "hash": f"f1620{hashlib.sha3_256(data).hexdigest()}",
    }
    assert odf("export", NAME, "--to", "again.csv", "-o", "json").json["files"][0]["hash"] == file["hash"]


def test_text_formats_say_what_is_printed(odf: Odf, workspace: Path) -> None:
    for name, form in (("trades.csv.gz", "csv"), ("trades.ndjson", "ndjson")):
        assert odf("export", "trades", "--to", name).code == 0
        printed = odf("tail", "trades", "-n", "1000", "-o", form).out
        data = (workspace / name).read_bytes()
        text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
        if form == "ndjson":
            assert text == printed
        else:
            assert list(csv.reader(text.splitlines())) == list(csv.reader(printed.splitlines()))


def test_standard_output_takes_an_export(odf: Odf, workspace: Path) -> None:
    assert odf("export", "trades", "--to", "trades.csv").code == 0
    before = sorted(workspace.iterdir())
    done = odf("export", "trades", "--to", "-")
    assert (done.code, done.out) == (0, (workspace / "trades.csv").read_text())
    assert done.err.startswith("Exported: standard output, ")
    lines = odf("export", *DF, "-c", "select 1 as a", "--to", "-", "--format", "ndjson").out
    assert lines == '{"a":1}\n'
    failed = odf("export", *DF, "-c", "select 1 / (value - value) from (values (1), (2)) as t(value)", "--to", "-")
    assert (failed.code, failed.out) == (1, ""), "half of an answer is none"
    assert sorted(workspace.iterdir()) == before


def test_csv_tells_null_from_empty_text(odf: Odf, workspace: Path) -> None:
    query = "select cast(null as varchar) as a, '' as b, 'x;y' as c, 1.5 as d"
    assert odf("export", *DF, "-c", query, "--to", "x.csv", "--delimiter", ";").code == 0
    assert Path("x.csv").read_text() == '"a";"b";"c";"d"\n;"";"x;y";"1.5"\n'
    assert odf("export", *DF, "-c", query, "--to", "y.csv", "--no-header").code == 0
    assert Path("y.csv").read_text() == ',"","x;y","1.5"\n'


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--current"], ["b", "c"]),
        (["--as-at", "0"], []),
        (["--as-at", "head"], ["b", "c"]),
        (["--as-at", "2999-01-01"], ["b", "c"]),
        (["--as-of", "2023-01-01"], []),
        (["--as-at", "head", "--as-of", "2024-01-01T00:00:00Z"], ["b", "c"]),
    ],
)
def test_projections(options: list[str], names: list[str], odf: Odf, workspace: Path) -> None:
    assert odf("export", NAME, *options, "--to", "x.ndjson").code == 0
    rows = [json.loads(line) for line in Path("x.ndjson").read_text().splitlines()]
    assert [row["name"] for row in rows] == names


def test_a_tag_is_exported_as_the_block_that_it_is_at(odf: Odf, workspace: Path) -> None:
    odf("tag", NAME, "v1")
    assert odf("export", NAME, "--as-at", "v1", "--to", "x.parquet").code == 0
    tagged = Workspace.open(workspace).datasets.state(NAME)
    odf("ingest", NAME, "--stdin", stdin=b'{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}\n')
    for moment in ("v1", str(tagged.system_time)):
        assert odf("export", NAME, "--as-at", moment, "--to", "x.parquet", "--overwrite").code == 0
        told = json.loads(Path("x.parquet.odf.json").read_text())
        assert told["inputs"][0]["blockHash"] == str(tagged.head), "the block of then, and not of now"
        assert told["inputs"][0]["offsets"] == {"start": 0, "end": tagged.last_offset}
        assert told["query"].startswith(f"SELECT * FROM odf_as_at('{NAME}', '")


def test_partitions_are_folders(odf: Odf, workspace: Path) -> None:
    query = "select * from (values (1, 'a/b', true), (2, null, false), (3, 'a/b', true)) as t(id, name, flag)"
    done = odf("export", *DF, "-c", query, "--to", "parts", "--partition-by", "name,flag", "-f", "ndjson")
    assert done.code == 0, done.err
    found = {path.relative_to("parts").as_posix(): path.read_text() for path in Path("parts").rglob("*.ndjson")}
    assert found == {
        "name=a%2Fb/flag=true/data_0.ndjson": '{"id":1}\n{"id":3}\n',
        "name=__HIVE_DEFAULT_PARTITION__/flag=false/data_0.ndjson": '{"id":2}\n',
    }
    told = json.loads(Path("parts/_odf.json").read_text())
    assert (told["rows"], told["partitionBy"], len(told["files"])) == (3, ["name", "flag"], 2)


def test_values_of_any_kind_are_names_of_folders_as_readers_want_them(odf: Odf, workspace: Path) -> None:
    query = "select * from (values (1, '', x'00ff', 'Zürich'), (2, '..', x'', '日本'), (3, 'x=y', null, 'a\\b')) as t(id, a, b, \"größe\")"
    assert odf("export", *DF, "-c", query, "--to", "parts", "--partition-by", "a,b,größe,a", "-f", "csv").code == 0
    assert sorted(path.parent.relative_to("parts").as_posix() for path in Path("parts").rglob("*.csv")) == [
        "a=../b=__HIVE_DEFAULT_PARTITION__/größe=日本",
        "a=__HIVE_DEFAULT_PARTITION__/b=00ff/größe=Zürich",
        "a=x%3Dy/b=__HIVE_DEFAULT_PARTITION__/größe=a%5Cb",
    ]
    table = dataset("parts", format="csv", partitioning="hive").to_table()
    assert sorted(zip(table["id"].to_pylist(), table["größe"].to_pylist(), strict=True)) == [
        (1, "Zürich"),
        (2, "日本"),
        (3, "a\\b"),
    ]


def test_more_partitions_than_files_that_are_open_at_once(odf: Odf, workspace: Path) -> None:
    query = "select value, value % 150 as part from generate_series(0, 299)"
    assert odf("export", *DF, "-c", query, "--to", "parts", "--partition-by", "part").code == 0
    table = pq.read_table("parts", partitioning="hive")
    assert sorted(zip(table["value"].to_pylist(), table["part"].to_pylist(), strict=True)) == [
        (number, number % 150) for number in range(300)
    ]
    assert len([*Path("parts").rglob("*.parquet")]) == 150, "rows that come one after the other are in one file"


def test_rows_are_cut_into_files(odf: Odf, workspace: Path) -> None:
    query = "select value from generate_series(0, 9)"
    done = odf("export", *DF, "-c", query, "--to", "cut", "--rows-per-file", "4")
    assert "10 rows in 3 files" in done.err
    assert [pq.read_table(f"cut/data_{n}.parquet")["value"].to_pylist() for n in range(3)] == [
        [0, 1, 2, 3], [4, 5, 6, 7], [8, 9],
    ]  # fmt: skip


def test_row_groups_and_compression_are_as_wanted(odf: Odf, workspace: Path) -> None:
    query = "select value from generate_series(0, 9)"
    words = ["--row-group-size", "4", "--compression", "gzip", "--compression-level", "3"]
    assert odf("export", *DF, "-c", query, "--to", "x.parquet", *words).code == 0
    metadata = pq.ParquetFile("x.parquet").metadata
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [4, 4, 2]
    assert metadata.row_group(0).column(0).compression == "GZIP"


def test_what_is_there_is_left_alone_unless_it_was_exported(odf: Odf, workspace: Path) -> None:
    Path("mine.csv").write_text("mine")
    Path("folder").mkdir()
    Path("folder/mine").write_text("mine")
    assert "already exists" in odf("export", NAME, "--to", "mine.csv").says
    assert "is a folder" in odf("export", NAME, "--to", "folder").says
    cut = ["export", NAME, "--to", "folder", "--rows-per-file", "1"]
    assert "already exists" in odf(*cut).says
    assert "is not a folder that was exported" in odf(*cut, "--overwrite").says
    assert (Path("mine.csv").read_text(), Path("folder/mine").read_text()) == ("mine", "mine")
    assert odf("export", NAME, "--to", "mine.csv", "--overwrite").code == 0
    Path("folder/mine").unlink()
    assert odf(*cut).code == 0
    assert odf(*cut, "--overwrite", "-f", "csv").code == 0
    assert sorted(path.name for path in Path("folder").iterdir()) == ["_odf.json", "data_0.csv", "data_1.csv"]
    assert left_over(workspace) == []


@pytest.mark.parametrize("name", ["mine.txt", "sub/mine.csv", "mine-link"])
def test_a_folder_with_more_than_an_export_is_not_replaced(name: str, odf: Odf, workspace: Path) -> None:
    cut = ["export", NAME, "--to", "folder", "--rows-per-file", "1", "-f", "csv"]
    assert odf(*cut).code == 0
    mine = Path("folder", name)
    mine.parent.mkdir(exist_ok=True)
    if name == "mine-link":
        mine.symlink_to(workspace, target_is_directory=True)
    else:
        mine.write_text("mine")
    before = sorted(str(path) for path in Path("folder").rglob("*"))
    refused = odf(*cut, "--overwrite")
    assert (refused.code, "(E116)" in refused.says) == (1, True)
    assert f"folder has files that are not part of an export: {name}" in refused.says
    assert sorted(str(path) for path in Path("folder").rglob("*")) == before
    assert left_over(workspace) == []
    mine.unlink()
    assert odf(*cut, "--overwrite").code == 0


def test_a_sidecar_of_something_else_makes_no_export_of_a_folder(odf: Odf, workspace: Path) -> None:
    Path("folder").mkdir()
    Path("folder/_odf.json").write_text("{}")
    refused = odf("export", NAME, "--to", "folder", "--rows-per-file", "1", "--overwrite")
    assert "is not a folder that was exported: folder/_odf.json does not describe an export" in refused.says
    assert Path("folder/_odf.json").read_text() == "{}"


def test_what_comes_into_a_folder_during_an_export_is_left_alone(workspace: Path) -> None:
    target = ExportTarget.of(workspace / "folder", is_folder=True)
    target.check(overwrite=False)
    mine = workspace / "folder" / "mine"
    with ExitStack() as exporting:
        exporting.enter_context(target.write_to_temporary())
        mine.parent.mkdir()
        mine.write_text("mine")
        with pytest.raises(AlreadyExists, match="is not a folder that was exported"):
            exporting.close()
    assert mine.read_text() == "mine"
    assert left_over(workspace) == []


def test_exported_files_are_checked(odf: Odf, workspace: Path) -> None:
    odf("export", NAME, "--to", "x.csv")
    odf("export", NAME, "--to", "cut", "--rows-per-file", "1")
    for place in ("x.csv", "x.csv.odf.json", "cut", "cut/_odf.json"):
        assert odf("export", "--verify", place).err.startswith("As exported: ")
    Path("x.csv").write_bytes(Path("x.csv").read_bytes().replace(b"b", b"B"))
    assert "x.csv has the hash f1620" in odf("export", "--verify", "x.csv").says
    Path("cut/more").write_text("")
    Path("cut/data_0.parquet").unlink()
    told = odf("export", "--verify", "cut").says
    assert "data_0.parquet: No such file" in told
    assert "more was not exported" in told
    assert "(E741)" in told
    assert "No mine.csv.odf.json" in odf("export", "--verify", "mine.csv").says
    Path("bad.csv.odf.json").write_text('{"kind": "OdfExport", "version": 1, "rows": 0, "files": [{"path": "/etc/x"}]}')
    assert "does not describe an export" in odf("export", "--verify", "bad.csv").says
    Path("bad.csv.odf.json").write_text('{"kind": "OdfExport", "version": 2}')
    assert "has version 2" in odf("export", "--verify", "bad.csv").says


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([NAME], "Missing option --to"),
        (["--to", "x"], "A dataset cannot be combined with a query"),
        ([NAME, "-c", "select 1", "--to", "x"], "A dataset cannot be combined with a query"),
        (["-c", "select 1", "--current", "--to", "x"], "The query itself selects"),
        ([NAME, "--current", "--as-of", "2024-01-01", "--to", "x"], "Either the current state or an earlier one"),
        ([NAME, "--as-at", "v9", "--to", "x"], "has no block, tag or branch 'v9'"),
        ([NAME, "--as-of", "soon", "--to", "x"], "Not a time: 'soon'"),
        (["com.example.stick", "--to", "x"], "Did you mean com.example.stock?"),
        ([NAME, "--to", "x", "--format", "parqet"], "Did you mean parquet?"),
        ([NAME, "--to", "x", "--compression", "zip"], "parquet is not compressed by 'zip'"),
        ([NAME, "--to", "x.csv", "--compression", "snappy"], "csv is not compressed by 'snappy'"),
        ([NAME, "--to", "x.csv", "--compression-level", "3"], "--compression-level is for Parquet"),
        ([NAME, "--to", "x.csv", "--row-group-size", "3"], "--row-group-size is for Parquet"),
        ([NAME, "--to", "x.parquet", "--no-header"], "are for CSV, not for parquet"),
        (
            [NAME, "--to", "x.csv", "--delimiter", "ab"],
            "--delimiter must be one character that is not part of a number",
        ),
        ([NAME, "--to", "x", "--partition-by", "nam"], "Did you mean name?"),
        ([*DF, "-c", "select 1 as a", "--to", "x", "--partition-by", "a"], "so the files would have none"),
        ([NAME, "--to", "nowhere/x.csv"], "Cannot write nowhere/x.csv: No such file or directory"),
        ([NAME, "--to", ""], "Missing option --to"),
        ([NAME, "--to", "-", "--partition-by", "name"], "Standard output takes a single file"),
        ([NAME, "--to", "-", "-o", "json"], "Standard output takes a single file"),
        ([NAME, "--to", "x/"], "x/ would be a folder"),
        ([NAME, "--to", "s3://bucket/x.csv"], "s3://bucket/x.csv is not a path on this machine"),
        ([NAME, "--to", "/dev/null", "--overwrite"], "/dev/null is a device"),
        ([NAME, "--to", "x.json"], "x.json is not a name of a Parquet, CSV or NDJSON file"),
        ([NAME, "--to", "x.csv.bz2"], "x.csv.bz2 is not a name of a Parquet"),
        ([NAME, "--to", "x.parquet.gz"], "x.parquet.gz is not a name of a Parquet"),
        ([NAME, "--to", "x.csv", "--delimiter", "e"], "--delimiter must be one character that is not part of a number"),
        (
            [*DF, "-c", "select 1 as a, [1] as b", "--to", "x", "--partition-by", "b"],
            "cannot be names of folders: b is",
        ),
        (
            [*DF, "-c", f"select '{'x' * 300}' as a, 1 as b", "--to", "x", "--partition-by", "a"],
            "a has a value that is",
        ),
        (["--verify", "x", "--to", "y"], "--verify cannot be combined with other options"),
        ([*DF, "-c", "select interval '1' month as a", "--to", "x.parquet"], "cannot be written as parquet"),
        ([*DF, "-c", "select 1 / 0 as a", "--to", "x.csv"], "ivide by zero"),
    ],
)
def test_wrong_input_is_told_and_leaves_nothing(words: list[str], says: str, odf: Odf, workspace: Path) -> None:
    before = sorted(path.name for path in workspace.iterdir())
    refused = odf("export", *words)
    assert refused.code in (1, 2)
    assert says in refused.says
    assert sorted(path.name for path in workspace.iterdir()) == before


@pytest.mark.parametrize("to", [".odf/datasets/x.csv", ".odf/x.csv", "sub/../.odf/new/x.csv"])
def test_nothing_is_put_among_the_own_files_of_the_workspace(odf: Odf, workspace: Path, to: str) -> None:
    refused = odf("export", NAME, "--to", to)
    assert (refused.code, "is among the workspace's own files" in refused.says) == (2, True)
    assert not list((workspace / ".odf").rglob("x.csv*"))


def test_a_full_disk_leaves_nothing(odf: Odf, workspace: Path) -> None:
    query = "select value, cast(value as varchar) as text from generate_series(0, 500000)"
    limited = f"ulimit -f 64; trap '' XFSZ; exec {sys.executable} -m odfpy export --engine datafusion --to"
    for place in ("x.csv", "cut --rows-per-file 100000"):
        done = subprocess.run(
            ["bash", "-c", f'{limited} {place} -c "{query}"'],
            cwd=workspace, env=environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr.splitlines()[0].startswith(f"error: Cannot write {place.split()[0]}: File too large")
        assert not Path(place.split()[0]).exists()
        assert left_over(workspace) == []


def is_under_way(folder: Path) -> bool:
    """Whether rows are on the disk already."""
    return any(file.stat().st_size > 100_000 for file in folder.glob(f"{WORKSHOP}*/new/*"))


@pytest.mark.parametrize("place", [["x.csv"], ["cut", "--rows-per-file", "1000000"]])
def test_ctrl_c_leaves_nothing(place: list[str], workspace: Path) -> None:
    query = "select value, cast(value as varchar) as text from generate_series(0, 1000000000)"
    process = start("export", *DF, "-c", query, "--to", *place, cwd=workspace)
    wait_until_interruptible(process)
    while not is_under_way(workspace):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err.count("Traceback")) == (130, 0)
    assert not Path(place[0]).exists()
    assert left_over(workspace) == []


def test_what_a_killed_export_leaves_is_removed_by_the_next(odf: Odf, workspace: Path) -> None:
    query = "select value, cast(value as varchar) as text from generate_series(0, 1000000000)"
    process = start("export", *DF, "-c", query, "--to", "x.csv", cwd=workspace)
    while not is_under_way(workspace):
        assert process.poll() is None
        time.sleep(0.01)
    assert odf("export", NAME, "--to", "other.csv").code == 0
    assert len(left_over(workspace)) == 1, "what another export is at work on stays"
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert not Path("x.csv").exists()
    assert odf("export", NAME, "--to", "other.csv", "--overwrite").code == 0
    assert left_over(workspace) == []


def test_a_folder_that_a_killed_export_was_about_to_replace_comes_back(odf: Odf, workspace: Path) -> None:
    assert odf("export", NAME, "--to", "cut", "--rows-per-file", "1").code == 0
    former = workspace / f"{WORKSHOP}0" / "former"
    former.mkdir(parents=True)
    Path("cut").rename(former / "cut")
    assert odf("export", NAME, "--to", "other.csv").code == 0
    assert odf("export", "--verify", "cut").code == 0
    assert left_over(workspace) == []
