"""Whatever prints data prints it in five forms; standard output has nothing else on it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odfpy.cli.screen.output import Format, Output
from odfpy.codec.yaml import load_documents
from odfpy.settings.sections import SETTINGS

if TYPE_CHECKING:
    from cli.conftest import Odf

SQL = ["sql", "--engine", "datafusion", "-c", 'select id, name from "com.example.rates" order by id']

# Commands that print data, with the number of records that they print.
PRINTING: dict[str, tuple[list[str], int]] = {
    "list": (["list"], 6),
    "show": (["show", "com.example.upper"], 1),
    "log": (["log", "com.example.rates"], 4),
    "tail": (["tail", "com.example.rates"], 3),
    "sql": (SQL, 3),
    "export": (["export", "com.example.rates", "--to", "rates.parquet", "--overwrite"], 1),
    "pull": (["pull", "com.example.rates", "com.example.upper"], 2),
    "push": (["push", "com.example.rates", "--to", "./pushed"], 1),
    "ingest": (["ingest", "com.example.rates", "more.ndjson"], 1),
    "add": (["add", "--replace", "manifest.yaml"], 1),
    "verify": (["verify", "com.example.rates", "com.example.upper"], 2),
    "inspect schema": (["inspect", "schema", "com.example.rates"], 6),
    "inspect query": (["inspect", "query", "com.example.upper"], 1),
    "config list": (["config", "list"], len(SETTINGS)),
    "config get": (["config", "get", "fetch.timeout"], 1),
    "repo list": (["repo", "list"], 1),
    "engine status": (["engine", "status"], 1),
    "version": (["version"], 1),
}


@pytest.fixture
def ready(workspace: Path, odf: Odf) -> Path:
    (workspace / "more.ndjson").write_text('{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"ü, \\"z\\"\\n"}\n')
    manifest = json.loads(odf("show", "com.example.rates", "-o", "json").out)["manifest"]
    (workspace / "manifest.yaml").write_text(
        json.dumps({"kind": "DatasetSnapshot", "version": 1, "content": manifest}), encoding="utf-8"
    )
    odf("repo", "add", "mirror", str(workspace / "mirror"))
    return workspace


@pytest.mark.parametrize("name", PRINTING)
@pytest.mark.parametrize("form", ["json", "ndjson", "csv", "yaml"])
def test_every_form_can_be_read_by_a_program(name: str, form: str, odf: Odf, ready: Path) -> None:
    words, count = PRINTING[name]
    printed = odf(*words, "-o", form)
    assert (printed.code, printed.err) == (0, ""), "a program reads standard output, nobody needs the rest"
    records = READERS[form](printed.out)
    assert len(records) == count
    assert all(isinstance(record, dict) for record in records)


def as_records(tree: Any) -> list[Any]:
    return tree if isinstance(tree, list) else [tree]


def from_csv(text: str) -> list[dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(text), strict=True))
    assert all(None not in row and None not in row.values() for row in rows)
    return rows


READERS = {
    "json": lambda text: as_records(json.loads(text)),
    "ndjson": lambda text: [json.loads(line) for line in text.splitlines()],
    "csv": from_csv,
    "yaml": lambda text: [record for document in load_documents(text) for record in as_records(document.tree)],
}


@pytest.mark.parametrize("name", PRINTING)
def test_all_forms_say_the_same(name: str, odf: Odf, ready: Path) -> None:
    if name in ("push", "ingest", "pull", "verify"):
        return  # the second time there is nothing to do, or it takes another time
    words = PRINTING[name][0]
    trees = {form: READERS[form](odf(*words, "-o", form).out) for form in ("json", "ndjson", "yaml", "csv")}
    assert trees["ndjson"] == trees["json"]
    if name == "log":
        assert [
            {key: value for key, value in record.items() if key not in ("blockHash", "signatures")}
            for record in trees["json"]
        ] == trees["yaml"]
        return
    assert trees["yaml"] == trees["json"]
    if name != "inspect schema":  # where a table has types as text
        keys = list(dict.fromkeys(key for record in trees["json"] for key in record))
        assert list(trees["csv"][0]) == keys


def test_a_table_is_for_people(odf: Odf, workspace: Path) -> None:
    lines = odf("list").out.splitlines()
    assert lines[0].split() == ["Name", "Kind", "Records", "Size", "Updated", "Watermark"]
    assert lines[3].split()[:3] == ["com.example.rates", "Root", "3"]
    assert all(len(line) <= 100 for line in lines)
    assert "did:odf:" in odf("list", "--wide").out


def test_ids_and_hashes_are_whole_where_no_terminal_limits_them(odf: Odf, workspace: Path) -> None:
    inputs = {record["name"]: record["inputs"] for record in odf("list", "-o", "json").json}
    assert inputs["com.example.upper"] == ["com.example.rates"]
    assert inputs["com.example.rates"] == []
    for record in odf("list", "-o", "json").json:
        wide = odf("list", "--wide").out
        assert record["id"] in wide
        assert record["head"] in wide
    assert (
        odf("log", "com.example.rates", "-n", "1").out.split()[2]
        == odf("show", "com.example.rates", "-o", "json").json["head"]
    )


def test_nothing_to_list(odf: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert odf("init").code == 0
    empty = odf("list")
    assert (empty.code, empty.out, empty.err) == (0, "", "No datasets; add some with `odf add`.\n")
    assert odf("list", "-o", "json").json == []
    assert [odf("list", "-o", form).out for form in ("ndjson", "csv", "yaml")] == ["", "\n", "[]\n"]
    assert odf("pull", "--all").code == odf("verify", "--all").code == odf("push", "--all", "--to", "x/").code == 0


def test_many_datasets_are_listed_in_order_of_their_names(odf: Odf, workspace: Path) -> None:
    manifest = odf("new", "com.example.x", "-f", "-").out
    (workspace / "many.yaml").write_text(
        "\n---\n".join(manifest.replace("name: com.example.x\n", f"name: many.{number:03}\n") for number in range(40))
    )
    assert odf("add", "many.yaml", "-q").err == ""
    names = [line.split()[0] for line in odf("list").out.splitlines()[1:]]
    assert len(names) == 46
    assert names == sorted(names)


def test_data_is_exact_in_every_form(odf: Odf, workspace: Path) -> None:
    (row,) = odf("tail", "trades", "-n", "1", "-o", "json").json
    assert (row["amount"], row["event_time"]) == ("943.89", "2024-03-15T03:00:00Z")
    (line,) = from_csv(odf("tail", "trades", "-n", "1", "-o", "csv").out)
    assert line["amount"] == "943.89"
    assert odf("tail", "trades", "-n", "1").out.splitlines()[1].split()[-1] == "943.89"


def test_tail_takes_what_is_wanted(odf: Odf, workspace: Path) -> None:
    assert [row["id"] for row in odf("tail", "com.example.rates", "-n", "2", "-o", "json").json] == [2, 3]
    assert [row["id"] for row in odf("tail", "com.example.rates", "-n", "2", "--skip", "1", "-o", "json").json] == [
        1,
        2,
    ]
    assert odf("tail", "com.example.rates", "-n", "0", "-o", "json").json == []
    assert odf("tail", "com.example.rates", "-n", "0").out.startswith("offset  op")


def test_a_template_can_be_added_as_it_is(odf: Odf, workspace: Path) -> None:
    assert (
        odf("new", "com.example.fresh").err
        == "Wrote com.example.fresh.yaml; edit it, then run `odf add com.example.fresh.yaml`\n"
    )
    assert odf("add", "com.example.fresh.yaml").err == "com.example.fresh: root dataset created\n"
    again = odf("new", "com.example.fresh")
    assert (again.code, "already exists" in again.says) == (1, True)
    derivative = odf("new", "com.example.d", "--derivative", "--file", "-").out
    assert "kind: Derivative" in derivative
    text = derivative.replace("com.example.input", "com.example.rates").replace("engine: spark", "engine: datafusion")
    assert odf("add", "-", stdin=text.encode()).code == 0


def test_what_is_shown_makes_the_same_dataset_again(odf: Odf, ready: Path) -> None:
    assert odf("add", "--replace", "manifest.yaml").err == "com.example.rates: root dataset unchanged\n"


def test_ndjson_of_a_pull_comes_with_failures_and_all(odf: Odf, workspace: Path) -> None:
    odf("delete", "com.example.rates", "--yes", "--force")
    pulled = odf("pull", "com.example.upper", "com.example.cities", "-o", "ndjson")
    assert pulled.code == 1
    by_name = {record["name"]: record for record in map(json.loads, pulled.out.splitlines())}
    assert by_name["com.example.cities"]["outcome"] == "up-to-date"
    assert by_name["com.example.upper"]["outcome"] == "failed"
    assert "is not in the workspace" in by_name["com.example.upper"]["error"]
    assert "is not in the workspace" in pulled.err


# --- Words for what happened -----------------------------------------------------------------------------------------


def test_a_derivative_without_results_says_that_it_has_no_new_records(odf: Odf, workspace: Path) -> None:
    """They did not "change nothing": they may wait for the watermark."""
    template = odf("new", "com.example.d", "--derivative", "--file", "-").out  # with `where id > 100`
    text = template.replace("com.example.input", "com.example.rates").replace("engine: spark", "engine: datafusion")
    assert odf("add", "-", stdin=text.encode()).code == 0
    assert odf("pull", "com.example.d").err.startswith("com.example.d: updated, no new records, watermark ")


def test_an_error_in_a_file_with_the_name_of_the_dataset_names_the_dataset(odf: Odf, workspace: Path) -> None:
    (workspace / "stock.csv").write_text("id\nx\n")
    (workspace / "stock.yaml").write_text(
        "{kind: DatasetSnapshot, version: 1, content: {name: stock, kind: Root, metadata: [{kind: SetPollingSource, "
        "fetch: {kind: FilesGlob, path: stock.csv}, read: {kind: Csv, header: true, schema: {fields: ["
        "{name: id, type: {kind: Int64}}]}}, merge: {kind: Append}}]}}"
    )
    assert odf("add", "stock.yaml").code == 0
    assert odf("pull", "stock").err.startswith("error: stock: stock.csv, line 2: column 'id' has 'x'")


def test_the_summary_of_an_ingest_accounts_for_every_row(odf: Odf, workspace: Path) -> None:
    def rows(*keys_and_names: str) -> bytes:
        lines = (line.split() for line in keys_and_names)
        return "".join(
            f'{{"event_time":"2024-02-01T00:00:00Z","id":{key},"name":"{name}"}}\n' for key, name in lines
        ).encode()

    def summary(dataset: str, *given: str) -> str:
        told = odf("ingest", dataset, "--stdin", stdin=rows(*given)).err
        assert told.startswith(f"{dataset}: ")
        return told.removeprefix(f"{dataset}: ").rpartition(" s)")[0].rpartition(" ")[0]

    assert summary("com.example.stock", "3 c", "4 d") == (
        "updated, 2 records in 1 block, watermark 2024-02-01T00:00:00Z (2 rows read: 2 new;"
    )
    assert summary("com.example.stock", "3 c", "4 D", "5 e", "5 E") == (
        "updated, 3 records in 1 block, watermark 2024-02-01T00:00:00Z"
        " (4 rows read: 1 new, 1 corrected, 1 changed nothing, 1 superseded by later rows, 2 late;"
    )
    assert summary("com.example.stock", "3 c") == "up to date (1 row read: 1 changed nothing;"
    assert summary("com.example.cities", "2 B", "9 z") == (
        "updated, 2 records in 1 block, watermark 2024-02-01T00:00:00Z"
        " (2 rows read: 1 new, 1 changed nothing, 1 retracted;"
    )
    told = odf("ingest", "com.example.rates", "--stdin", stdin=rows("7 x", "7 y", "1 a")).err.splitlines()
    assert "(3 rows read: 2 new, 1 changed nothing;" in told[0]
    assert (
        told[1]
        == "  note: 1 row has the key of a row before it in the same input; a ledger keeps all rows of a new key"
    )
    assert "in the same input" not in odf("ingest", "com.example.rates", "--stdin", stdin=rows("7 x", "7 y")).err, (
        "known keys are dropped, also where they are repeated"
    )


def test_counts_for_programs_add_up(odf: Odf, workspace: Path) -> None:
    line = b'{"event_time":"2024-02-01T00:00:00Z","id":1,"name":"%d"}\n'
    (told,) = odf("ingest", "com.example.stock", "--stdin", "-o", "json", stdin=line % 1 + line % 2).json
    assert told["rows"] == {
        "read": 2, "appended": 0, "corrected": 1, "retracted": 0, "unchanged": 0, "superseded": 1, "late": 0,
    }  # fmt: skip
    assert told["records"] == 2


def test_lineage_is_a_tree(odf: Odf, workspace: Path) -> None:
    assert odf("inspect", "lineage", "com.example.upper").out == (
        "com.example.upper  derivative, watermark 2024-01-01T00:00:00Z\n"
        "└─ com.example.rates  root, watermark 2024-01-01T00:00:00Z  <- holds it back\n"
    )
    flat = from_csv(odf("inspect", "lineage", "com.example.upper", "-o", "csv").out)
    assert [(row["depth"], row["name"]) for row in flat] == [("0", "com.example.upper"), ("1", "com.example.rates")]
    assert odf("inspect", "lineage", "com.example.upper", "-o", "json").json["inputs"][0]["name"] == "com.example.rates"


def test_settings(odf: Odf, workspace: Path) -> None:
    assert odf("config", "get", "engine.memory").out == ""
    assert (
        odf("config", "set", "engine.memory", "2g").err == f"engine.memory is now 2g ({workspace}/.odf/config.yaml)\n"
    )
    assert odf("config", "get", "ENGINE.memory").out == "2g\n"
    assert odf("config", "set", "engine.startupCache", "false", "--user").code == 0
    assert odf("config", "get", "engine.startupCache").out == "false\n"
    assert odf("config", "set", "engine.memory").err == "engine.memory is now not set\n"


@pytest.mark.parametrize("rows", [[], [(1, "a\nb")], [(1, None), (2, {"x": ["\u202e", 1.5]}), (3, [])]])
def test_json_is_the_same_whether_its_rows_flow_or_are_all_there(
    rows: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    output = Output(form=Format.JSON)
    output.rows(["n", "value"], rows)
    at_once = capsys.readouterr().out
    output.flow(["n", "value"], iter(rows))
    assert capsys.readouterr().out == at_once
    assert json.loads(at_once) == [dict(zip(("n", "value"), row, strict=True)) for row in rows]


@pytest.mark.parametrize("form", ["json", "ndjson", "yaml"])
def test_columns_of_one_name_are_refused_where_one_of_them_would_be_lost(odf: Odf, workspace: Path, form: str) -> None:
    joined = 'select a.id, b.id from "com.example.rates" a join "com.example.rates" b on a.id = b.id where a.id = 1'
    query = ["sql", "--engine", "datafusion", "-c", joined]
    assert "Two columns of the answer are called 'id'" in odf(*query, "-o", form).says
    assert odf(*query, "-o", "csv").out == "id,id\n1,1\n"
    assert odf(*query).code == 0
