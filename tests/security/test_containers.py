"""An image that wants to read files of the machine through what it leaves behind."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from support.ingest.fetching import NOW
from support.servers.podman import PodmanStandIn

from odfpy.chain.sources import FetchContainer
from odfpy.errors import FetchError
from odfpy.ingest.fetch import FetchContext, fetch

IMAGE = "example.com/owner/image:1"
PATHS = ("ODF_NEW_ETAG_PATH", "ODF_NEW_LAST_MODIFIED_PATH", "ODF_NEW_HAS_MORE_DATA_PATH")
TRICKS = {
    "link to a file": "ln -s {secret} ${path}",
    "link to nothing": "ln -s /nowhere ${path}",
    "link to itself": "ln -s $(basename ${path}) ${path}",
    "link to a device": "ln -s /dev/zero ${path}",
    "link to a pipe": "mkfifo $(dirname ${path})/pipe; ln -s pipe ${path}",
    "pipe": "mkfifo ${path}",
    "folder": "mkdir ${path}",
    "socket": "{python} -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' ${path}",
}


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PodmanStandIn:
    """The only container engine that can be found."""
    stand_in = PodmanStandIn.install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{stand_in.folder}:/usr/bin:/bin")
    return stand_in


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("trick", TRICKS)
def test_only_regular_files_are_read(podman: PodmanStandIn, trick: str, path: str):
    # A folder with a short name: the path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "secret").write_text("2024-01-31T12:00:00Z")
        script = TRICKS[trick].format(secret=root / "secret", path=path, python=sys.executable)
        podman.image(IMAGE, f"echo a; {script}")
        with pytest.raises(FetchError, match="not a regular file"):
            list(fetch(FetchContainer(IMAGE), FetchContext(now=NOW, root=root, scratch=root / "scratch")))


def test_huge_state_is_not_read_whole(podman: PodmanStandIn, tmp_path: Path):
    podman.image(IMAGE, "echo a; truncate -s 1T $ODF_NEW_ETAG_PATH")
    with pytest.raises(FetchError, match="wrote an invalid state to new-etag"):
        list(fetch(FetchContainer(IMAGE), FetchContext(now=NOW, root=tmp_path, scratch=tmp_path / "scratch")))


def test_image_runs_without_rights(podman: PodmanStandIn, tmp_path: Path):
    podman.image(IMAGE, "echo a")
    list(fetch(FetchContainer(IMAGE), FetchContext(now=NOW, root=tmp_path, scratch=tmp_path / "scratch")))
    (call,) = [call for call in podman.calls if call[0] == "run"]
    options = call[: call.index(IMAGE)]
    assert {"--cap-drop=ALL", "--security-opt=no-new-privileges"} <= set(options)
    assert not [option for option in options if option.startswith(("--privileged", "--cap-add", "--network=host"))]
