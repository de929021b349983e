"""Questions that travel from relay to relay, and their answers: where to read, and which relays are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from odfpy.federation.relay.errors import InvalidQuestion
from odfpy.federation.sql.columns import Types
from odfpy.federation.sql.fragment import Fragment
from odfpy.federation.sql.json_form import name_from_json

MAX_HOPS: Final = 32
MAX_WAIT: Final = 300.0
"""Seconds."""

_MAX_ID_LENGTH: Final = 100
_KEYS: Final = frozenset(("id", "fragment", "hops", "seconds", "requester", "wants"))


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Options of the requester: what is returned in addition to the rows.

    Attributes:
        explained: whether parts include their SQL, in the schema of their relay.
        single_use: whether each ticket can be redeemed only once.
        signed: whether relays sign what they have sent (`odfpy.federation.relay.statements`).
    """

    explained: bool = False
    single_use: bool = False
    signed: bool = False

    def to_json(self) -> list[str]:
        """Return the options for `json.dumps`."""
        return [word for word, attribute in _OPTIONS.items() if getattr(self, attribute)]

    @classmethod
    def parse(cls, tree: Any) -> AnswerOptions:
        """Parse received options. Unknown ones are rejected: ignoring them could be dangerous.

        Raises:
            InvalidQuestion: they are invalid.
        """
        if not isinstance(tree, list) or any(not isinstance(word, str) or word not in _OPTIONS for word in tree):
            raise InvalidQuestion(f"The options of a question must be a list of {', '.join(_OPTIONS)}")
        return cls(**{_OPTIONS[word]: True for word in tree})


_OPTIONS: Final = {"explained": "explained", "single-use": "single_use", "signed": "signed"}
NOTHING_MORE: Final = AnswerOptions()


@dataclass(frozen=True, slots=True)
class SentFragment:
    """A fragment in its serialized form, parsed only if the question is new: in a mesh, most are repetitions.

    Attributes:
        entity: name of its entity.
        tree: JSON tree of the fragment.
    """

    entity: str
    tree: Any

    @classmethod
    def of(cls, fragment: Fragment) -> SentFragment:
        """Serialize a fragment."""
        return cls(fragment.entity, fragment.to_json())

    @classmethod
    def parse(cls, tree: Any) -> SentFragment:
        """Wrap a received fragment.

        Raises:
            InvalidFragment: it names no entity.
        """
        if not isinstance(tree, dict):
            raise InvalidQuestion("The fragment of a question is an object")
        return cls(name_from_json(tree.get("entity")), tree)

    def read(self, columns: Types | None = None) -> Fragment:
        """Parse the fragment.

        Args:
            columns: names and types of the entity's columns; None for an entity of another relay.

        Raises:
            InvalidFragment: it is invalid, or does not fit the entity.
        """
        return Fragment.parse(self.tree, columns)


@dataclass(frozen=True, slots=True)
class Question:
    """One fragment of a query, as it travels from relay to relay.

    Attributes:
        id: id of the query, a space, and the fragment's name; a relay returns an empty answer to an id that it knows
            already.
        fragment: the fragment, in the vocabulary of the relay that receives it.
        hops: number of further relays that it may be forwarded to in a row.
        seconds: remaining time.
        requester: token that identifies the requester; None if the caller is the requester.
        options: what is returned in addition to the rows.
    """

    id: str
    fragment: SentFragment
    hops: int = MAX_HOPS
    seconds: float = 30.0
    requester: str | None = None
    options: AnswerOptions = NOTHING_MORE

    @property
    def query(self) -> str:
        """Return the id of the query that this fragment belongs to."""
        return self.id.partition(" ")[0]

    def to_json(self) -> dict[str, Any]:
        """Return the question for `json.dumps`."""
        return {
            "id": self.id,
            "fragment": self.fragment.tree,
            "hops": self.hops,
            "seconds": self.seconds,
            "requester": self.requester,
            "wants": self.options.to_json(),
        }

    @classmethod
    def parse(cls, tree: Any) -> Question:
        """Parse a received question; its fragment is validated against the entity later.

        Args:
            tree: result of `json.loads`.

        Raises:
            InvalidQuestion: it is invalid.
            InvalidFragment: its fragment names no entity.
        """
        if not isinstance(tree, dict) or tree.keys() != _KEYS:
            raise InvalidQuestion(f"A question is an object with {', '.join(sorted(_KEYS))}")
        id_, hops, seconds, requester = tree["id"], tree["hops"], tree["seconds"], tree["requester"]
        if not isinstance(id_, str) or not 0 < len(id_) <= _MAX_ID_LENGTH or not id_.isascii() or not id_.isprintable():
            raise InvalidQuestion(f"The id of a question is a text of at most {_MAX_ID_LENGTH} characters")
        if type(hops) is not int or not 0 <= hops <= MAX_HOPS:
            raise InvalidQuestion(f"The hops of a question are a number up to {MAX_HOPS}")
        if type(seconds) not in (int, float) or not 0 <= seconds <= MAX_WAIT:
            raise InvalidQuestion(f"The seconds of a question are a number up to {MAX_WAIT:.0f}")
        if requester is not None and not isinstance(requester, str):
            raise InvalidQuestion("The requester of a question is a token")
        options = AnswerOptions.parse(tree["wants"])
        return cls(id_, SentFragment.parse(tree["fragment"]), hops, float(seconds), requester, options)


@dataclass(frozen=True, slots=True)
class Cancellation:
    """The cancellation of a query.

    Attributes:
        query: id of the query.
        requester: token that identifies the requester; None if the caller is the requester.
        hops: number of further relays that it may be forwarded to in a row.
    """

    query: str
    requester: str | None = None
    hops: int = MAX_HOPS

    def to_json(self) -> dict[str, Any]:
        """Return the cancellation for `json.dumps`."""
        return {"query": self.query, "requester": self.requester, "hops": self.hops}

    @classmethod
    def parse(cls, tree: Any) -> Cancellation:
        """Parse a received cancellation.

        Args:
            tree: result of `json.loads`.

        Raises:
            InvalidQuestion: it is invalid.
        """
        match tree:
            case {"query": str(query), "requester": str() | None as requester, "hops": int(hops), **more}:
                if not more and 0 < len(query) <= _MAX_ID_LENGTH and 0 <= hops <= MAX_HOPS:
                    return cls(query, requester, hops)
        raise InvalidQuestion("A cancellation is an object with query, requester and hops")


@dataclass(frozen=True, slots=True)
class Part:
    """A stream with some of the rows, and the relay that serves it.

    Attributes:
        relay: name of the relay.
        location: location of the relay: `grpc+tls://HOST:PORT`.
        ticket: ticket to read it with.
        sql: the SQL that produces it, in the relay's schema; only if requested.
    """

    relay: str
    location: str
    ticket: str
    sql: str | None = None


@dataclass(frozen=True, slots=True)
class MissingRelay:
    """A relay whose rows are missing from an answer.

    Attributes:
        relay: name of the relay, as known by the one that queried it.
        why: the reason, as text.
    """

    relay: str
    why: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The parts to read, and the missing relays.

    Attributes:
        parts: the parts.
        missing: the relays that could not be queried.
    """

    parts: tuple[Part, ...] = ()
    missing: tuple[MissingRelay, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return whether all relays have responded."""
        return not self.missing
