"""Relays over Arrow Flight: the encoding of questions and answers, and the connections to peers.

A question is the command of GetFlightInfo, as JSON. An answer is a FlightInfo: its endpoints are the parts, whose
metadata names their relay; the metadata of the FlightInfo holds the id of the query and the missing relays. The last
message of a stream may carry a signed statement about its rows as metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.errors import OdfError
from odfpy.escaping import escape_controls
from odfpy.federation.relay.actions import CANCEL, body_of
from odfpy.federation.relay.bounds import MAX_CHARACTERS, MAX_PARTS
from odfpy.federation.relay.errors import InvalidAnswer, InvalidQuestion, RelayRefused, RelayUnavailable
from odfpy.federation.relay.peers import Peers
from odfpy.federation.relay.question import Answer, Cancellation, MissingRelay, Part, Question
from odfpy.federation.relay.requesters import Credentials
from odfpy.federation.relay.tickets import MAX_LENGTH, read_for
from odfpy.flight.pool import ClientPool
from odfpy.flight.tls import Tls

MAX_QUESTION_LENGTH: Final = 1 << 20
MAX_MESSAGE_LENGTH: Final = 64 << 20
"""Bytes of one message with rows."""

PATIENCE: Final = 10_000
"""Milliseconds for establishing a connection, and maximum between two attempts."""

_MAX_TEXT_LENGTH: Final = 500
_MAX_SQL_LENGTH: Final = 100_000
_CANCELLING: Final = 5.0
"""Seconds for a cancellation to reach a relay."""

LOCATION: Final = re.compile(r"grpc\+tls://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9_.-]+):\d{1,5}")


def question_bytes(question: Question) -> bytes:
    """Encode a question as a command."""
    return json.dumps(question.to_json(), separators=(",", ":")).encode()


def question_of(data: bytes) -> Question:
    """Decode the question of a command.

    Raises:
        InvalidQuestion, InvalidFragment: it is invalid.
    """
    if len(data) > MAX_QUESTION_LENGTH:
        raise InvalidQuestion(f"A question has at most {MAX_QUESTION_LENGTH} bytes")
    try:
        return Question.parse(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise InvalidQuestion("A question is JSON") from error


def info_of(answer: Answer, question: Question, descriptor: Any) -> Any:
    """Encode an answer as a FlightInfo.

    Args:
        answer: the answer.
        question: the question that it answers.
        descriptor: descriptor of the call.
    """
    endpoints = [
        fl.FlightEndpoint(part.ticket.encode(), [part.location], app_metadata=_part_metadata(part))
        for part in answer.parts
    ]
    missing = [[absent.relay, absent.why] for absent in answer.missing]
    metadata = json.dumps({"query": question.query, "missing": missing}).encode()
    # An answer without parts mostly belongs to a repeated question, whose fragment was not parsed.
    schema = question.fragment.read().schema if endpoints else pa.schema([])
    return fl.FlightInfo(schema, descriptor, endpoints, -1, -1, app_metadata=metadata)


def _part_metadata(part: Part) -> bytes:
    return json.dumps({"relay": part.relay, **({} if part.sql is None else {"sql": part.sql})}).encode()


def answer_of(info: Any) -> Answer:
    """Decode the answer in a FlightInfo of another relay.

    Raises:
        InvalidAnswer: it is invalid.
    """
    try:
        if len(info.app_metadata) > MAX_CHARACTERS or len(info.endpoints) > MAX_PARTS:
            raise InvalidAnswer(f"An answer has at most {MAX_PARTS} parts")
        parts = tuple(_part(endpoint) for endpoint in info.endpoints)
        missing = [MissingRelay(_text(name), _text(why)) for name, why in json.loads(info.app_metadata)["missing"]]
    except (ValueError, TypeError, KeyError, RecursionError, pa.ArrowException) as error:
        raise InvalidAnswer("The answer of the relay is malformed") from error
    return Answer(parts, tuple(missing[:MAX_PARTS]))


def query_of(info: Any) -> str:
    """Return the id of the query that a FlightInfo belongs to.

    Raises:
        InvalidQuestion: it belongs to no query.
    """
    try:
        return _text(json.loads(info.app_metadata)["query"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidQuestion("This FlightInfo is of no query") from error


def _part(endpoint: Any) -> Part:
    [location] = endpoint.locations
    uri, ticket = location.uri.decode(), endpoint.ticket.ticket.decode("ascii")
    if not LOCATION.fullmatch(uri) or len(ticket) > MAX_LENGTH:
        raise ValueError(uri)
    metadata = json.loads(endpoint.app_metadata)
    sql = metadata.get("sql")
    return Part(_text(metadata["relay"]), uri, ticket, None if sql is None else _text(sql, _MAX_SQL_LENGTH))


def _text(value: Any, longest: int = _MAX_TEXT_LENGTH) -> str:
    """Sanitize a text of an untrusted relay for display."""
    if not isinstance(value, str):
        raise TypeError(value)
    return escape_controls(value[:longest])


class Connections:
    """Pooled Flight connections to relays; thread-safe."""

    def __init__(self, credentials: Credentials, authorities: bytes) -> None:
        """
        Args:
            credentials: credentials of the caller.
            authorities: certificates in PEM form; those of the relays must be issued by one of them.
        """
        self._tls = Tls(roots=authorities, certificate=credentials.certificates, key=credentials.key)
        self._pool = ClientPool(
            options=[
                ("grpc.max_receive_message_length", MAX_MESSAGE_LENGTH),
                # 20 s for a handshake, and up to 120 s before retrying an unreachable relay, are gRPC's defaults.
                ("grpc.min_reconnect_backoff_ms", PATIENCE),
                ("grpc.max_reconnect_backoff_ms", PATIENCE),
            ]
        )

    def close(self) -> None:
        """Close all of them."""
        self._pool.close()

    def ask(self, location: str, question: Question) -> Answer:
        """Send a question to a relay, and wait for its answer until the question's time is over.

        Args:
            location: location of the relay.
            question: the question, in the relay's vocabulary.

        Raises:
            RelayUnavailable: the relay is unreachable, or too late.
            InvalidAnswer: its answer is invalid.
            OdfError: the relay has refused.
        """
        descriptor = fl.FlightDescriptor.for_command(question_bytes(question))
        with _translated_errors(location), self._pool.client(location, self._tls) as pooled:
            return answer_of(pooled.client.get_flight_info(descriptor, _options(question.seconds)))

    def cancel(self, location: str, cancellation: Cancellation) -> None:
        """Notify a relay that a query was cancelled.

        Args:
            location: location of the relay.
            cancellation: the cancellation of the query.

        Raises:
            OdfError: the relay could not be notified.
        """
        self.act(location, CANCEL, cancellation.to_json(), _CANCELLING)

    def act(self, location: str, name: str, tree: Any, seconds: float) -> Any:
        """Run an action of a relay.

        Args:
            location: location of the relay.
            name: name of the action.
            tree: its body, a JSON tree.
            seconds: maximum time to wait.

        Returns:
            Its result, a JSON tree.

        Raises:
            OdfError: the relay is unreachable, refuses, or returns an invalid result.
        """
        with _translated_errors(location), self._pool.client(location, self._tls) as pooled:
            results = [
                result.body.to_pybytes() for result in pooled.client.do_action((name, body_of(tree)), _options(seconds))
            ]
        try:
            (body,) = results
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InvalidAnswer(f"The relay {location} sent an invalid answer") from error

    def entities(self, location: str, seconds: float) -> dict[str, pa.Schema]:
        """Return the entities of a relay, by name.

        Args:
            location: location of the relay.
            seconds: maximum time to wait.

        Raises:
            RelayUnavailable: it does not respond.
        """
        with _translated_errors(location), self._pool.client(location, self._tls) as pooled:
            infos = pooled.client.list_flights(options=_options(seconds))
            return {info.descriptor.path[0].decode(): info.schema for info in infos}

    @contextmanager
    def rows(self, part: Part, seconds: float, *, reader: str | None = None) -> Iterator[Any]:
        """Open the rows of a part: a reader that is cancelled at the end of the `with` block.

        Args:
            part: the part to read.
            seconds: time limit for the whole operation.
            reader: fingerprint of the requester that it is read for; None for the caller itself.

        Raises:
            RelayUnavailable: the relay is not, or no longer, reachable.
            OdfError: the relay has refused.
        """
        with self._pool.client(part.location, self._tls) as pooled:
            ticket = part.ticket if reader is None else read_for(part.ticket, reader)
            with _translated_errors(part.location):
                stream = pooled.client.do_get(fl.Ticket(ticket.encode()), _options(seconds))
            try:
                yield _RemoteRows(stream, part.location)
            finally:
                stream.cancel()


class _RemoteRows:
    """The reader of a stream, with translated errors; exceptions raised by its consumer are not attributed to the
    relay.
    """

    def __init__(self, stream: Any, location: str) -> None:
        self._stream = stream
        self._location = location

    @property
    def schema(self) -> pa.Schema:
        with _translated_errors(self._location):
            return self._stream.schema

    def __iter__(self) -> Iterator[Any]:
        while True:
            with _translated_errors(self._location):
                chunk = next(self._stream, None)
            if chunk is None:
                return
            yield chunk

    def cancel(self) -> None:
        self._stream.cancel()


def _options(seconds: float) -> Any:
    return fl.FlightCallOptions(timeout=max(0.05, seconds))


@contextmanager
def _translated_errors(location: str) -> Iterator[None]:
    """Translate errors of Flight."""
    try:
        yield
    except fl.FlightTimedOutError as error:
        raise RelayUnavailable(f"The relay {location} has not answered in time") from error
    except fl.FlightUnavailableError as error:
        raise RelayUnavailable(
            f"The relay {location} cannot be reached",
            hint="Check that it is running, and that both certificates are from trusted authorities.",
        ) from error
    except (pa.ArrowException, OSError) as error:
        message, hint = _words(error)
        problem = f"refuses: {message}" if message else f"has interrupted its answer ({type(error).__name__})"
        raise RelayRefused(f"The relay {location} {problem}", hint=hint) from error


def _words(error: BaseException) -> tuple[str, str | None]:
    """Return the message and the hint that a relay has sent, without the text that gRPC adds."""
    text = str(error).partition(". gRPC client debug context")[0].partition(". Detail: ")[0]
    message, _, hint = text.partition("\nhint: ")
    return _text(message.partition("\n")[0]), _text(hint.partition("\n")[0]) or None


class FlightPeers(Peers):
    """The peers of a relay, by name."""

    def __init__(self, connections: Connections, location_of: Callable[[str], str | None]) -> None:
        """
        Args:
            connections: connections of this relay.
            location_of: returns the location of a peer, None if it no longer exists.
        """
        self._connections = connections
        self._location_of = location_of

    def ask(self, peer: str, question: Question) -> Answer:
        """Send a question to a peer.

        Args:
            peer: name of the peer.
            question: the question, in the peer's vocabulary.

        Raises:
            OdfError: the peer is unreachable, or has refused.
        """
        location = self._location_of(peer)
        if location is None:
            raise RelayUnavailable(f"The peer {peer} no longer exists")
        return self._connections.ask(location, question)

    def cancel(self, peer: str, cancellation: Cancellation) -> None:
        """Notify a peer that a query was cancelled. Errors are ignored.

        Args:
            peer: name of the peer.
            cancellation: the cancellation of the query.
        """
        location = self._location_of(peer)
        if location is not None:
            with suppress(OdfError):
                self._connections.cancel(location, cancellation)
