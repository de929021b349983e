"""Questions that go from relay to relay, and the answers: where to read, and who could not be asked."""

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
    """Options of whoever asks: what is to come beside the rows.

    Attributes:
        explained: whether parts are to have their SQL, in the words of their relay.
        single_use: whether tickets are to be good for one reading.
        signed: whether relays are to sign what they have given (`odfpy.federation.relay.statements`).
    """

    explained: bool = False
    single_use: bool = False
    signed: bool = False

    def to_json(self) -> list[str]:
        """The options for `json.dumps`."""
        return [word for word, one in _OPTIONS.items() if getattr(self, one)]

    @classmethod
    def parse(cls, tree: Any) -> AnswerOptions:
        """The options that somebody sent. One that is not known is refused: to leave it out could be dangerous.

        Raises:
            InvalidQuestion: they are invalid.
        """
        if not isinstance(tree, list) or any(not isinstance(one, str) or one not in _OPTIONS for one in tree):
            raise InvalidQuestion(f"The options of a question must be a list of {', '.join(_OPTIONS)}")
        return cls(**{_OPTIONS[one]: True for one in tree})


_OPTIONS: Final = {"explained": "explained", "single-use": "single_use", "signed": "signed"}
NOTHING_MORE: Final = AnswerOptions()


@dataclass(frozen=True, slots=True)
class SentFragment:
    """A fragment as it travels, which is read only if the question is new: in a mesh, most have come before.

    Attributes:
        entity: its entity.
        tree: of JSON.
    """

    entity: str
    tree: Any

    @classmethod
    def of(cls, fragment: Fragment) -> SentFragment:
        """Make a fragment ready to travel."""
        return cls(fragment.entity, fragment.to_json())

    @classmethod
    def parse(cls, tree: Any) -> SentFragment:
        """The fragment that somebody sent.

        Raises:
            InvalidFragment: it names no entity.
        """
        if not isinstance(tree, dict):
            raise InvalidQuestion("The fragment of a question is an object")
        return cls(name_from_json(tree.get("entity")), tree)

    def read(self, columns: Types | None = None) -> Fragment:
        """The fragment itself.

        Args:
            columns: names and types of the entity's columns; None for those of somebody else.

        Raises:
            InvalidFragment: it is invalid, or does not fit the entity.
        """
        return Fragment.parse(self.tree, columns)


@dataclass(frozen=True, slots=True)
class Question:
    """A fragment on its way.

    Attributes:
        id: of the query, a space, and which of its fragments; a relay that has answered it answers it with nothing.
        fragment: in the words of the relay that is asked.
        hops: relays that it may still go to, one after the other.
        seconds: time that is left.
        requester: token by which the requester is known; None if it is whoever asks.
        options: what is to come beside the rows.
    """

    id: str
    fragment: SentFragment
    hops: int = MAX_HOPS
    seconds: float = 30.0
    requester: str | None = None
    options: AnswerOptions = NOTHING_MORE

    @property
    def query(self) -> str:
        """The id of the query, of which this is one fragment."""
        return self.id.partition(" ")[0]

    def to_json(self) -> dict[str, Any]:
        """The question for `json.dumps`."""
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
        """The question that somebody sent; its fragment is checked against an entity later.

        Args:
            tree: what `json.loads` gave.

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
    """A query that is not wanted any more.

    Attributes:
        query: its id.
        requester: token by which the requester is known; None if it is whoever cancels.
        hops: relays that it may still go to, one after the other.
    """

    query: str
    requester: str | None = None
    hops: int = MAX_HOPS

    def to_json(self) -> dict[str, Any]:
        """The cancellation for `json.dumps`."""
        return {"query": self.query, "requester": self.requester, "hops": self.hops}

    @classmethod
    def parse(cls, tree: Any) -> Cancellation:
        """The cancellation that somebody sent.

        Args:
            tree: what `json.loads` gave.

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
    """A place where some of the rows are read.

    Attributes:
        relay: name of the relay.
        location: where it is read: `grpc+tls://HOST:PORT`.
        ticket: what it is read with.
        sql: what is read, in the words of the relay; only where that was wanted.
    """

    relay: str
    location: str
    ticket: str
    sql: str | None = None


@dataclass(frozen=True, slots=True)
class MissingRelay:
    """A relay whose rows are not in an answer.

    Attributes:
        relay: its name, as the one that asked it knows it.
        why: the reason, in words.
    """

    relay: str
    why: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The places to read, and what is missing.

    Attributes:
        parts: the places.
        missing: the relays that could not be asked.
    """

    parts: tuple[Part, ...] = ()
    missing: tuple[MissingRelay, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return whether all relays have answered."""
        return not self.missing
