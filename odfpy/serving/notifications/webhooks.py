"""Webhooks: who is called when the head of a dataset moves, and how a call says whom it is from.

    .odf/datasets/<id>/info/webhooks/<sha256 of the URL>.yaml    URL and secret; mode 0600
    .odf/datasets/<id>/info/webhooks/<sha256 of the URL>.told    the last head that was told

A call is a POST of the JSON that `events` tells, signed as `odfpy.http.standard_webhooks` has it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import AlreadyExists, InvalidValue, NotFound, UsageError, did_you_mean
from odfpy.files import read_regular, replace_file
from odfpy.http.standard_webhooks import new_secret, signed_headers
from odfpy.http.url import parse_url, shown_url
from odfpy.repository.documents import load_document, save_document


class WebhookNotFound(NotFound, code="E633"):
    """A dataset has no webhook with that URL."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A receiver of calls.

    Attributes:
        url: where the POST goes to; may hold secrets of its own.
        secret: what calls are signed with, as the receiver has it.
    """

    url: str = field(repr=False)
    secret: str = field(repr=False)

    @property
    def shown(self) -> str:
        """The server that is called, without path and query, for logs and lists."""
        return str(parse_url(self.url, InvalidValue).origin)

    @property
    def shown_url(self) -> str:
        """The URL without user and query, which may be secrets."""
        return shown_url(self.url)

    def headers(self, id_: str, timestamp: int, body: bytes) -> dict[str, str]:
        """The headers of a call.

        Args:
            id_: of the call; the same when it is repeated, so that receivers can drop what they have.
            timestamp: seconds since 1970.
            body: what is sent.
        """
        return signed_headers(self.secret, id_, timestamp, body, receiver=self.shown)


class Webhooks:
    """The webhooks of one dataset."""

    def __init__(self, dataset: StoredDataset) -> None:
        self.dataset = dataset
        self._folder = dataset.folder / "info" / "webhooks"

    def add(self, url: str) -> Webhook:
        """Call a URL from the next head on; gives the webhook with its new secret.

        Raises:
            UsageError: not an http or https URL.
            AlreadyExists: it is called already.
        """
        parse_url(url, UsageError)
        if self._path(url).exists():
            raise AlreadyExists(
                f"{self.dataset.handle} has a webhook with that URL already",
                hint="To give it another secret, delete it first: `odf webhook delete`.",
            )
        webhook = Webhook(url, new_secret())
        head = self.dataset.layout.refs.get(HEAD)
        if head is not None:
            self.tell(webhook, head)
        save_document(self._path(url), "Webhook", webhook)
        return webhook

    def list(self) -> tuple[Webhook, ...]:
        """All of them, by URL."""
        return tuple(sorted(self._all(), key=lambda webhook: webhook.url))

    def delete(self, url: str) -> None:
        """Call a URL no more; it may be written as it is shown, without user and query.

        Raises:
            WebhookNotFound: with a suggestion.
            UsageError: several are shown like that.
        """
        known = self.list()
        found = [webhook for webhook in known if webhook.url == url]
        found = found or [webhook for webhook in known if webhook.shown_url == url]
        if not found:
            raise WebhookNotFound(
                f"{self.dataset.handle} has no webhook with that URL",
                hint=did_you_mean(
                    url, [webhook.shown_url for webhook in known], otherwise="`odf webhook list NAME` shows them."
                ),
            )
        if len(found) > 1:
            raise UsageError(
                f"{self.dataset.handle} has {len(found)} webhooks that are shown as {url}",
                hint="Write the URL with user and query, as it was added.",
            )
        self._path(found[0].url).unlink(missing_ok=True)
        self._told(found[0].url).unlink(missing_ok=True)

    def last_told(self, webhook: Webhook) -> str | None:
        """The last head that was told, None when none was."""
        try:
            return read_regular(self._told(webhook.url)).decode("ascii").strip() or None
        except (OSError, UnicodeDecodeError):
            return None  # then it is told once more

    def tell(self, webhook: Webhook, head: Multihash) -> None:
        """Remember that a head was told."""
        replace_file(self._told(webhook.url), f"{head}\n".encode())

    def _all(self) -> Iterator[Webhook]:
        for path in self._folder.glob("[!.]*.yaml"):
            webhook = load_document(path, "Webhook", Webhook)
            if webhook is not None:
                yield webhook

    def _path(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(url.encode()).hexdigest()}.yaml"

    def _told(self, url: str) -> Path:
        return self._path(url).with_suffix(".told")
