"""Servers of datasets for tests: uvicorn in a thread of this process, on the loopback interface."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.chains.small_datasets import add_slice, dataset_id, make_dataset

from odfpy.chain.layout import DatasetLayout
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.dataset.names import DatasetAlias
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.http.mounted_apps import MountedAppFactory
from odfpy.serving.http.tls import Tls
from odfpy.serving.server import DatasetServer, listen
from odfpy.serving.settings import ServeSettings

PATIENCE = 300
"""Seconds that a test waits for something."""


@contextmanager
def serving(
    *workspaces: Workspace,
    port: int = 0,
    mounted_apps: Mapping[str, MountedAppFactory] | None = None,
    tls: Tls | None = None,
    **settings: Any,
) -> Iterator[DatasetServer]:
    """A server of some workspaces."""
    ready = threading.Event()
    with listen("127.0.0.1", port) as listener:
        server = DatasetServer(
            workspaces,
            listener,
            settings=ServeSettings(**{"poll": 0.02, "grace": 10, **settings}),
            mounted_apps=mounted_apps,
            tls=tls,
            on_listening=lambda _url: ready.set(),
        )
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            assert ready.wait(PATIENCE)
            yield server
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive(), "the server does not end"


def put(workspace: Workspace, name: str, number: int, *, public: bool = False) -> StoredDataset:
    """Return a small dataset with a slice and a checkpoint in a workspace."""
    staged = workspace.odf / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    add_slice(make_dataset(DatasetLayout.local(staged), "first", number=number), b"rows of " * 1000, b"a checkpoint")
    with workspace.storage.editing():
        dataset = workspace.storage.create(DatasetAlias.parse(name), dataset_id(number), staged)
    if public:
        set_visibility(dataset.folder, Visibility.PUBLIC)
    return dataset


@dataclass(frozen=True)
class Answer:
    """A response of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Ask = Callable[..., Answer]


def ask(
    url: str, *, method: str = "GET", token: str | None = None, body: bytes | None = None, **headers: str
) -> Answer:
    """One request over a connection of its own; `if_match="x"` is the header `If-Match: x`."""
    parts = urlsplit(url)
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        fields["Authorization"] = f"Bearer {token}"
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body, {"Connection": "close", **fields})
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
    finally:
        connection.close()


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.01)


def workspace_at(folder: Path) -> Workspace:
    return Workspace.init(folder)
