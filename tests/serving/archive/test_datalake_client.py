"""The client that PyPI has for datalake, unmodified, in an environment of its own (`.ci/clients`)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.archive.served import DAY, YEAR_2010, Served, packed, push, push_many

from odfpy.data.timestamp import Timestamp
from odfpy.serving.callers.visibility import Visibility, set_visibility

PROGRAMS = Path(__file__).parents[3] / ".venv-datalake" / "bin"

LISTS = """
import json, sys
from datalake import Archive
archive = Archive()
found = list(archive.list("foo", start="2010-01-01", end="2011-01-01"))
places = list(archive.list("foo", start="2010-01-01", end="2011-01-01", where="w7"))
job = list(archive.list("foo", work_id="job-3"))
latest = archive.latest("now", "here")
file = archive.fetch(latest["url"])
stream = archive.fetch(latest["http_url"], stream=True)
unpacked = archive.fetch(archive.latest("packed", "here")["url"])
json.dump([
    [one["metadata"]["id"] for one in found], [one["metadata"]["where"] for one in places], len(job),
    file.read().decode(), file.metadata, b"".join(stream.iter_content()).decode(), unpacked.read().decode(),
    archive.fetch_to_filename(latest["url"], filename_template="{where}/{what}-{start}.log"),
], sys.stdout)
"""

REFUSED = """
from datalake import Archive
from datalake.archive import DatalakeHttpError
archive = Archive()
for ask in (
    lambda: list(archive.list("foo")),
    lambda: archive.latest("nothing", "nowhere"),
    lambda: archive.fetch(archive.http_url + "/v0/archive/files/none/data"),
):
    try:
        ask()
    except DatalakeHttpError as error:
        print(error)
"""


class Datalake:
    """The client and its command, set up for an archive that everybody may read."""

    def __init__(self, served: Served, folder: Path) -> None:
        set_visibility(served.archive.dataset.folder, Visibility.PUBLIC)
        self.url = served.url
        self._folder = folder
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        dummy = {
            "DATALAKE_STORAGE_URL": "s3://nothing",
            "DATALAKE_HTTP_URL": served.url,
            "DATALAKE_CONFIG": "/dev/null",
        }
        self._environment = {**kept, **dummy, "PYTHONWARNINGS": "ignore", "LC_ALL": "C.UTF-8"}

    def python(self, program: str) -> str:
        return self._run([str(PROGRAMS / "python"), "-c", program])

    def command(self, *arguments: str, stdin: str = "") -> str:
        return self._run([str(PROGRAMS / "datalake"), *arguments], stdin)

    def _run(self, command: list[str], stdin: str = "") -> str:
        done = subprocess.run(
            command, cwd=self._folder, env=self._environment, input=stdin, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def datalake(served: Served, tmp_path: Path) -> Datalake:
    folder = tmp_path / "downloads"
    folder.mkdir()
    return Datalake(served, folder)


def test_it_lists_finds_the_latest_and_fetches(served: Served, datalake: Datalake, tmp_path: Path) -> None:
    made = push_many(
        served.archive,
        tmp_path / "file",
        [{"where": f"w{n}", "work_id": f"job-{n}", "start": YEAR_2010 + n * DAY} for n in range(230)],
    )
    now = Timestamp.now().millis
    latest = push(served.archive, tmp_path / "file", b"what is new", what="now", where="here", start=now)
    push(served.archive, tmp_path / "file", packed(b"was packed"), what="packed", where="here", start=now)
    found, places, job, text, metadata, streamed, unpacked, name = json.loads(datalake.python(LISTS))
    assert found == [record.id for record in made]
    assert (places, job) == (["w7"], 1)
    assert text == streamed == "what is new"
    assert {key: metadata[key] for key in latest.metadata()} == latest.metadata()
    assert unpacked == "was packed"  # its library unpacks what the server marks, as it does with datalake's own API
    assert (tmp_path / "downloads" / name).read_bytes() == b"what is new"
    assert name == f"here/now-{now}.log"


def test_its_command_lists_fetches_and_cats(served: Served, datalake: Datalake, tmp_path: Path) -> None:
    push_many(
        served.archive, tmp_path / "file", [{"content": b"number %d" % n, "start": YEAR_2010 + n} for n in range(3)]
    )
    push(served.archive, tmp_path / "file", b"new", what="now", where="here", start=Timestamp.now().millis)
    listed = datalake.command("list", "foo", "--start", "2010-01-01", "--end", "2010-01-02")
    assert len(listed.split()) == 3
    assert listed == datalake.command("list", "foo", "--start", "2010-01-01", "--end", "2010-01-02", "--format", "http")
    fetched = datalake.command("fetch", "--filename-template", "{what}-{start}", stdin=listed)
    assert [(tmp_path / "downloads" / name).read_bytes() for name in fetched.split()] == [
        b"number 0",
        b"number 1",
        b"number 2",
    ]
    (latest,) = datalake.command("latest", "now", "here").split()
    assert "new" in datalake.command("cat", latest)
    assert "number 1" in datalake.command("cat", listed.split()[1])
    (human,) = datalake.command("latest", "now", "here", "--format", "json").splitlines()
    assert json.loads(human)["url"] == latest


def test_it_understands_what_is_refused(datalake: Datalake) -> None:
    codes = [line.rpartition("(")[2].rstrip(")") for line in datalake.python(REFUSED).splitlines()]
    assert codes == ["NoWorkInterval", "NoSuchFile", "NoSuchFile"]


def test_it_reads_the_archive_that_is_meant_without_a_name(served: Served, tmp_path: Path) -> None:
    push(served.archive, tmp_path / "file", b"bytes", start=YEAR_2010)
    folder = tmp_path / "downloads"
    folder.mkdir()
    datalake = Datalake(served, folder)
    datalake._environment["DATALAKE_HTTP_URL"] = served.server.url
    (url,) = datalake.command("list", "foo", "--start", "2010-01-01", "--end", "2010-01-02").split()
    assert url.startswith(f"{served.server.url}/v0/archive/files/")
    assert "bytes" in datalake.command("cat", url)
