"""What sources may reach where the operator has set limits: nothing else is asked, read, given away or run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.ingest.fetching import NOW
from support.servers.podman import PodmanStandIn
from support.servers.static_server import send, static_server

from odfpy.chain.sources import (
    EnvVar,
    FetchContainer,
    FetchEthereumLogs,
    FetchFilesGlob,
    FetchMqtt,
    FetchStep,
    FetchUrl,
    MqttTopicSubscription,
    RequestHeader,
)
from odfpy.dataset.identity import KeyPair
from odfpy.ingest.fetch import FetchContext, SourceOptions, fetch
from odfpy.ingest.fetch.bounds import SourceBounds, SourceOutOfBounds
from odfpy.ingest.fetch.preview import preview

NOTHING = ("none",)


def fetched(tmp_path: Path, step: FetchStep, look: Any = fetch, **bounds: Any) -> list[Any]:
    context = FetchContext(
        now=NOW,
        root=tmp_path / "workspace",
        scratch=tmp_path / "scratch",
        environment={"TOKEN": "secret", "GH_TOKEN": "secret", "HOST": "evil.example.com", "FOLDER": "/etc"},
        dataset_id=KeyPair.generate().dataset_id,
        timeout=2,
        retries=0,
        options=SourceOptions(bounds=SourceBounds(**bounds)),
    )
    (tmp_path / "workspace").mkdir(exist_ok=True)
    found = look(step, context)
    return list(found) if look is fetch else list(found.inputs or ())


# --- Variables ---

GIVING = [
    FetchUrl("http://localhost:1/${{ env.TOKEN }}"),
    FetchUrl("http://localhost:1/", headers=(RequestHeader("a", "${{ env.TOKEN || 'x' }}"),)),
    FetchUrl("http://localhost:1/${{ env.GH_TOKEN || env.TOKEN }}"),
    FetchFilesGlob("${{ env.TOKEN }}/*"),
    FetchContainer("image:${{ env.TOKEN }}"),
    FetchContainer("image", args=("${{ env.TOKEN }}",)),
    FetchContainer("image", env=(EnvVar("TOKEN"),)),
    FetchContainer("image", env=(EnvVar("X", "${{ env.TOKEN }}"),)),
    FetchMqtt(host="${{ env.TOKEN }}", port=1, topics=(MqttTopicSubscription("a"),)),
    FetchMqtt(host="localhost", port=1, username="${{ env.TOKEN }}", topics=(MqttTopicSubscription("a"),)),
    FetchMqtt(host="localhost", port=1, password="${{ env.TOKEN }}", topics=(MqttTopicSubscription("a"),)),
    FetchEthereumLogs(node_url="http://localhost:1/${{ env.TOKEN }}"),
]


@pytest.mark.parametrize("look", [fetch, preview])
@pytest.mark.parametrize("step", GIVING, ids=str)
def test_other_variables_are_not_given_away(tmp_path: Path, step: FetchStep, look: Any):
    with pytest.raises(SourceOutOfBounds, match=r"uses the environment variable TOKEN, which sources\.variables"):
        fetched(tmp_path, step, look, variables=("GH_*",))


def test_those_that_are_allowed_are_given(tmp_path: Path):
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "secret").write_text("a")
    with static_server(tmp_path / "web") as site:
        assert len(fetched(tmp_path, FetchUrl(site.url + "/${{ env.GH_TOKEN }}"), variables=("X", "GH_*"))) == 1


# --- Hosts ---


@pytest.mark.parametrize(
    "step",
    [
        FetchUrl("http://evil.example.com/x"),
        FetchUrl("http://EVIL.example.com./x"),
        FetchUrl("https://good.example.com@evil.example.com/x"),
        FetchUrl("http://good.example.com:81/x"),
        FetchUrl("ftp://evil.example.com/x"),
        FetchUrl("s3://bucket/x"),
        FetchUrl("http://${{ env.HOST }}/x"),
        FetchMqtt(host="evil.example.com", port=1883, topics=(MqttTopicSubscription("a"),)),
        FetchMqtt(host="mqtts://evil.example.com", port=1883, topics=(MqttTopicSubscription("a"),)),
        FetchEthereumLogs(node_url="https://evil.example.com/good.example.com"),
    ],
    ids=str,
)
def test_other_hosts_are_not_asked(tmp_path: Path, step: FetchStep):
    with pytest.raises(SourceOutOfBounds, match=r"uses the host \S+, which sources\.hosts does not allow"):
        fetched(tmp_path, step, hosts=("good.example.com:80", "*.good.example.com"))


def test_nor_are_they_by_a_redirect(tmp_path: Path):
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "x").write_text("a")
    with static_server(tmp_path / "web") as good, static_server(tmp_path / "web") as evil:
        port = good.url.rpartition(":")[2]
        good.special["/there"] = lambda handler: send(handler, b"", status=302, Location=f"{evil.url}/x")
        good.special["/here"] = lambda handler: send(handler, b"", status=302, Location=f"{good.url}/x")
        assert len(fetched(tmp_path, FetchUrl(f"{good.url}/here"), hosts=(f"127.0.0.1:{port}",))) == 1
        with pytest.raises(SourceOutOfBounds):
            fetched(tmp_path, FetchUrl(f"{good.url}/there"), hosts=(f"127.0.0.1:{port}",))
        assert evil.requests == []


# --- Folders ---


@pytest.mark.parametrize("look", [fetch, preview])
@pytest.mark.parametrize(
    "step",
    [
        FetchUrl("file:///etc/hostname"),
        FetchUrl("file:///etc/does-not-exist"),
        FetchUrl("file:../outside/1.csv"),
        FetchUrl("file:in/link.csv"),
        FetchUrl("file:in/%2e%2e/%2e%2e/outside/1.csv"),
        FetchFilesGlob("/etc/host*"),
        FetchFilesGlob("../outside/*.csv"),
        FetchFilesGlob("in/*.csv"),
        FetchFilesGlob("in/sub*/../../../outside/*.csv"),
        FetchFilesGlob("${{ env.FOLDER }}/host*"),
        FetchFilesGlob("folder/*.csv"),
    ],
    ids=str,
)
def test_files_elsewhere_are_not_read(tmp_path: Path, step: FetchStep, look: Any):
    inside, outside = tmp_path / "workspace" / "in", tmp_path / "outside"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "1.csv").write_text("a")
    (inside / "link.csv").symlink_to(outside / "1.csv")
    (tmp_path / "workspace" / "folder").symlink_to(outside)
    with pytest.raises(SourceOutOfBounds, match=r"uses the file \S+, which sources\.folders does not allow"):
        fetched(tmp_path, step, look, folders=(tmp_path / "allowed",))


def test_those_of_the_workspace_and_of_allowed_folders_are(tmp_path: Path):
    for folder in ("workspace/in", "allowed"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "1.csv").write_text("a")
    bounds = {"folders": (tmp_path / "allowed",)}
    assert len(fetched(tmp_path, FetchFilesGlob("in/*.csv"), **bounds)) == 1
    assert len(fetched(tmp_path, FetchFilesGlob(f"{tmp_path}/allowed/*.csv"), **bounds)) == 1
    assert len(fetched(tmp_path, FetchUrl(f"file://{tmp_path}/allowed/1.csv"), **bounds)) == 1


# --- Images ---


def test_other_images_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    podman = PodmanStandIn.install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{podman.folder}:/usr/bin:/bin")
    podman.image("ghcr.io/us/fetch:1", "echo a")
    for image in ("ghcr.io/them/fetch:1", "ghcr.io/us", "docker.io/ghcr.io/us/fetch:1", "ghcr.io/${{ env.HOST }}/x"):
        with pytest.raises(SourceOutOfBounds, match=r"uses the image \S.*, which sources\.images does not allow"):
            fetched(tmp_path, FetchContainer(image), images=("ghcr.io/us/*",))
    assert podman.calls == []
    assert len(fetched(tmp_path, FetchContainer("ghcr.io/us/fetch:1"), images=("ghcr.io/us/*",))) == 1


@pytest.mark.parametrize("step", [*GIVING, FetchUrl("http://localhost:1/")], ids=str)
def test_none_is_none(tmp_path: Path, step: FetchStep):
    with pytest.raises(SourceOutOfBounds):
        fetched(tmp_path, step, variables=NOTHING, hosts=NOTHING, folders=(), images=NOTHING)
