"""`odf+https://`: messages and objects over TLS."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chains.small_datasets import add_slice, image, make_dataset
from support.servers.certificates import self_signed
from support.servers.serving import PATIENCE

from odfpy.chain.layout import DatasetLayout
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import TransferError
from odfpy.repository.exchange import fetch_dataset, send_dataset
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.server import DatasetServer, Tls, listen
from odfpy.serving.settings import ServeSettings


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    certificate, key = self_signed(tmp_path)
    workspace = Workspace.init(tmp_path / "node")
    monkeypatch.setenv("ODF_TOKEN", Tokens(workspace.odf).new("writer", Scope.WRITE))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    ready = threading.Event()
    with listen("127.0.0.1", 0) as listener:
        server = DatasetServer(
            [workspace],
            listener,
            settings=ServeSettings(grace=10),
            tls=Tls(certificate, key),
            on_listening=lambda _url: ready.set(),
        )
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            assert ready.wait(PATIENCE)
            yield f"odf+{server.url}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


def test_push_and_pull_over_tls(node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert node.startswith("odf+https://")
    source = make_dataset(DatasetLayout.in_memory(), "a")
    add_slice(source, b"row" * 100_000, b"state")
    assert send_dataset(source, f"{node}/x").num_objects == 2
    copy = DatasetLayout.local(tmp_path / "copy")
    fetch_dataset(f"{node}/x", copy)
    assert image(copy) == image(source)
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(TransferError, match="not trusted"):
        fetch_dataset(f"{node}/x", copy)
