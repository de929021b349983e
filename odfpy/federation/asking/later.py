"""Results that are fetched later: relays read the parts of a query into files, and the asker comes back for them.

The relay that was asked remembers the query; so its id is all that somebody needs who comes back, from any machine
that has their key. Each part is a result of the relay that reads it. Files are checked against their hashes, and those
that have come stay: an interrupted fetch goes on where it was.
"""

from __future__ import annotations

import io
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.chain.stores.object_store import LocalObjectStore
from odfpy.engine.control import Control
from odfpy.errors import InvalidValue, OdfError, UsageError
from odfpy.federation.asking.answer import WebAnswer
from odfpy.federation.asking.asker import PartRows
from odfpy.federation.asking.asking import AT_ONCE, all_missing, asked, rest_rows
from odfpy.federation.asking.options import DEFAULTS, AskOptions
from odfpy.federation.asking.parts import ReadPart
from odfpy.federation.asking.plan import Asked, Plan
from odfpy.federation.asking.user import User
from odfpy.federation.relay.errors import InvalidAnswer, ResultNotReady
from odfpy.federation.relay.flight import LOCATION
from odfpy.federation.relay.question import Answer, Missing, Part, Wants
from odfpy.federation.relay.result_files import ResultFile
from odfpy.files import cache_folder

_LOOK: Final = 0.2
_LONGEST_LOOK: Final = 2.0
_UNDER_WAY: Final = ("waiting", "running")
_QUERY: Final = re.compile(r"[0-9a-f]{8,64}")
_RESULT: Final = re.compile(r"[0-9a-f]{0,64}")


@dataclass(frozen=True, slots=True)
class LaterPart:
    """A part whose rows are fetched later.

    Attributes:
        fragment: name of the fragment.
        relay: name of the relay.
        location: where it is asked for the result.
        result: id of the result there.
        state: `waiting`, `running`, `done`, `failed`, `cancelled`, or `unknown` where the relay does not say.
        rows: how many there are, once it is done.
        files: the files, once it is done.
        why: the reason why there will be no rows.
        statement: what the relay has signed, if that was wanted.
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
        """Return whether rows may still come."""
        return self.state in _UNDER_WAY

    @property
    def bytes(self) -> int | None:
        """Return the bytes of its files, None before it is done."""
        return sum(one.bytes for one in self.files) if self.state == "done" else None


@dataclass(frozen=True, slots=True)
class LaterQuery:
    """A query whose parts are fetched later.

    Attributes:
        query: its id.
        at: when it was asked.
        expires: when it is forgotten.
        asked: the query; its answers name no parts.
        parts: as they are now, or as they were when it was asked.
    """

    query: str
    at: str
    expires: str
    asked: Asked
    parts: tuple[LaterPart, ...]

    @property
    def state(self) -> str:
        """Return `running` as long as rows may come, then `done`, or `failed` if a part was not made."""
        if any(one.is_under_way for one in self.parts):
            return "running"
        return "done" if all(one.state == "done" for one in self.parts) else "failed"


class LaterQueries:
    """The queries of a user that are fetched later."""

    def __init__(self, user: User) -> None:
        """
        Args:
            user: who asks.
        """
        self._user = user

    def start(self, sql: str, options: AskOptions = DEFAULTS) -> LaterQuery:
        """Ask a query, and have all relays begin to make its parts.

        Args:
            sql: of DataFusion, over the entities.
            options: bounds, and what is wanted beside; `seconds` are for the beginning only.

        Raises:
            InvalidQuery: the query is none.
            IncompleteAnswer: a relay is missing, and that is not wanted.
            OdfError: the relay does not answer, or refuses.
        """
        ends = time.monotonic() + options.seconds
        found = asked(self._user, sql, ends, Wants(single_use=options.single_use, signed=options.signed))
        all_missing(found, (), require_complete=options.require_complete)
        wanted = [(name, part) for name, answer in found.answers.items() for part in answer.parts]

        def begin(one: tuple[str, Part]) -> LaterPart:
            name, part = one
            bare = LaterPart(name, part.relay, part.location, "")
            try:
                state = self._user.store_result(part, max(0.1, ends - time.monotonic()))
                return _with_state(replace(bare, result=_text(state, "result")), state)
            except OdfError as error:
                return replace(bare, state="failed", why=error.message)

        with ThreadPoolExecutor(AT_ONCE) as threads:
            parts = tuple(threads.map(begin, wanted))
        kept = self._user.keep_query(found.query, _record_of(found, parts))
        return LaterQuery(found.query, "", str(kept.get("expires", "")), found, parts)

    def all(self) -> list[LaterQuery]:
        """The queries that the relay remembers, the newest first; their parts as they were when they were asked.

        Raises:
            OdfError: the relay does not answer.
        """
        return [_query_of(one) for one in self._user.queries()]

    def find(self, query: str) -> LaterQuery:
        """A query, with its parts as they are now.

        Args:
            query: its id.

        Raises:
            OdfError: the relay does not answer, or remembers no such query.
        """
        found = _query_of(self._user.query(query))
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return replace(found, parts=tuple(threads.map(self._now, found.parts)))

    def cancel(self, query: str) -> LaterQuery:
        """Have no part made further.

        Args:
            query: its id.

        Raises:
            OdfError: the relay does not answer, or remembers no such query.
        """
        for one in self.find(query).parts:
            if one.is_under_way:
                self._user.cancel_result(one.location, one.result)
        self._user.cancel(query)
        return self.find(query)

    def _now(self, part: LaterPart) -> LaterPart:
        if not part.result:
            return part
        try:
            return _with_state(part, self._user.result(part.location, part.result))
        except OdfError as error:
            return replace(part, state="unknown", why=error.message)

    # --- Fetching ---

    def fetch(
        self,
        query: str,
        options: AskOptions = DEFAULTS,
        *,
        folder: Path | None = None,
        control: Control | None = None,
        tell: Callable[[LaterQuery], object] = lambda _: None,
    ) -> WebAnswer:
        """Wait until all parts are made, fetch them, and put the answer together.

        Args:
            query: its id.
            options: bounds.
            folder: where the files go, and stay; a folder of the cache by default.
            control: stops it from elsewhere.
            tell: hears how the query gets on.

        Raises:
            ResultNotReady: parts are still being made when the time is over.
            IncompleteAnswer: a part is missing, and that is not wanted.
            OdfError: a relay does not answer; what has been fetched stays for the next time.
        """
        ends = time.monotonic() + options.seconds
        with ExitStack() as stack:
            inner = stack.enter_context(Control(options.seconds, within=control))
            found = self._finished(query, ends, inner, tell)
            target = folder or _cached(query)

            def fetched(part: LaterPart) -> ReadPart:
                schema = found.asked.fragments[part.fragment].schema
                return _checked(self._fetched(part, target / part.result, ends, inner), schema)

            with ThreadPoolExecutor(AT_ONCE) as threads:
                try:
                    read = list(threads.map(fetched, found.parts))
                except BaseException:
                    inner.cancel()
                    raise
            missing = all_missing(found.asked, read, require_complete=options.require_complete)
            rows = rest_rows(found.asked, read, options.memory, inner)
            stack.callback(rows.close)
            relays = tuple(one.relay for one in found.parts)
            return WebAnswer(found.asked, rows, relays, missing, read, stack.pop_all())

    @staticmethod
    def forget_files(query: str) -> None:
        """Remove what was fetched of a query into the cache.

        Args:
            query: its id.
        """
        shutil.rmtree(_cached(query), ignore_errors=True)

    def _finished(self, query: str, ends: float, control: Control, tell: Callable[[LaterQuery], object]) -> LaterQuery:
        pause = _LOOK
        while True:
            found = self.find(query)
            tell(found)
            if found.state != "running":
                return found
            if time.monotonic() + pause > ends:
                done = sum(not one.is_under_way for one in found.parts)
                raise ResultNotReady(
                    f"{done} of {len(found.parts)} parts of query {query} are made",
                    hint="Come back later, or wait longer with --timeout.",
                )
            control.check()
            time.sleep(pause)
            pause = min(_LONGEST_LOOK, pause * 1.5)

    def _fetched(self, part: LaterPart, folder: Path, ends: float, control: Control) -> ReadPart:
        """The files of a part; those that are here already are not fetched again."""
        plain = Part(part.relay, part.location, "")
        if part.state != "done":
            return ReadPart(part.fragment, plain, missing=Missing(part.relay, part.why or f"its part is {part.state}"))
        began = time.monotonic()
        store = LocalObjectStore(folder)
        for number, file in enumerate(part.files):
            control.check()
            if file.hash not in store:
                with self._user.result_file(part.location, part.result, number, ends - time.monotonic()) as rows:
                    store.insert_stream(cast("BinaryIO", _Pieces(rows, control)), file.hash, size=file.bytes)
        paths = tuple(folder / str(one.hash) for one in part.files)
        seconds = time.monotonic() - began
        return ReadPart(
            part.fragment, plain, paths, None, part.rows or 0, part.bytes or 0, seconds, None, part.statement
        )


def _cached(query: str) -> Path:
    if not _QUERY.fullmatch(query):
        raise UsageError(f"Not the id of a query: {query[:100]!r}", hint="`odf web status` lists yours.")
    return cache_folder() / "web" / query


def _checked(part: ReadPart, schema: pa.Schema) -> ReadPart:
    """The part, or that it is missing, if its files have other columns than those that were asked for."""
    if all(pq.read_schema(path).equals(schema) for path in part.paths):
        return part
    why = Missing(part.part.relay, "it gives other columns than those that were asked for")
    return ReadPart(part.fragment, part.part, missing=why)


class _Pieces(io.RawIOBase):
    """A file on its way, as a stream of bytes."""

    def __init__(self, rows: PartRows, control: Control) -> None:
        super().__init__()
        self._left: Iterator[bytes] = (
            data for chunk in rows if chunk.data is not None for data in chunk.data.column(0).to_pylist()
        )
        self._control = control

    def read(self, size: int = -1) -> bytes:
        """The next piece, of whatever size it comes in."""
        del size
        self._control.check()
        return next(self._left, b"")


# --- Records ---


def _record_of(found: Asked, parts: Sequence[LaterPart]) -> dict[str, Any]:
    return {
        "plan": found.plan.to_json(),
        "missing": [[name, one.relay, one.why] for name, answer in found.answers.items() for one in answer.missing],
        "parts": [[one.fragment, one.relay, one.location, one.result, one.state, one.why] for one in parts],
    }


def _query_of(tree: Mapping[str, Any]) -> LaterQuery:
    """The query that a relay remembers: what it gives back is not trusted more than any other answer."""
    try:
        record = tree["record"]
        plan = Plan.parse(record["plan"])
        missing: dict[str, list[Missing]] = {name: [] for name in plan.fragments}
        for name, relay, why in record["missing"]:
            missing[name].append(Missing(str(relay), str(why)))
        answers = {name: Answer(missing=tuple(ones)) for name, ones in missing.items()}
        query = _text(tree, "query")
        parts = tuple(_part_of(one) for one in record["parts"])
        if plan.query != query or any(one.fragment not in plan.fragments for one in parts):
            raise InvalidAnswer("The relay remembers another query under that id")
        return LaterQuery(query, str(tree["at"]), str(tree["expires"]), Asked(plan, query, answers), parts)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidValue) as error:
        raise InvalidAnswer("The relay remembers the query in another form") from error


def _part_of(tree: Sequence[Any]) -> LaterPart:
    fragment, relay, location, result, state, why = tree
    if not LOCATION.fullmatch(location) or not _RESULT.fullmatch(result):
        raise ValueError(location)
    return LaterPart(str(fragment), str(relay), location, result, str(state), why=why)


def _with_state(part: LaterPart, state: Mapping[str, Any]) -> LaterPart:
    try:
        files = tuple(ResultFile.parse(one) for one in state.get("files", []))
        return replace(
            part,
            state=_text(state, "state"),
            rows=state.get("rows"),
            files=files,
            why=state.get("why"),
            statement=state.get("statement"),
        )
    except (KeyError, TypeError, ValueError, InvalidValue) as error:
        raise InvalidAnswer(f"The relay {part.relay} tells no state of a result") from error


def _text(tree: Any, key: str) -> str:
    found = tree[key]
    if not isinstance(found, str):
        raise InvalidAnswer(f"The relay has answered without {key!r}")
    return found
