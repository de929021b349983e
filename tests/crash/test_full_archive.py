"""Archives on disks that are full, at every stage: an error that says so, nothing half there, and the next push works.

Each story happens on a small disk in memory that only its own process sees (`unshare` and `mount` of util-linux).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.examples import examples
from support.processes.small_disk import run_story

STORY = """
import os, shutil, sys
from http.client import HTTPConnection
from contextlib import suppress
from pathlib import Path

from support.archive.served import hash_of, serve_in
from support.processes.small_disk import SmallDisk
from support.servers.serving import Answer
from odfpy.archive import PushOutcome, open_archive
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError

disk, inputs = Path(sys.argv[1]), Path(sys.argv[2])
small = SmallDisk(disk, disk / "workspace")
small.mount("8m")
odf, fill = small.odf, small.fill
number = 0

def new_files(*sizes):
    global number
    files = []
    for size in sizes:
        number += 1
        file = inputs / f"file-{number}"
        file.write_bytes(os.urandom(size))
        files.append(file)
    return files

def is_whole():
    for report in Workspace.open(disk / "workspace").verify(all=True):
        assert report.ok, report
    left = [path for path in disk.rglob("*") if path.name.startswith((".tmp", ".odf-part")) or path.suffix == ".part"]
    scratch = disk / "workspace" / ".odf" / "run" / "scratch"
    left += list(scratch.iterdir()) if scratch.exists() else []
    assert not left, left

ROOMS = [kib << 10 for kib in (0, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 2048)][:: 1 if THOROUGH else 2]

def pushed(archive, files):
    return archive.push(files, what="foo", where="here", start="2024-01-01")

def known(archive):
    return [record.path for record in archive.list("foo", start="2023-01-01", end="2025-01-01")]

def tells(error):
    text = f"{error.message} {error.hint}".lower()
    return "no space left" in text or "no disk space" in text

def send_in_chunks(served, data):
    connection = HTTPConnection(served.server.url.removeprefix("http://"), timeout=30)
    pieces = (data[at : at + 100_000] for at in range(0, len(data), 100_000))
    path = f"/logs/v0/archive/objects/{hash_of(data)}"
    headers = {"Authorization": f"Bearer {served.writer.token}", "Transfer-Encoding": "chunked"}
    with suppress(BrokenPipeError, ConnectionResetError):  # the server need not wait for the rest
        connection.request("PUT", path, pieces, headers, encode_chunked=True)
    answer = connection.getresponse()
    return Answer(answer.status, dict(answer.headers), answer.read())

def stages(archive, sizes):
    refused = 0
    for room in ROOMS:
        fill(but=room)
        files = new_files(*sizes)
        before = known(archive)
        try:
            results = pushed(archive, files)
        except OdfError as error:
            refused += 1
            assert tells(error), (room, error.message)
            after = before
        else:
            assert all(result.outcome is PushOutcome.PUSHED for result in results), (room, results)
            after = [*before, *map(str, files)]
        (disk / "filling").unlink()
        assert sorted(known(archive)) == sorted(after), room
        is_whole()
    assert refused >= 3, refused
    assert pushed(archive, new_files(*sizes))[0].outcome is PushOutcome.PUSHED
"""

LOCAL = """
for served in serve_in(disk):
    for sizes in [(100, 200), (60_000, 90_000)] if THOROUGH else [(100, 200)]:
        stages(open_archive("logs", workspace=served.workspace), sizes)
"""

REMOTE = """
for served in serve_in(disk):
    for sizes in [(100, 200), (60_000, 90_000), (1_500_000,)] if THOROUGH else [(60_000, 90_000)]:
        stages(open_archive(served.url, token=served.writer.token), sizes)
"""

# A client does not know how much room there is, and one that does not say how much it sends is not asked.
PARTS = """
for served in serve_in(disk):
    data = os.urandom(3 << 20)
    fill(but=1 << 20)
    for answer in (served.writer.put(hash_of(data), data), send_in_chunks(served, data)):
        assert (answer.status, answer.json["code"]) == (507, "NoRoom"), answer.body
        assert served.writer.head(hash_of(data)) == (0, "?0")
    little = os.urandom(100_000)
    assert served.writer.put(hash_of(little), little).status == 204, "no part keeps the disk full"
"""

FETCH = """
for served in serve_in(inputs):
    for place in ("logs", served.url):
        archive = open_archive(place, workspace=served.workspace, token=served.writer.token)
        (file,) = new_files(3 << 20)
        (result,) = pushed(archive, [file])
        fill(but=1 << 20)
        try:
            archive.fetch(result.url, folder=disk / "fetched")
        except OdfError as error:
            assert tells(error), error.message
        else:
            raise AssertionError("there is no room")
        assert not list((disk / "fetched").iterdir())
        (disk / "filling").unlink()
        assert archive.fetch(result.url, folder=disk / "fetched").read_bytes() == file.read_bytes()
        shutil.rmtree(disk / "fetched")
"""

COMMANDS = """
for served in serve_in(disk):
    (file,) = new_files(100)
    words = ["--what", "foo", "--where", "here", "--start", "2024-01-01"]
    assert odf("archive", "push", file, *words)[0] == 0
    fill(but=0)
    code, out, err = odf("archive", "push", *new_files(5000), *words)
    assert code == 1 and "No space left on device" in err and "(E851)" in err and len(err.splitlines()) <= 4, err
    for command in (["list", "foo", "--start", "2023-01-01"], ["latest", "foo", "here", "--lookback", "9999"]):
        code, out, err = odf("archive", *command)
        assert code == 0 and "odf://logs/" in out, err
"""


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "story",
    [LOCAL, REMOTE, PARTS, FETCH, COMMANDS],
    ids=["local", "remote", "parts", "fetch", "commands"],
)
def test_disk(story: str, tmp_path: Path) -> None:
    disk, inputs = tmp_path / "disk", tmp_path / "inputs"
    disk.mkdir()
    inputs.mkdir()
    run_story(f"THOROUGH = {examples(0, 1)}\n{STORY}{story}", disk, inputs)
