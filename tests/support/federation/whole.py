"""Random webs in one process: real relays, tokens, tickets and readers; sources are tables in memory.

Only the network and the database of a relay are simulated. Everything sent is recorded for inspection.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import sqlglot
from support.federation.answers import run_datafusion, run_duckdb
from support.federation.served import credentials
from support.federation.webs import PEOPLE, RELAYS, RandomWeb, Stored, documents

from odfpy.data.timestamp import Timestamp
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import OdfError
from odfpy.federation.authority import Authority
from odfpy.federation.errors import InvalidCertificate
from odfpy.federation.model.arrow_types import dtype_name
from odfpy.federation.model.certificates import load_pem
from odfpy.federation.model.documents import PeerRelay, User
from odfpy.federation.model.reading import KINDS
from odfpy.federation.model.relay_objects import RelayObjects
from odfpy.federation.relay.call_pool import CallPool
from odfpy.federation.relay.peers import Peers
from odfpy.federation.relay.question import Answer, AnswerOptions, Cancellation, Part, Question, SentFragment
from odfpy.federation.relay.reading import SourceReader
from odfpy.federation.relay.relay import Relay
from odfpy.federation.relay.requesters import Authorities, Credentials, Identity, identity_of
from odfpy.federation.relay.stored_catalog import StoredCatalog
from odfpy.federation.relay.tickets import PassedTicket, Tickets, read_for
from odfpy.federation.sources.contract import ReadLimits, Source, SourceBatches
from odfpy.federation.sql.split import split
from odfpy.federation.sql.splitting.own_names import with_own_names
from odfpy.serving.flight.errors import as_flight
from odfpy.serving.flight.streams import fitting

NOW = 2e9
"""Time of the tickets, so that their lengths do not depend on it."""


@dataclass
class Known:
    """A certificate of a person or relay.

    Attributes:
        credentials: the certificate with its key.
        identity: as relays know it.
    """

    credentials: Credentials
    identity: Identity


@cache
def certificates() -> tuple[Authorities, Mapping[str, Known]]:
    """Return certificates of all people and relays; creating them takes longer than a test case."""
    from cryptography.hazmat.primitives.serialization import Encoding

    authority, issued = Authority.new("web")
    found = {}
    for name in (*PEOPLE, *RELAYS):
        one = authority.issue(name, 30)
        found[name] = Known(credentials(one), identity_of(load_pem(one.facts.pem).public_bytes(Encoding.DER)))
    return Authorities(issued.facts.pem.encode()), found


class TableSource(Source):
    """A table in memory."""

    def __init__(self, name: str, stored: Stored) -> None:
        super().__init__(name, "duckdb")
        self.engine = stored.engine  # type: ignore[misc]
        self.table = pa.Table.from_pylist(list(stored.rows), schema=stored.schema)

    def _stream(self, sql: str, wanted: pa.Schema | None, limits: ReadLimits, control: CancellationToken) -> Any:
        del wanted, limits, control
        run = run_datafusion if self.engine == "datafusion" else run_duckdb
        if "odf_relation" in sql and self.engine == "datafusion":  # it has other names for types, and the same columns
            sql = sqlglot.transpile(sql, read="duckdb", write="postgres")[0]
        found = run(sql, {"raw": self.table})
        return SourceBatches(found.schema, iter(found.to_batches()))


class MemoryStore:
    """The database of a relay, in memory."""

    def __init__(self, web: RelayObjects) -> None:
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self.revoked: set[str] = set()
        self._web = web
        _, known = certificates()
        self._owners = {one.identity.fingerprint: name for name, one in known.items()}
        self.applies = SimpleNamespace(revision=1, state=lambda: SimpleNamespace(web=web, revision=1))
        self.certificates = SimpleNamespace(is_revoked=lambda one, _=None: one in self.revoked)
        self.once = SimpleNamespace(is_first=self._is_first)

    def _is_first(self, key: str, _until: Timestamp) -> bool:
        with self._lock:  # several relays may query at the same time
            is_first = key not in self._seen
            self._seen.add(key)
            return is_first

    def owner_of(self, fingerprint: str, time: Timestamp) -> User | PeerRelay | None:
        del time
        if fingerprint in self.revoked:
            raise InvalidCertificate("revoked")
        name = self._owners[fingerprint]
        found = self._web.objects.get(("User", name)) or self._web.objects.get(("PeerRelay", name))
        return cast("User | PeerRelay | None", found)


class _Wire(Peers):
    def __init__(self, whole: WholeWeb, me: str) -> None:
        self._whole, self._me = whole, me

    def ask(self, peer: str, question: Question) -> Answer:
        _, known = certificates()
        if peer in self._whole.web.down:
            raise OdfError(f"cannot connect to {peer}")
        sent = json.loads(json.dumps(question.to_json()))
        return self._whole.nodes[peer].relay.answer(Question.parse(sent), known[self._me].identity)

    def cancel(self, peer: str, cancellation: Cancellation) -> None:
        raise AssertionError(f"nobody cancels a query: {peer} {cancellation}")


@dataclass
class RunningNode:
    """A relay that answers in this process."""

    relay: Relay
    tickets: Tickets
    reader: SourceReader
    store: MemoryStore


@dataclass
class Exchange:
    """Everything that a requester receives for a query, besides the answer.

    Attributes:
        parts: relays, the lengths of their tickets, and how they are explained.
        missing: the missing relays with reasons.
        schemas: schemas of the streams.
        batches: rows of each batch of each stream.
        sent: how many bytes each stream has.
        streams: bytes of the streams.
        errors: texts.
    """

    parts: Counter[tuple[str, str, int, str | None]] = field(default_factory=Counter)
    missing: Counter[tuple[str, str]] = field(default_factory=Counter)
    schemas: list[pa.Schema] = field(default_factory=list)
    batches: list[tuple[int, ...]] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    streams: list[bytes] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


class WholeWeb:
    """A random web that runs.

    Attributes:
        web: the web.
        nodes: relays of the web.
    """

    def __init__(self, web: RandomWeb, *, in_order: bool = False) -> None:
        """
        Args:
            web: the web.
            in_order: whether each relay queries its peers sequentially, so that a source is always reached by the same
                route.
        """
        self.web = web
        self._in_order = in_order
        self.nodes = {name: self._node(name) for name in web.nodes}

    def close(self) -> None:
        for node in self.nodes.values():
            node.relay.close()
            node.reader.close()

    def _node(self, name: str) -> RunningNode:
        authorities, known = certificates()
        specs = [KINDS[kind].model_validate(spec) for kind, spec in documents(self.web, name, dtype_name)]
        web = RelayObjects.of(specs)
        store = MemoryStore(web)
        catalog = StoredCatalog(cast("Any", store))
        tickets = Tickets(secrets.token_bytes(32), is_first=catalog.is_first, clock=lambda: NOW)
        reader = SourceReader(catalog, cast("Any", None), ReadLimits())
        for source, (_, stored) in self.web.nodes[name].stored.items():
            reader._open[source] = web.local_data[source], TableSource(source, stored)
        own = known[name]
        relay = Relay(
            name,
            own.identity.fingerprint,
            f"grpc+tls://{name}:1",
            catalog,
            tickets,
            _Wire(self, name),
            identify=authorities.requester,
            vouch=lambda who, query, seconds: own.credentials.token(
                query, seconds=seconds, on_behalf_of=who.certificate
            ),
            clock=lambda: NOW,
        )
        if self._in_order:
            relay._calls = CallPool(1, name)
        return RunningNode(relay, tickets, reader, store)

    def read(self, location: str, ticket: str, caller: Identity) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the rows of a ticket, as a server sends them."""
        node = self.nodes[location.removeprefix("grpc+tls://").removesuffix(":1")]
        opened = node.tickets.open(ticket, caller)
        if isinstance(opened, PassedTicket):
            _, known = certificates()
            text = read_for(opened.part.ticket, opened.holder.fingerprint)
            return self.read(opened.part.location, text, known[node.relay.name].identity)
        rows = node.reader.read(opened, CancellationToken())
        return rows.schema, (piece for batch in rows for piece in fitting(batch, rows.schema))

    def asked(self, question: str) -> tuple[pa.Table, Exchange]:
        """Return the answer to a question, and everything sent."""
        _, known = certificates()
        me = known[self.web.asker]
        parts = split(question, self.web.entities)
        query = secrets.token_hex(16)
        seen = Exchange()
        tables = {}
        for name, fragment in parts.fragments.items():
            token = me.credentials.token(query, seconds=60) if self.web.signs else None
            options = AnswerOptions(explained=True)
            sent = Question(
                f"{query} {name}", SentFragment.of(fragment), seconds=60, requester=token, options=options
            ).to_json()
            answer = self.nodes["r0"].relay.answer(Question.parse(json.loads(json.dumps(sent))), me.identity)
            seen.missing.update((one.relay, one.why) for one in answer.missing)
            found = [self._taken(part, me.identity, seen) for part in answer.parts]
            tables[name] = pa.concat_tables([fragment.schema.empty_table(), *(one for one in found if one is not None)])
        return run_datafusion(with_own_names(parts.rest), tables), seen

    def _taken(self, part: Part, me: Identity, seen: Exchange) -> pa.Table | None:
        seen.parts[part.relay, part.location, len(part.ticket), part.sql] += 1
        try:
            schema, batches = self.read(part.location, part.ticket, me)
            read = list(batches)
        except OdfError as error:
            seen.errors[str(as_flight(error))] += 1
            return None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            for batch in read:
                writer.write_batch(batch)
        seen.schemas.append(schema)
        seen.batches.append(tuple(batch.num_rows for batch in read))
        stream = bytes(sink.getvalue())
        seen.sent.append(len(stream))
        seen.streams.append(stream)
        return pa.ipc.open_stream(stream).read_all()
