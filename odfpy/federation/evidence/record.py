"""The record of a stored answer, an attachment of its dataset: what was queried, and what relays have signed.

The requester signs the complete record. Without the requester's key nothing in it can be changed; with it, nothing that
relays have signed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from odfpy.errors import InvalidValue
from odfpy.federation.errors import AuthenticationFailed
from odfpy.federation.execution.plan import WebPlan, plain_json
from odfpy.federation.relay.question import MissingRelay
from odfpy.federation.relay.requesters import Authorities, Credentials, Identity

ATTACHMENT: Final = "web-answer.json"
"""Path of the attachment."""
AUDIENCE: Final = "odf-web-answer"
VERSION: Final = 1
MAX_LENGTH: Final = 64 << 20
"""Characters of a record."""
_KEYS: Final = {"version", "software", "query", "requester", "plan", "missing", "datasets", "parts", "answer"}


@dataclass(frozen=True, slots=True)
class PartsDataset:
    """A dataset with the rows of all parts of a fragment.

    Attributes:
        id: id of the dataset, the same in all copies.
        name: its name where the answer was stored.
    """

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class KeptPart:
    """A part of a stored answer: who supplied which rows.

    Attributes:
        fragment: name of the fragment.
        statement: what the relay has signed.
    """

    fragment: str
    statement: str


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The record of a stored answer's origin.

    Attributes:
        software: the odfpy version that split the query.
        requester: fingerprint of the requester.
        plan: the plan of the query.
        missing: the relays whose rows are not in the answer.
        datasets: for each fragment, the dataset with the rows of its parts.
        parts: the parts; rows refer to a part by its index here.
        rows: number of rows of the answer.
        hash: order-independent hash of these rows, as a multihash.
    """

    software: str
    requester: str
    plan: WebPlan
    missing: tuple[MissingRelay, ...]
    datasets: Mapping[str, PartsDataset]
    parts: tuple[KeptPart, ...]
    rows: int
    hash: str

    def to_json(self) -> dict[str, Any]:
        """Return the record for `json.dumps`."""
        return {
            "version": VERSION,
            "software": self.software,
            "query": self.plan.query,
            "requester": self.requester,
            "plan": self.plan.to_json(),
            "missing": [{"relay": item.relay, "why": item.why} for item in self.missing],
            "datasets": {name: {"id": item.id, "name": item.name} for name, item in self.datasets.items()},
            "parts": [{"fragment": part.fragment, "statement": part.statement} for part in self.parts],
            "answer": {"rows": self.rows, "hash": self.hash},
        }

    @classmethod
    def parse(cls, tree: Any) -> AnswerRecord:
        """Parse a stored record.

        Args:
            tree: result of `json.loads`.

        Raises:
            AuthenticationFailed: it is invalid.
        """
        try:
            if tree["version"] != VERSION or tree.keys() != _KEYS:
                raise AuthenticationFailed(f"The answer record does not have the form of version {VERSION}")
            record = cls(
                software=tree["software"],
                requester=tree["requester"],
                plan=WebPlan.parse(tree["plan"]),
                missing=tuple(MissingRelay(**item) for item in tree["missing"]),
                datasets={name: PartsDataset(**item) for name, item in tree["datasets"].items()},
                parts=tuple(KeptPart(**item) for item in tree["parts"]),
                rows=tree["answer"]["rows"],
                hash=tree["answer"]["hash"],
            )
            _check_types(record)
            again = plain_json(record.to_json())
        except (KeyError, TypeError, ValueError, AttributeError, InvalidValue) as error:
            raise AuthenticationFailed("The answer record is malformed") from error
        if again != plain_json(tree):
            raise AuthenticationFailed("The answer record contradicts itself")
        return record


def signed_text(record: AnswerRecord, credentials: Credentials) -> str:
    """Return the text of the attachment: the signed record.

    Args:
        record: the record to sign.
        credentials: credentials of the requester.
    """
    tree = record.to_json()
    claims = {"aud": AUDIENCE, "iat": int(time.time()), "query": record.plan.query, "hash": _hash_of(tree)}
    return json.dumps({"record": tree, "signature": credentials.signed(claims)}, indent=1)


@dataclass(frozen=True, slots=True)
class SignedRecord:
    """A record with its signature, which is yet to be verified.

    Attributes:
        record: the record itself.
        digest: digest of its text.
        signature: signature of the requester.
    """

    record: AnswerRecord
    digest: str
    signature: str

    @classmethod
    def parse(cls, text: str) -> SignedRecord:
        """Parse the record of an attachment; nothing is verified yet.

        Args:
            text: text of the attachment.

        Raises:
            AuthenticationFailed: it is invalid.
        """
        try:
            if len(text) > MAX_LENGTH:
                raise AuthenticationFailed("The answer record is too long")
            tree = json.loads(text)
            if tree.keys() != {"record", "signature"} or not isinstance(tree["signature"], str):
                raise AuthenticationFailed("The answer record is malformed")
            return cls(AnswerRecord.parse(tree["record"]), _hash_of(tree["record"]), tree["signature"])
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            raise AuthenticationFailed("The answer record is malformed") from error

    def signer(self, authorities: Authorities) -> tuple[Identity, int]:
        """Return the requester who has signed the record, and when, in seconds since the epoch.

        Args:
            authorities: the trusted authorities.

        Raises:
            AuthenticationFailed: another party has signed it, or other content was signed.
        """
        signer, claims = authorities.signed(self.signature, AUDIENCE)
        if signer.fingerprint != self.record.requester:
            raise AuthenticationFailed("The answer record is not signed by the requester")
        if claims.get("hash") != self.digest or claims.get("query") != self.record.plan.query:
            raise AuthenticationFailed("The answer record was changed since it was signed")
        return signer, claims["iat"]


def _check_types(record: AnswerRecord) -> None:
    texts = [record.software, record.requester, record.hash]
    texts += [text for item in record.missing for text in (item.relay, item.why)]
    texts += [text for dataset in record.datasets.values() for text in (dataset.id, dataset.name)]
    texts += [text for part in record.parts for text in (part.fragment, part.statement)]
    if type(record.rows) is not int or any(not isinstance(item, str) for item in texts):
        raise TypeError("another type")


def _hash_of(tree: Any) -> str:
    return hashlib.sha3_256(plain_json(tree).encode()).hexdigest()
