"""`odf new --from`: files, folders, URLs, names, and of what is large the beginning."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cli.conftest import Odf
from support.ingest.inferable import PEOPLE, parquet, zipped
from support.ingest.new_from import comes_as_shown, first_rows, folder
from support.servers.static_server import send, static_server

__all__ = ["folder"]

REPOSITORY = Path(__file__).resolve().parents[3]


def test_the_name_is_that_of_the_file(odf: Odf, folder: Path):
    (folder / "data").mkdir()
    (folder / "data" / "rates-2024.csv.gz").write_bytes(gzip.compress(PEOPLE))
    made = odf("new", "--from", "data/rates-2024.csv.gz")
    assert (made.code, made.err.splitlines()[-1]) == (
        0,
        "Wrote rates-2024.yaml; read it, then run `odf add rates-2024.yaml`, `odf pull rates-2024`",
    )
    text = (folder / "rates-2024.yaml").read_text()
    assert "name: rates-2024\n" in text
    assert 'url: "file:data/rates-2024.csv.gz"' in text, "a file of the workspace is named from its folder"
    assert odf("new", "--from", "data/rates-2024.csv.gz").says.startswith("error: rates-2024.yaml already exists")
    assert (folder / "rates-2024.yaml").read_text() == text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--from", "a_b.csv"], "'a_b' is not a name of a dataset"),
        (["--from", "http://[host/x.csv"], "Not a URL: 'http://[host/x.csv'"),
        (["x", "--from", "gone.csv"], "There is no file gone.csv"),
        (["x", "--from", "gone/*.csv"], "The folder of 'gone/*.csv' does not exist"),
        (["x", "--from", ""], "--from must be a file"),
        (["x", "--from", "a" * 5000], "There is no file aaaa"),
        (["x", "--from", "https:" + "a" * 5000], "Not an http or https URL"),
        (["--from", "/"], "is not a name of a dataset"),
        (["x", "--from", "empty"], "No file in"),
        (["x", "--from", "gopher://x/a.csv"], "unknown scheme gopher"),
        (["x", "--from", "file:gone.csv"], "Cannot read file:gone.csv"),
        (["x", "--from", "http://127.0.0.1:1/a.csv"], "http://127.0.0.1:1/a.csv"),
        (["x_y", "--from", "a_b.csv"], "Not a dataset name: 'x_y'"),
        (["x", "--from", "a_b.csv", "--derivative"], "--from is for root datasets"),
        (["x", "--from", "a_b.csv", "-f", "gone/x.yaml"], "Cannot write gone/x.yaml"),
        ([], "The dataset needs a name"),
    ],
)
def test_places_and_names_that_make_no_sense(words: list[str], says: str, odf: Odf, folder: Path):
    (folder / "a_b.csv").write_bytes(PEOPLE)
    (folder / "empty").mkdir()
    refused = odf("new", *words)
    assert refused.code in (1, 2)
    assert says in refused.says
    assert not list(folder.glob("*.yaml"))


def test_a_file_whose_name_is_not_text(odf: Odf, folder: Path):
    Path(os.fsdecode(bytes(folder) + b"/bad\xff.csv")).write_bytes(PEOPLE)
    refused = odf("new", "x", "--from", os.fsdecode(b"bad\xff.csv"))
    assert (refused.code, refused.says) == (
        1,
        "error: File name 'bad\\udcff.csv' is not UTF-8 (E401)\nhint: Rename the file.\n",
    )


def test_no_workspace_is_needed_and_paths_are_whole_then(odf: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.csv").write_bytes(PEOPLE)
    made = odf("new", "x", "--from", "a b.csv", "--file", "-")
    assert made.code == 0
    assert f'url: "file:{tmp_path}/a%20b.csv"' in made.out
    assert not list(tmp_path.glob("*.yaml"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert odf("init").code == 0
    comes_as_shown(odf, "../a b.csv")


def test_the_manifest_on_the_screen_is_a_manifest(odf: Odf, folder: Path):
    (folder / "a.csv").write_bytes(PEOPLE)
    made = odf("new", "x", "--from", "a.csv", "-f", "-")
    assert made.code == 0
    assert odf("add", "-", stdin=made.out.encode()).code == 0
    found = odf("new", "x", "--from", "a.csv", "-f", "-", "-o", "json").json
    assert found["manifest"] == made.out
    assert found["file"] is None
    assert found["columns"][0] == {"name": "id", "type": "Int64", "origin": None, "remark": None}
    assert found["keys"][0] == ["id"]


@pytest.mark.parametrize("place", ["in", "in/*.csv", "in/2024-*"])
def test_a_folder_is_taken_in_file_by_file(place: str, odf: Odf, folder: Path):
    (folder / "in").mkdir()
    (folder / "in" / ".hidden.csv").write_bytes(b"x")
    for day in (1, 2):
        (folder / "in" / f"2024-01-0{day}.csv").write_bytes(b"id,v\n%d,1\n%d,2\n" % (day, day + 10))
    found = odf("new", "x", "--from", place, "-o", "json")
    assert found.code == 0, found.err
    fetch = found.json["fetch"]
    assert fetch["kind"] == "FilesGlob"
    assert fetch["eventTime"] == {"kind": "FromPath", "pattern": r"(\d{4}-\d{2}-\d{2})", "timestampFormat": "%Y-%m-%d"}
    assert "the first of 2 files" in found.json["manifest"]
    assert odf("add", "x.yaml").code == 0
    assert odf("pull", "x").code == 0
    assert first_rows(odf, "x")[:2] == found.json["firstRows"]
    assert [row["event_time"][:10] for row in found.json["firstRows"]] == ["2024-01-01", "2024-01-01"]


def test_a_folder_with_odd_letters(odf: Odf, folder: Path):
    (folder / "a[1]*").mkdir()
    (folder / "a[1]*" / "b.csv").write_bytes(PEOPLE)
    comes_as_shown(odf, "a[1]*")


@pytest.mark.parametrize("file", ["people.csv", "people.csv.gz", "people.zip", "people.parquet"])
def test_a_file_on_a_server(file: str, odf: Odf, folder: Path, tmp_path_factory: pytest.TempPathFactory):
    site = tmp_path_factory.mktemp("site")
    (site / "people.csv").write_bytes(PEOPLE)
    (site / "people.csv.gz").write_bytes(gzip.compress(PEOPLE))
    (site / "people.zip").write_bytes(zipped(people__csv=PEOPLE))
    (site / "people.parquet").write_bytes(parquet(pa.table({"id": [1, 2]})))
    with static_server(site) as server:
        comes_as_shown(odf, f"{server.url}/{file}")


def test_a_secret_of_a_url_stays_a_template(odf: Odf, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOURCE_KEY", "s3cr3t")
    with static_server(folder) as server:
        server.special["s3cr3t"] = lambda handler: send(handler, PEOPLE)
        url = server.url + "/a.csv?key=${{ env.SOURCE_KEY }}"
        made = odf("new", "--from", url)
        assert made.code == 0, made.err
        assert odf("add", "a.yaml").code == 0
        assert odf("pull", "a").code == 0
    assert "s3cr3t" not in (folder / "a.yaml").read_text() + made.out + made.err


def test_a_setting_limits_what_is_looked_at(odf: Odf, folder: Path):
    assert odf("config", "set", "sources.hosts", "example.com").code == 0
    with static_server(folder) as server:
        refused = odf("new", "x", "--from", f"{server.url}/a.csv")
    assert refused.code == 1
    assert "E431" in refused.err
    assert not server.requests


# --- Large files -----------------------------------------------------------------------------------------------------

LARGE = {
    "csv": (b"id,day,text\n", b'%d,2024-01-01,"a ""line""\nor two"\n', b""),
    "utf-16.csv": ("id,text\n".encode("utf-16"), b"%d,\xe9\n", b""),
    "ndjson": (b"", b'{"id": %d, "text": "\xc3\xa9"}\n', b""),
    "json": (b'{"a": {"rows": [{"id": 0}', b',{"id": %d, "text": "]}"}', b"]}}"),
    "geojson": (
        b'{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"id": 0}, "geometry": null}',
        b', {"type": "Feature", "properties": {"id": %d}, "geometry": null}',
        b"]}",
    ),
}


@pytest.mark.parametrize("kind", LARGE)
def test_of_a_large_file_only_the_beginning_is_looked_at(
    kind: str, odf: Odf, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("odfpy.ingest.inference.sample.SAMPLE_BYTES", 10_000)
    monkeypatch.setattr("odfpy.ingest.inference.formats.SAMPLE_BYTES", 10_000)
    before, record, after = LARGE[kind]
    rows = b"".join(record % number for number in range(1, 1000))
    rows = rows.decode("latin-1").encode("utf-16-le") if kind.startswith("utf-16") else rows
    (folder / f"large.{kind}").write_bytes(before + rows + after)
    found = odf("new", "x", "--from", f"large.{kind}", "-o", "json").json
    assert not found["isWhole"]
    assert 50 < found["rows"] < 900
    assert f"the first {found['rows']} rows of" in found["manifest"]
    (folder / "x.yaml").unlink()
    comes_as_shown(odf, f"large.{kind}")


def test_of_a_large_file_on_a_server_only_the_beginning_is_fetched(odf: Odf, folder: Path):
    sent = []

    def endless(handler: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"id,text\n")
        line = b"".join(b"%d,some words\n" % number for number in range(100_000))
        try:
            while len(sent) < 1000:
                handler.wfile.write(line)
                sent.append(len(line))
        except OSError:
            pass
        handler.close_connection = True

    with static_server(folder) as server:
        server.special["large.csv"] = endless
        found = odf("new", "--from", f"{server.url}/large.csv", "-o", "json")
    assert found.code == 0, found.err
    assert not found.json["isWhole"]
    assert sum(sent) < 100 << 20
    assert "the first " in found.json["manifest"]


def test_the_last_of_several_files_is_looked_at_too(odf: Odf, folder: Path):
    (folder / "in").mkdir()
    (folder / "in" / "1.csv").write_bytes(b"id,v\n1,1\n2,2\n")
    (folder / "in" / "2.csv").write_bytes(b"id,v\n3,three\n")
    made = odf("new", "--from", "in")
    assert made.code == 0
    words = "the last file does not match the first: 2.csv, line 2: column 'v' has 'three'"
    assert words in made.err
    assert words in " ".join(line.removeprefix("# ") for line in (folder / "in.yaml").read_text().splitlines())


def test_what_is_not_certain_is_said_on_the_screen(odf: Odf, folder: Path):
    (folder / "a.csv").write_bytes(b"id,name\n1,\xe9\n")
    assert "note: line 2 is not UTF-8; windows-1252 is a guess" in odf("new", "--from", "a.csv").err
    (folder / "b.json").write_bytes(b'[{"id": 1, "lines": [{"a": 1}]}]')
    assert "note: omitted, since no column type fits: 'lines'" in odf("new", "--from", "b.json").err
    with static_server(folder) as server:
        server.special["token=s3cr3t"] = lambda handler: send(handler, PEOPLE)
        made = odf("new", "--from", f"{server.url}/c.csv?token=s3cr3t")
    assert "note: the URL may contain a secret" in made.err


def test_what_has_no_name_is_left_out(odf: Odf, folder: Path):
    (folder / "a.json").write_bytes(b'[{"": 0, "id": 1}, {"": 1, "id": 2}]')
    made = odf("new", "--from", "a.json")
    assert made.code == 0, made.err
    assert "# Left out '': a column needs a name." in (folder / "a.yaml").read_text()


def test_the_example_of_the_page_is_what_comes_of_its_file(odf: Odf, folder: Path):
    page = (REPOSITORY / "docs" / "sources.md").read_text(encoding="utf-8").partition("## Inferring a manifest\n")[2]
    data, screen, manifest = re.findall(r"^```[a-z]+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[:3]
    (folder / "rates-2024.csv").write_text(data)
    made = odf("new", "--from", "rates-2024.csv")
    assert f"$ odf new --from rates-2024.csv\n{made.out}" == screen
    assert (folder / "rates-2024.yaml").read_text() == manifest


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("file", ["large.csv.gz", "large.zip", "large.parquet"])
@pytest.mark.parametrize("is_on_server", [False, True])
def test_of_a_large_packed_file_only_the_beginning_is_looked_at(
    file: str, is_on_server: bool, odf: Odf, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("odfpy.ingest.inference.columns._PARQUET_BYTES", 1 << 20)
    ids = range(300_000)
    text = b"id,text\n" + b"".join(b"%d,the text of number %d\n" % (one, one) for one in ids)
    made = {
        "large.csv.gz": lambda: gzip.compress(text, 1),
        "large.zip": lambda: zipped(large__csv=text),
        "large.parquet": lambda: parquet(pa.table({"id": ids}), row_group_size=100_000),
    }
    (folder / file).write_bytes(made[file]())
    with static_server(folder) as server:
        place = f"{server.url}/{file}" if is_on_server else file
        found = odf("new", "x", "--from", place, "-o", "json").json
        assert not found["isWhole"]
        assert 90_000 < found["rows"] < 300_000
        (folder / "x.yaml").unlink()
        comes_as_shown(odf, place)


def test_of_a_large_file_the_screen_says_so(odf: Odf, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("odfpy.ingest.inference.formats.SAMPLE_BYTES", 100)
    (folder / "a.csv").write_bytes(b"id\n" + b"".join(b"%d\n" % number for number in range(10, 100)))
    made = odf("new", "--from", "a.csv")
    assert "note: only the first 32 rows were looked at; later rows may not fit" in made.err
    assert len(made.out.splitlines()) == 11
