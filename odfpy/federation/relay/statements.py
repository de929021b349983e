"""Statements: a relay signs which rows it has given, to whom, as the answer to what.

A statement is a JSON Web Token with the certificate of the relay in it. So whoever has the rows and trusts the
authority of the web can check them, at any time, without asking the relay.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from odfpy.federation.errors import NotBelieved
from odfpy.federation.relay.requesters import Authorities, Credentials, Identity

AUDIENCE: Final = "odf-web-rows"
LONGEST: Final = 1 << 20
"""Characters of a statement."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The rows that a relay has given.

    Attributes:
        relay: its name.
        question: id of the question: of the query, a space, and which of its fragments.
        requester: fingerprint of whoever has got them.
        sql: what was asked, in the words of the relay.
        rows: how many there were.
        hash: of the rows, without their order (`odfpy.data.rows.rows_hash`): a multihash.
        at: seconds since 1970, when the last of them was given.
    """

    relay: str
    question: str
    requester: str
    sql: str
    rows: int
    hash: str
    at: int


def signed(statement: Statement, credentials: Credentials) -> str:
    """Sign a statement.

    Args:
        statement: what is said.
        credentials: of the relay.
    """
    claims = asdict(statement)
    return credentials.signed({"aud": AUDIENCE, "iat": claims.pop("at"), **claims})


def verified(text: str, authorities: Authorities) -> tuple[Statement, Identity]:
    """Return what a relay has signed, and which one it was.

    Args:
        text: what `signed` has made.
        authorities: whose certificates are trusted.

    Raises:
        NotBelieved: it is no statement, or of nobody who is trusted.
    """
    if len(text) > LONGEST:
        raise NotBelieved("A statement about rows is too long")
    signer, claims = authorities.signed(text, AUDIENCE)
    try:
        values = {name: kind(claims[name]) for name, kind in _FIELDS.items()}
        return Statement(**values, at=claims["iat"]), signer
    except (KeyError, TypeError, ValueError) as error:
        raise NotBelieved("A statement about rows is none") from error


_FIELDS: Final = {"relay": str, "question": str, "requester": str, "sql": str, "rows": int, "hash": str}
