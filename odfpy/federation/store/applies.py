"""Objects of a relay, and the applies that have made them; each is one transaction, and none is lost.

What an apply has done is a row of this database first, in the same transaction. From there it comes into the dataset
`odf.web` (`odfpy.federation.record`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from odfpy.data.timestamp import Timestamp
from odfpy.federation.errors import ConcurrentApply, InvalidCertificate
from odfpy.federation.model.certificates import CertificateFacts
from odfpy.federation.model.documents import KINDS, PeerRelay, Spec, User, tree_of
from odfpy.federation.model.reading import ObjectKey
from odfpy.federation.model.relay_objects import RelayObjects
from odfpy.federation.model.steps import Step
from odfpy.federation.store.tables import APPLIES, CERTIFICATES, OBJECTS
from odfpy.sharing.store.database import ConcurrentChange, Database


@dataclass(frozen=True, slots=True)
class Apply:
    """A change of a relay, as it was done.

    Attributes:
        revision: its number, from 1.
        id: UUID.
        at: when.
        who: by whom.
        action: by which command.
        steps: what, a line each.
    """

    revision: int
    id: str
    at: Timestamp
    who: str
    action: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class State:
    """The objects of a relay at some time.

    Attributes:
        revision: number of the last change; 0 before the first.
        web: the objects.
    """

    revision: int
    web: RelayObjects


class Applies:
    """The objects of a database, and their changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last = State(0, RelayObjects({}))

    @property
    def revision(self) -> int:
        """The number of the last change; 0 before the first."""
        with self._database.reading() as connection:
            return _revision(connection)

    def state(self) -> State:
        """The objects as they are now; quick where nothing has changed."""
        with self._database.reading() as connection:
            found = _revision(connection)
            if found != self._last.revision:
                rows = connection.execute(sa.select(OBJECTS).order_by(OBJECTS.c.kind, OBJECTS.c.folded))
                self._last = State(found, RelayObjects.of(KINDS[row.kind].model_validate(row.spec) for row in rows))
            return self._last

    def apply(self, steps: Sequence[Step], *, based_on: int, who: str, action: str = "apply") -> Apply:
        """Take steps: all of them, or none.

        Args:
            steps: what to do.
            based_on: the revision that they were planned for.
            who: by whom.
            action: by which command.

        Raises:
            ConcurrentApply: there has been another change since then.
            InvalidCertificate: a certificate is that of somebody else.
        """
        try:
            with self._database.writing() as connection:
                done = note(connection, who, action, map(str, steps), revision=based_on + 1)
                for step in steps:
                    _take(connection, step, done.at)
                return done
        except ConcurrentChange as error:
            raise ConcurrentApply(
                "Somebody else has changed the relay at the same time; nothing was changed here",
                hint="`odf relay log` shows what they did. Try again.",
            ) from error

    def remark(self, lines: Iterable[str], *, who: str, action: str) -> None:
        """Write down a change that is none of objects.

        Args:
            lines: what.
            who: by whom.
            action: by which command.

        Raises:
            ConcurrentApply: there has been another change at the same time.
        """
        try:
            with self._database.writing() as connection:
                note(connection, who, action, lines)
        except ConcurrentChange as error:
            raise ConcurrentApply("Somebody else has changed the relay at the same time", hint="Try again.") from error

    def log(self, num: int) -> list[Apply]:
        """The last changes, the newest first."""
        with self._database.reading() as connection:
            found = connection.execute(sa.select(APPLIES).order_by(APPLIES.c.revision.desc()).limit(num))
            return [_apply(row) for row in found]

    def unrecorded(self) -> list[Apply]:
        """The changes that are not known to be in the dataset, the oldest first."""
        with self._database.reading() as connection:
            query = sa.select(APPLIES).where(sa.not_(APPLIES.c.is_recorded)).order_by(APPLIES.c.revision)
            return [_apply(row) for row in connection.execute(query)]

    def recorded(self, revisions: Iterable[int]) -> None:
        """Note that changes are in the dataset."""
        with self._database.writing() as connection:
            chosen = APPLIES.c.revision.in_(list(revisions))
            connection.execute(sa.update(APPLIES).where(chosen).values(is_recorded=True))


def note(
    connection: sa.Connection, who: str, action: str, steps: Iterable[str], *, revision: int | None = None
) -> Apply:
    """Write down a change, within its transaction. Of two with one number, the second fails.

    Args:
        connection: of the transaction.
        who: by whom.
        action: by which command.
        steps: what, a line each.
        revision: its number; the next one by default.
    """
    number = _revision(connection) + 1 if revision is None else revision
    done = Apply(number, str(uuid.uuid4()), Timestamp.now(), who, action, tuple(steps))
    values = {
        "revision": number,
        "id": done.id,
        "at": done.at.nanos,
        "who": who,
        "action": action,
        "steps": list(done.steps),
        "is_recorded": False,
    }
    connection.execute(sa.insert(APPLIES).values(values))
    return done


# Made once, since a relay asks for it several times a question.
_REVISION = sa.select(sa.func.coalesce(sa.func.max(APPLIES.c.revision), 0))


def _revision(connection: sa.Connection) -> int:
    return int(connection.execute(_REVISION).scalar_one())


def _take(connection: sa.Connection, step: Step, now: Timestamp) -> None:
    kind, folded = step.key
    connection.execute(sa.delete(OBJECTS).where(OBJECTS.c.kind == kind, OBJECTS.c.folded == folded))
    if step.spec is not None:
        values = {"kind": kind, "folded": folded, "spec": tree_of(step.spec)}
        connection.execute(sa.insert(OBJECTS).values(values))
    if kind in (User.KIND, PeerRelay.KIND):
        _take_certificates(connection, step.key, step.spec, now)


def _take_certificates(connection: sa.Connection, key: ObjectKey, spec: Spec | None, now: Timestamp) -> None:
    """Make the certificates that are known by documents those of the step; issued ones go with their owner only."""
    pems = spec.certificates if isinstance(spec, User | PeerRelay) else ()
    wanted = [CertificateFacts.of(pem) for pem in pems]
    own = sa.and_(CERTIFICATES.c.kind == key[0], CERTIFICATES.c.folded == key[1])
    others = CERTIFICATES.c.fingerprint.not_in([one.fingerprint for one in wanted])
    gone = own if spec is None else sa.and_(own, CERTIFICATES.c.is_declared, others)
    connection.execute(sa.delete(CERTIFICATES).where(gone))
    for one in wanted:
        add_certificate(connection, one, key, now, is_declared=True)


def add_certificate(
    connection: sa.Connection, facts: CertificateFacts, owner: ObjectKey, now: Timestamp, *, is_declared: bool
) -> None:
    """Make a certificate that of somebody, within a transaction.

    Args:
        connection: of the transaction.
        facts: the certificate.
        owner: kind and folded name.
        now: the time.
        is_declared: whether a document has it.

    Raises:
        InvalidCertificate: it is that of somebody else.
    """
    known = connection.execute(sa.select(CERTIFICATES).where(CERTIFICATES.c.fingerprint == facts.fingerprint)).first()
    if known is not None:
        if (known.kind, known.folded) != owner:
            raise InvalidCertificate(
                f"The certificate {facts.fingerprint[:16]} ({facts.subject}) is that of {known.folded}",
                hint="Give everybody certificates of their own.",
            )
        return
    values = {
        "fingerprint": facts.fingerprint,
        "kind": owner[0],
        "folded": owner[1],
        "pem": facts.pem,
        "is_declared": is_declared,
        "added_at": now.nanos,
    }
    connection.execute(sa.insert(CERTIFICATES).values(values))


def _apply(row: sa.Row[tuple[object, ...]]) -> Apply:
    return Apply(row.revision, row.id, Timestamp(row.at), row.who, row.action, tuple(row.steps))
