"""Webhooks: URLs that are called when the head of a dataset moves, with signed requests.

    .odf/datasets/<id>/info/webhooks/<sha256 of the URL>.yaml    URL and secret; mode 0600
    .odf/datasets/<id>/info/webhooks/<sha256 of the URL>.told    the last head that was delivered

A call is a POST with the same JSON as in `events`, signed according to `odfpy.http.standard_webhooks`.
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
    """A receiver of webhook calls.

    Attributes:
        url: URL of the POST request; may contain secrets.
        secret: shared secret that calls are signed with.
    """

    url: str = field(repr=False)
    secret: str = field(repr=False)

    @property
    def shown(self) -> str:
        """Return the server that is called, without path and query, for logs and lists."""
        return str(parse_url(self.url, InvalidValue).origin)

    @property
    def shown_url(self) -> str:
        """Return the URL without user and query, which may be secret."""
        return shown_url(self.url)

    def headers(self, id_: str, timestamp: int, body: bytes) -> dict[str, str]:
        """Return the headers of a call.

        Args:
            id_: id of the call; the same when it is repeated, so that receivers can drop duplicates.
            timestamp: seconds since the epoch.
            body: body of the request.
        """
        return signed_headers(self.secret, id_, timestamp, body, receiver=self.shown)


class Webhooks:
    """The webhooks of one dataset."""

    def __init__(self, dataset: StoredDataset) -> None:
        self.dataset = dataset
        self._folder = dataset.folder / "info" / "webhooks"

    def add(self, url: str) -> Webhook:
        """Register a URL to be called from the next head on; returns the webhook with its new secret.

        Raises:
            UsageError: not an http or https URL.
            AlreadyExists: it is registered already.
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
        """Return all webhooks, by URL."""
        return tuple(sorted(self._all(), key=lambda webhook: webhook.url))

    def delete(self, url: str) -> None:
        """Remove a URL; it may be written as shown, without user and query.

        Raises:
            WebhookNotFound: it does not exist; the message suggests a similar name.
            UsageError: the shown form is ambiguous.
        """
        known = self.list()
        matching = [webhook for webhook in known if webhook.url == url]
        matching = matching or [webhook for webhook in known if webhook.shown_url == url]
        if not matching:
            raise WebhookNotFound(
                f"{self.dataset.handle} has no webhook with that URL",
                hint=did_you_mean(
                    url, [webhook.shown_url for webhook in known], otherwise="`odf webhook list NAME` shows them."
                ),
            )
        if len(matching) > 1:
            raise UsageError(
                f"{self.dataset.handle} has {len(matching)} webhooks that are shown as {url}",
                hint="Write the URL with user and query, as it was added.",
            )
        self._path(matching[0].url).unlink(missing_ok=True)
        self._last_head_file(matching[0].url).unlink(missing_ok=True)

    def last_told(self, webhook: Webhook) -> str | None:
        """Return the last delivered head, None if there was none."""
        try:
            return read_regular(self._last_head_file(webhook.url)).decode("ascii").strip() or None
        except (OSError, UnicodeDecodeError):
            return None  # then it is delivered again

    def tell(self, webhook: Webhook, head: Multihash) -> None:
        """Remember that a head was delivered."""
        replace_file(self._last_head_file(webhook.url), f"{head}\n".encode())

    def _all(self) -> Iterator[Webhook]:
        for path in self._folder.glob("[!.]*.yaml"):
            webhook = load_document(path, "Webhook", Webhook)
            if webhook is not None:
                yield webhook

    def _path(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(url.encode()).hexdigest()}.yaml"

    def _last_head_file(self, url: str) -> Path:
        return self._path(url).with_suffix(".told")
