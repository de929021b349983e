"""Uploads to Google Cloud Storage, where each answer says how many bytes the store has kept."""

from __future__ import annotations

import asyncio
import io
import re
from typing import Any, cast

import pytest

from odfpy.repository.bucket.gcs import GcsClient, _GcsUpload

DATA = bytes(range(256))


class Store:
    """Keeps at most some bytes of each request.

    Attributes:
        kept: the bytes of the object.
        is_complete: whether the object exists.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.kept = b""
        self.is_complete = False

    async def call(self, method: str, location: str, *, headers: dict[str, str], data: io.BytesIO) -> Any:
        assert (method, location) == ("PUT", "there")
        told = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", headers["Content-Range"])
        assert told is not None
        sent = data.read()
        assert int(told[1]) == len(self.kept)
        assert int(told[2]) - int(told[1]) + 1 == len(sent)
        self.kept += sent[: self._most]
        self.is_complete = told[3] == str(len(self.kept))
        known = {"Range": f"bytes=0-{len(self.kept) - 1}"} if self.kept and not self.is_complete else {}
        return known, b""


def uploaded(store: Store) -> None:
    async def upload() -> None:
        place = _GcsUpload(cast("GcsClient", store), "there")
        await place.part(DATA[:100])
        await place.part(DATA[100:200])
        await place.finish(DATA[200:])

    asyncio.run(upload())


@pytest.mark.parametrize("most", [1, 7, 50, 99, 100, 1000])
def test_bytes_that_the_store_did_not_keep_are_sent_again(most: int) -> None:
    store = Store(most)
    uploaded(store)
    assert (store.kept, store.is_complete) == (DATA, True)


def test_a_store_that_keeps_nothing_is_not_asked_for_ever() -> None:
    with pytest.raises(ConnectionResetError, match="kept 0 of 100"):
        uploaded(Store(0))
