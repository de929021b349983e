"""The catalog of a workspace's relay, stored in its database: what its documents declare, and what it has answered."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from odfpy.data.timestamp import Timestamp
from odfpy.federation.errors import InvalidCertificate
from odfpy.federation.model.arrow_types import parse_dtype
from odfpy.federation.model.expressions import DIALECT
from odfpy.federation.model.permissions import view_of
from odfpy.federation.model.reading import key_of
from odfpy.federation.model.relations import local_expressions, remote_expressions_of
from odfpy.federation.relay.catalog import Catalog, LocalRows, RemoteRows
from odfpy.federation.relay.requesters import Identity
from odfpy.federation.sql.columns import columns_of
from odfpy.federation.sql.reading import named_columns, read_text
from odfpy.federation.store.store import WebStore
from odfpy.sharing.decisions import View

if TYPE_CHECKING:
    from sqlglot import exp

    from odfpy.federation.model.documents import PeerRelay, SourceMapping
    from odfpy.federation.model.relay_objects import RelayObjects
    from odfpy.federation.sql.expressions import Expression

_NANOS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Known:
    """A revision of a relay's declarations; expressions are parsed once, on first use."""

    revision: int
    web: RelayObjects
    local: dict[str, Sequence[LocalRows]] = field(default_factory=dict)
    remote: dict[str, Sequence[RemoteRows]] = field(default_factory=dict)


class StoredCatalog(Catalog):
    """The catalog in a database; applied documents take effect with the next question. Thread-safe."""

    def __init__(self, store: WebStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._last: _Known | None = None

    @property
    def web(self) -> RelayObjects:
        """Return all current objects of the relay."""
        return self._known().web

    def _known(self) -> _Known:
        with self._lock:
            revision = self._store.applies.revision
            if self._last is None or revision != self._last.revision:
                self._last = _Known(revision, self._store.applies.state().web)
            return self._last

    def columns(self, entity: str) -> pa.Schema | None:
        """Return the columns of an entity, None if it does not exist."""
        known_entity = self.web.entities.get(entity)
        return (
            None
            if known_entity is None
            else pa.schema([(part.name, parse_dtype(part.arrow_dtype)) for part in known_entity.information])
        )

    def sources(self, entity: str) -> Sequence[str]:
        """Return the names of the data sources that have rows of an entity, without parsing anything.

        Args:
            entity: name of the entity.
        """
        local_mapping = self.web.local_mappings.get(entity)
        return [] if local_mapping is None else [_source_of(mapping) for mapping in local_mapping.mappings]

    def is_at_peers(self, entity: str) -> bool:
        """Return whether peers may have rows of an entity, without parsing anything.

        Args:
            entity: name of the entity.
        """
        return bool(self.web.remote_mappings.get(entity))

    def local(self, entity: str) -> Sequence[LocalRows]:
        """Return the data sources that have rows of an entity."""
        known = self._known()
        if entity not in known.local:
            local_mapping = known.web.local_mappings.get(entity)
            known.local[entity] = [
                LocalRows(_source_of(mapping), _expressions(local_expressions(mapping)))
                for mapping in (local_mapping.mappings if local_mapping is not None else ())
            ]
        return known.local[entity]

    def remote(self, entity: str) -> Sequence[RemoteRows]:
        """Return the peers that have rows of an entity."""
        known = self._known()
        if entity not in known.remote:
            known.remote[entity] = [
                RemoteRows(mapping.relay, mapping.remote_entity, _expressions(remote_expressions_of(mapping)))
                for mapping in known.web.remote_mappings.get(entity, ())
            ]
        return known.remote[entity]

    def peers(self) -> Sequence[str]:
        """Return the names of all peers that have rows of any entity."""
        mapped = (mapping.relay for mappings in self.web.remote_mappings.values() for mapping in mappings)
        return list(dict.fromkeys(mapped))

    def view(self, source: str, requester: Identity) -> View | None:
        """Return the cells of a data source that a requester may see; none, if their certificate is no longer valid.

        Args:
            source: name of the source.
            requester: the requester.
        """
        try:
            who = self._store.owner_of(requester.fingerprint, Timestamp.now())
        except InvalidCertificate:  # only this: a failed lookup must not pass for an empty view
            return None
        data, _, name = source.partition("/")
        return view_of(self.web, who, data, name, requester.attributes)

    def is_revoked(self, fingerprint: str) -> bool:
        """Return whether a certificate is revoked.

        Args:
            fingerprint: fingerprint of the certificate.
        """
        return self._store.certificates.is_revoked(fingerprint, Timestamp.now())

    def is_shut_out(self, peer: PeerRelay) -> bool:
        """Return whether all certificates of a peer are revoked: then it is not queried, either.

        Args:
            peer: the peer.
        """
        known = self._store.certificates.all(key_of(peer))
        now = Timestamp.now()
        return bool(known) and all(
            certificate.revoked_at is not None and certificate.revoked_at <= now for certificate in known
        )

    def is_first(self, key: str, seconds: float) -> bool:
        """Remember a key; return whether it was new.

        Args:
            key: the key to remember.
            seconds: minimum time to remember it.
        """
        return self._store.once.is_first(*_once(key, seconds))

    def redeem(self, ticket: str, seconds: float) -> bool:
        """Redeem a ticket; return whether it had not been redeemed before.

        Args:
            ticket: unique key of the ticket.
            seconds: minimum time to remember it.
        """
        return self._store.once.redeem(*_once(ticket, seconds))


def _once(key: str, seconds: float) -> tuple[str, Timestamp]:
    """Return the id of a one-time event, and when it can be forgotten."""
    until = Timestamp(Timestamp.now().nanos + int(max(1.0, seconds) * _NANOS))
    return hashlib.sha256(key.encode()).hexdigest(), until


def _source_of(mapping: SourceMapping) -> str:
    return f"{mapping.data}/{mapping.source}"


def _expressions(trees: Mapping[str, exp.Expr]) -> dict[str, Expression]:
    """Convert expressions of documents to the form in which fragments are rewritten."""
    column = named_columns(columns_of(None))
    return {name: read_text(tree.sql(DIALECT), column) for name, tree in trees.items()}
