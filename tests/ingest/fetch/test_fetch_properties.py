"""Whatever a server does between two versions of a file: what comes out is one of them, whole."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.ingest.fetching import NOW
from support.servers.static_server import StaticServer, send, static_server

from odfpy.chain.sources import FetchUrl
from odfpy.errors import FetchError
from odfpy.ingest.fetch import FetchContext, fetch
from odfpy.ingest.source_state import known_etag

BODIES = {f'"v{number}"': bytes([65 + number]) * (400 + 150 * number) for number in range(3)}


@dataclass(frozen=True)
class Behaviour:
    """How the server answers one request.

    Attributes:
        etag: of the version that it has then.
        sent: bytes after which it hangs up.
        ranges: whether it knows ranges; if it does, it may or may not heed If-Range.
        conditions: whether it knows If-None-Match.
        status: that it answers instead.
    """

    etag: str
    sent: int
    ranges: str
    conditions: bool
    status: int | None

    def __call__(self, handler) -> None:
        body, headers = BODIES[self.etag], {"ETag": self.etag}
        asked = handler.headers.get("Range")
        if self.status is not None:
            send(handler, b"", status=self.status)
        elif self.conditions and handler.headers["If-None-Match"] == self.etag:
            send(handler, b"", status=304)
        elif (
            asked and self.ranges != "none" and (self.ranges == "careless" or handler.headers["If-Range"] == self.etag)
        ):
            start = int(asked[6:-1])
            if start >= len(body):
                send(handler, b"", status=416)
                return
            span = f"bytes {start}-{len(body) - 1}/{len(body)}"
            self.cut(handler, body[start:], status=206, Content_Range=span, **headers)
        else:
            self.cut(handler, body, **headers)

    def cut(self, handler, body: bytes, **answer: object) -> None:
        send(handler, body[: self.sent], **{**answer, "Content_Length": len(body)})
        handler.close_connection = True


BEHAVIOURS = st.builds(
    Behaviour,
    etag=st.sampled_from(sorted(BODIES)),
    sent=st.integers(0, 800),
    ranges=st.sampled_from(["none", "careful", "careless"]),
    conditions=st.booleans(),
    status=st.sampled_from([None, None, None, None, 503, 404]),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StaticServer]:
    with static_server(tmp_path_factory.mktemp("site")) as site:
        yield site


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pulls=st.lists(st.lists(BEHAVIOURS, min_size=1, max_size=4), min_size=1, max_size=4), commits=st.booleans())
def test_file_is_one_of_the_versions_whole(server: StaticServer, pulls: list[list[Behaviour]], commits: bool):
    state = None
    with tempfile.TemporaryDirectory() as folder:
        for behaviours in pulls:
            left = [*behaviours]
            server.special = {"/a.csv": lambda handler, left=left: (left.pop(0) if len(left) > 1 else left[0])(handler)}
            context = FetchContext(now=NOW, root=Path(folder), scratch=Path(folder), state=state, pause=lambda _: None)
            try:
                files = list(fetch(FetchUrl(f"{server.url}/a.csv"), context))
            except FetchError:
                continue
            for file in files:
                etag = known_etag(file.state)
                assert etag is not None
                assert file.path.read_bytes() == BODIES[etag]
                assert file.state != state, "a version that is committed does not come again"
                state = file.state if commits else state
