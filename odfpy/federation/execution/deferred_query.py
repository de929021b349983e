"""Deferred queries, as remembered by the relay that received them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from odfpy.errors import InvalidValue
from odfpy.escaping import escape_controls
from odfpy.federation.execution.plan import StartedQuery, WebPlan
from odfpy.federation.relay.errors import InvalidAnswer
from odfpy.federation.relay.flight import LOCATION
from odfpy.federation.relay.question import Answer, MissingRelay
from odfpy.federation.relay.result_files import ResultFile

_MAX_WHY_LENGTH: Final = 1000
_UNDER_WAY: Final = ("waiting", "running")
_RESULT: Final = re.compile(r"[0-9a-f]{0,64}")


@dataclass(frozen=True, slots=True)
class DeferredPart:
    """A part of a deferred query, whose rows are fetched later.

    Attributes:
        fragment: name of the fragment.
        relay: name of the relay.
        location: location of the relay that has the result.
        result: id of the result at that relay.
        state: `waiting`, `running`, `done`, `failed`, `cancelled`, or `unknown` where the relay does not report it.
        rows: number of rows, once it is done.
        files: the files, once it is done.
        why: the reason why there are no rows.
        statement: the relay's signed statement, if signatures were requested.
    """

    fragment: str
    relay: str
    location: str
    result: str
    state: str = "unknown"
    rows: int | None = None
    files: tuple[ResultFile, ...] = ()
    why: str | None = None
    statement: str | None = None

    @property
    def is_under_way(self) -> bool:
        """Return whether rows may still arrive."""
        return self.state in _UNDER_WAY

    @property
    def bytes(self) -> int | None:
        """The total bytes of its files, None before it is complete."""
        return sum(file.bytes for file in self.files) if self.state == "done" else None


@dataclass(frozen=True, slots=True)
class DeferredQuery:
    """A deferred query: its parts are produced now and fetched later.

    Attributes:
        query: id of the query.
        at: when it was submitted.
        expires: when the relay forgets it.
        asked: the started query; its answers name no parts.
        parts: their current state, or that at submission.
    """

    query: str
    at: str
    expires: str
    asked: StartedQuery
    parts: tuple[DeferredPart, ...]

    @property
    def state(self) -> str:
        """Return `running` as long as rows may arrive, then `done`, or `failed` if a part failed."""
        if any(part.is_under_way for part in self.parts):
            return "running"
        return "done" if all(part.state == "done" for part in self.parts) else "failed"


def record_of(started: StartedQuery, parts: Sequence[DeferredPart]) -> dict[str, Any]:
    """Return the record of a query for the relay to remember, as a JSON tree."""
    return {
        "plan": started.plan.to_json(),
        "missing": [
            [name, missing.relay, missing.why] for name, answer in started.answers.items() for missing in answer.missing
        ],
        "parts": [[part.fragment, part.relay, part.location, part.result, part.state, part.why] for part in parts],
    }


def query_of(tree: Mapping[str, Any]) -> DeferredQuery:
    """Parse the query that a relay remembers; like any other response, it is not trusted.

    Raises:
        InvalidAnswer: it is invalid.
    """
    try:
        record = tree["record"]
        plan = WebPlan.parse(record["plan"])
        missing: dict[str, list[MissingRelay]] = {name: [] for name in plan.fragments}
        for name, relay, why in record["missing"]:
            missing[name].append(MissingRelay(str(relay), str(why)))
        answers = {name: Answer(missing=tuple(ones)) for name, ones in missing.items()}
        query = answered_text(tree, "query")
        parts = tuple(_part_of(recorded) for recorded in record["parts"])
        if plan.query != query or any(part.fragment not in plan.fragments for part in parts):
            raise InvalidAnswer("The relay remembers another query under that id")
        return DeferredQuery(query, str(tree["at"]), str(tree["expires"]), StartedQuery(plan, query, answers), parts)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidValue) as error:
        raise InvalidAnswer("The relay remembers the query in another form") from error


def _part_of(tree: Sequence[Any]) -> DeferredPart:
    fragment, relay, location, result, state, why = tree
    if not LOCATION.fullmatch(location) or not _RESULT.fullmatch(result):
        raise ValueError(location)
    return DeferredPart(str(fragment), str(relay), location, result, str(state), why=_why(why))


def with_state(part: DeferredPart, state: Mapping[str, Any]) -> DeferredPart:
    """Return a part with the state that the relay reports.

    Args:
        part: the part as last known.
        state: a JSON tree.

    Raises:
        InvalidAnswer: it is not a valid state.
    """
    try:
        files = tuple(ResultFile.parse(file) for file in state.get("files", []))
        rows, statement = state.get("rows"), state.get("statement")
        return replace(
            part,
            state=escape_controls(answered_text(state, "state")),
            rows=None if rows is None else int(rows),
            files=files,
            why=_why(state.get("why")),
            statement=None if statement is None else str(statement),
        )
    except (KeyError, TypeError, ValueError, InvalidValue) as error:
        raise InvalidAnswer(f"The relay {part.relay} gives no state of a result") from error


def _why(reason: Any) -> str | None:
    """Sanitize a relay's reason, which may be any text, to one line without terminal control sequences."""
    return None if reason is None else escape_controls(str(reason)[:_MAX_WHY_LENGTH])


def answered_text(tree: Any, key: str) -> str:
    """Return the text under a key of a relay's response.

    Raises:
        InvalidAnswer: the value is not a text.
        KeyError: there is no such key.
    """
    text = tree[key]
    if not isinstance(text, str):
        raise InvalidAnswer(f"The relay has answered without {key!r}")
    return text
