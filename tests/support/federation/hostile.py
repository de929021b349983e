"""A hostile relay of a web: it has a trusted certificate, and an untrustworthy operator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
from support.federation.served import HOST, PEER, ServedWeb, credentials

from odfpy.federation.relay.actions import CANCEL
from odfpy.federation.relay.flight import Connections, info_of, question_of
from odfpy.federation.relay.question import Answer, Part, Question
from odfpy.federation.relay.requesters import Credentials

NOTHING = pa.schema([("n", pa.int64())])


class HostilePeer(fl.FlightServerBase):  # type: ignore[misc]
    """A peer controlled by a test.

    Attributes:
        seen: the received questions.
        told: the received cancellations of queries.
        answers: returns the answer to a question: an `Answer`, or a FlightInfo.
        gives: returns the stream of a ticket.
        lists: returns the entities.
        connections: connections with its own certificate.
    """

    def __init__(self, name: str, own: Credentials, authorities: bytes) -> None:
        super().__init__(
            fl.Location.for_grpc_tls(HOST, 0),
            tls_certificates=[(own.certificates, own.key)],
            verify_client=True,
            root_certificates=authorities,
        )
        self.name = name
        self.seen: list[Question] = []
        self.told: list[str] = []
        self.answers: Callable[[Question], Any] = lambda _: Answer()
        self.gives: Callable[[bytes], Any] = lambda _: fl.RecordBatchStream(NOTHING.empty_table())
        self.lists: Callable[[], Any] = lambda: iter(())
        self.connections = Connections(own, authorities)

    @property
    def location(self) -> str:
        return f"grpc+tls://{HOST}:{self.port}"

    def part(self, ticket: str = "x", relay: str | None = None, location: str | None = None) -> Part:
        """Return a part, by default one that is read here."""
        return Part(relay or self.name, location or self.location, ticket)

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Answer as configured by the test."""
        del context
        question = question_of(descriptor.command)
        self.seen.append(question)
        found = self.answers(question)
        return info_of(found, question, descriptor) if isinstance(found, Answer) else found

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Return the stream configured by the test."""
        del context
        return self.gives(ticket.ticket)

    def list_flights(self, context: Any, criteria: Any) -> Any:
        """List the entities configured by the test."""
        del context, criteria
        return self.lists()

    def do_action(self, context: Any, action: Any) -> Any:
        """Record cancellations."""
        del context
        assert action.type == CANCEL
        self.told.append(json.loads(action.body.to_pybytes())["query"])
        return iter([b"{}"])


def endless(batch: pa.RecordBatch) -> Any:
    """Return an endless stream."""

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            yield batch

    return fl.GeneratorStream(batch.schema, batches())


def info(question: Question, endpoints: Sequence[Any], missing: Any = ()) -> Any:
    """Return a FlightInfo that is written by hand."""
    metadata = json.dumps({"query": question.id.partition(" ")[0], "missing": list(missing)}).encode()
    return fl.FlightInfo(
        question.fragment.read().schema, fl.FlightDescriptor.for_command(b""), endpoints, -1, -1, app_metadata=metadata
    )


@contextmanager
def hostile_peer(web: ServedWeb, folder: Path, name: str, *asked_by: str) -> Iterator[HostilePeer]:
    """Run a hostile peer that relays of a web query.

    Args:
        web: the web.
        folder: folder for its certificate.
        name: its name.
        asked_by: names of the relays that query it.
    """
    issued = web.authority.issue(name, 30, hosts=[HOST])
    file = folder / f"{name}.pem"
    file.write_text(issued.facts.pem)
    peer = HostilePeer(name, credentials(issued), web.issued.facts.pem.encode())
    try:
        for relay in asked_by:
            here = web.relays[relay]
            here.apply(
                PEER.format(
                    name=name,
                    location=peer.location,
                    certificate=file,
                    price=here.price,
                    remote="price",
                    transformation="{v}",
                )
            )
        yield peer
    finally:
        peer.connections.close()
        peer.shutdown()
