"""A user who queries a relay over Flight, with their own certificate and key."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

import pyarrow as pa

from odfpy.errors import OdfError
from odfpy.federation.execution.concurrent_calls import call_concurrently
from odfpy.federation.execution.relay_client import PartRows, RelayClient
from odfpy.federation.relay.actions import (
    CANCEL_RESULT,
    KEEP_QUERY,
    QUERIES,
    QUERY,
    RESULT,
    STORE_RESULT,
    body_of,
)
from odfpy.federation.relay.errors import InvalidAnswer
from odfpy.federation.relay.flight import Connections
from odfpy.federation.relay.question import Answer, AnswerOptions, Cancellation, Part, Question, SentFragment
from odfpy.federation.relay.requesters import Credentials
from odfpy.federation.sql.fragment import Fragment

_PATIENCE: Final = 20.0
"""Seconds to wait for an action."""


class User(RelayClient):
    """The `RelayClient` of a user over Flight; other relays recognize the user by a token that the user signs."""

    def __init__(self, relay: str, credentials: Credentials, connections: Connections) -> None:
        """
        Args:
            relay: location of the relay.
            credentials: credentials of the user.
            connections: Flight connections of the user.
        """
        self._relay = relay
        self._credentials = credentials
        self._connections = connections

    def entities(self, seconds: float) -> Mapping[str, pa.Schema]:
        """Return the entities of the relay, by name.

        Args:
            seconds: maximum time to wait.

        Raises:
            RelayUnavailable: the relay does not respond.
        """
        [result] = call_concurrently([lambda: self._connections.entities(self._relay, seconds)], 1)
        return result

    def ask(
        self, query: str, fragments: Mapping[str, Fragment], options: AnswerOptions, seconds: float
    ) -> Mapping[str, Answer]:
        """Return the answers of the relay to the fragments of a query; the fragments are sent concurrently.

        Args:
            query: its id.
            fragments: fragments by name.
            options: requested additions to the rows.
            seconds: to wait.

        Raises:
            RelayUnavailable, InvalidAnswer, OdfError: the relay does not respond, or rejects the query.
        """
        token = self._credentials.token(query, seconds=seconds)

        def ask(item: tuple[str, Fragment]) -> Answer:
            name, fragment = item
            question = Question(
                f"{query} {name}", SentFragment.of(fragment), seconds=seconds, requester=token, options=options
            )
            return self._connections.ask(self._relay, question)

        return self._at_once(query, fragments, ask)

    def rows(self, part: Part, seconds: float) -> AbstractContextManager[PartRows]:
        """Open the rows of a part, at the relay that has them.

        Args:
            part: the part to read.
            seconds: time limit for the whole operation.

        Raises:
            RelayUnavailable, OdfError: the relay is unreachable, or refuses.
        """
        return self._connections.rows(part, seconds)

    def cancel(self, query: str) -> None:
        """Ask the relay to notify all others that a query was cancelled.

        Args:
            query: id of the query.
        """
        with suppress(OdfError):
            call_concurrently([lambda: self._connections.cancel(self._relay, Cancellation(query))], 1)

    # --- Results that are fetched later ---

    def store_result(self, part: Part, seconds: float) -> dict[str, Any]:
        """Ask the relay that owns a part to write it to files; return the state of the result.

        Args:
            part: the part to read.
            seconds: maximum time to wait for the start.

        Raises:
            OdfError: the relay is unreachable, or refuses.
        """
        return self._act_for_object(part.location, STORE_RESULT, {"ticket": part.ticket}, seconds)

    def result(self, location: str, result: str) -> dict[str, Any]:
        """Return the state of a result.

        Args:
            location: location of the relay that has it.
            result: id of the result.

        Raises:
            OdfError: the relay is unreachable, or has no such result.
        """
        return self._act_for_object(location, RESULT, {"result": result})

    def cancel_result(self, location: str, result: str) -> None:
        """Stop a relay from producing a result further. Errors are ignored.

        Args:
            location: location of the relay that has it.
            result: id of the result.
        """
        with suppress(OdfError):
            self._act_for_object(location, CANCEL_RESULT, {"result": result})

    def result_file(self, location: str, result: str, number: int, seconds: float) -> AbstractContextManager[PartRows]:
        """Open a file of a result: rows with one column of bytes; a context manager.

        Args:
            location: location of the relay that has it.
            result: id of the result.
            number: number of the file.
            seconds: time limit for the whole operation.

        Raises:
            OdfError: the relay is unreachable, or refuses; may also be raised while the file is received.
        """
        ticket = body_of({"result": result, "file": number}).decode()
        return self._connections.rows(Part("", location, ticket), seconds)

    def keep_query(self, query: str, record: dict[str, Any]) -> dict[str, Any]:
        """Ask the relay to remember a query.

        Args:
            query: id of the query.
            record: a JSON tree.

        Raises:
            OdfError: the relay is unreachable, or refuses.
        """
        return self._act_for_object(self._relay, KEEP_QUERY, {"query": query, "record": record})

    def query(self, query: str) -> dict[str, Any]:
        """Return the record of a query that the relay remembers.

        Args:
            query: id of the query.

        Raises:
            OdfError: the relay is unreachable, or has no such query.
        """
        return self._act_for_object(self._relay, QUERY, {"query": query})

    def queries(self) -> list[dict[str, Any]]:
        """Return the queries that the relay remembers, newest first.

        Raises:
            OdfError: the relay is unreachable.
        """
        answer = self._act(self._relay, QUERIES, {}, _PATIENCE)
        if not isinstance(answer, list):
            raise InvalidAnswer("The relay sent an invalid list of queries")
        return answer

    def _act_for_object(
        self, location: str, name: str, tree: dict[str, Any], seconds: float | None = None
    ) -> dict[str, Any]:
        """Call an action of a relay whose answer is an object.

        Args:
            location: location of the relay.
            name: name of the action.
            tree: its arguments.
            seconds: its time limit, None for the default.

        Raises:
            InvalidAnswer: the answer is not an object.
        """
        answer = self._act(location, name, tree, _PATIENCE if seconds is None else seconds)
        if not isinstance(answer, dict):
            raise InvalidAnswer(f"The relay {location} sent an invalid answer")
        return answer

    def _act(self, location: str, name: str, tree: dict[str, Any], seconds: float) -> Any:
        [result] = call_concurrently([lambda: self._connections.act(location, name, tree, seconds)], 1)
        return result
