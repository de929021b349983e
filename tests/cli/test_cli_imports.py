"""What `odf` imports: most of the time of a short command goes there, so that each imports what it needs only."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from support.chains.workspaces import copied
from support.processes.terminal import PATIENCE, start

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace

LINE = '{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}\n'
POLLED = """
kind: DatasetSnapshot
version: 1
content:
  name: com.example.polled
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "file://{path}"}}
      read: {{kind: Csv, header: true, schema: {{fields: [{{name: id, type: Int64}}, {{name: name, type: String}}]}}}}
      merge: {{kind: Append}}
"""
COUNT = "sql/select count(*) from com.example.rates"

LIBRARIES = {
    "numpy",
    "pandas.core",
    "pyarrow",
    "pyarrow.compute",
    "duckdb",
    "datafusion",
    "pyspark",
    "py4j",
    "sqlglot",
    "yaml",
    "fastapi",
    "pydantic_core",
    "rich",
}
ARROW = {"numpy", "pyarrow"}

WRITING = {"odfpy.chain.rules", "odfpy.chain.new_blocks", "odfpy.data.slices.writer"}
TRANSFERS = {"odfpy.coordinator.transfer.transfers", "odfpy.repository.exchange", "http.client"}
ENGINES = {"odfpy.engine.contract", "odfpy.coordinator.transform.run"}
LINEAGE = {"odfpy.coordinator.lineage.lineage"}
VERIFYING = {"odfpy.coordinator.maintenance.report"}
SOURCES = {f"odfpy.ingest.fetch.{way}" for way in ("files_glob", "container.step", "mqtt.step", "ethereum.step")}
READERS = {f"odfpy.ingest.read.{form}" for form in ("csv", "parquet", "geo.geojson", "geo.esri_shapefile")}
PREPARING = {"odfpy.ingest.prepare.pipe", "odfpy.ingest.prepare.decompress"}
NOTHING = (
    WRITING
    | TRANSFERS
    | ENGINES
    | VERIFYING
    | SOURCES
    | READERS
    | PREPARING
    | {"odfpy.ingest.read", "odfpy.query.plan"}
)


@pytest.fixture(scope="module")
def polled(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace, with a dataset that is pulled from a file that has nothing new."""
    folder = tmp_path_factory.mktemp("polled")
    (folder / "rows.csv").write_text("id,name\n1,a\n")
    found = copied(Workspace.open(prepared), folder / "workspace")
    found.add(load_snapshots(POLLED.format(path=folder / "rows.csv"), "manifest"))
    assert [result.error for result in found.pull(["com.example.polled"])] == [None]
    return found.root


@pytest.fixture(scope="module")
def imported(polled: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], set[str]]:
    """Tells the modules that a command has imported at its end; each runs once, in a workspace of its own.

    Its words are at spaces, or at a slash if it is the query.
    """

    @cache
    def of(command: str) -> set[str]:
        folder = tmp_path_factory.mktemp("imported")
        shutil.copytree(polled, folder / "workspace")
        (folder / "new.ndjson").write_text(LINE)
        words = command.split("/", 1) if command == COUNT else command.replace("{folder}", str(folder)).split()
        process = start(*words, cwd=folder / "workspace", flags=("-X", "importtime"))
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        return {line.rpartition("|")[2].strip() for line in err.splitlines()}

    return of


@pytest.mark.parametrize(
    ("command", "loaded"),
    [
        ("--help", set()),
        ("list", set()),
        ("log com.example.rates", set()),
        ("status com.example.rates", {"yaml"}),  # where copies are from
        ("show com.example.rates", {"yaml"}),  # which it prints
        ("config list", set()),
        ("repo list", set()),
        ("new com.example.x --file -", set()),
        ("new x --from {folder}/new.ndjson --file -", {*ARROW, "pyarrow.compute", "duckdb", "yaml"}),
        ("token list", set()),
        ("push com.example.rates --to {folder}/", {"yaml"}),
        ("pull com.example.polled", set()),
        ("tail com.example.rates", {*ARROW, "pyarrow.compute"}),
        (COUNT, ARROW),
        ("verify --integrity com.example.rates", {*ARROW, "pyarrow.compute", "yaml"}),
        ("ingest com.example.rates {folder}/new.ndjson", {*ARROW, "pyarrow.compute", "duckdb"}),
    ],
)
def test_a_command_loads_only_the_libraries_it_needs(
    command: str, loaded: set[str], imported: Callable[[str], set[str]]
) -> None:
    assert imported(command) & LIBRARIES == loaded


@pytest.mark.parametrize(
    ("command", "spared"),
    [
        ("list", NOTHING | LINEAGE | {"odfpy.settings.sections", "odfpy.coordinator.storage.signing"}),
        ("log com.example.rates", NOTHING | LINEAGE | {"odfpy.coordinator.storage.signing"}),
        ("show com.example.rates", NOTHING),
        ("status com.example.rates", TRANSFERS | VERIFYING | READERS | SOURCES),
        ("tail com.example.rates", (NOTHING | LINEAGE) - TRANSFERS),  # of these, Arrow brings some
        (
            COUNT,
            (NOTHING | LINEAGE) - TRANSFERS - {"odfpy.query.plan"} | {"importlib.metadata", "odfpy.cli.screen.plot"},
        ),
        ("pull com.example.polled", NOTHING - {"odfpy.ingest.fetch.url"}),
        ("ingest com.example.rates {folder}/new.ndjson", ENGINES | VERIFYING | SOURCES | READERS | LINEAGE),
    ],
)
def test_a_command_does_not_load_modules_of_others(
    command: str, spared: set[str], imported: Callable[[str], set[str]]
) -> None:
    assert imported(command) & spared == set()
