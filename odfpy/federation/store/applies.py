"""The objects of a relay, and the log of applies that have changed them; each apply is one transaction.

Each apply is first a row of this database, written in the same transaction. From there it is copied to the dataset
`odf.web` (`odfpy.federation.applying`).
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
    """A committed change of a relay.

    Attributes:
        revision: its number, starting at 1.
        id: UUID.
        at: time of the change.
        who: the user who made it.
        action: the command that made it.
        steps: the changes, one line each.
    """

    revision: int
    id: str
    at: Timestamp
    who: str
    action: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class State:
    """The objects of a relay at a revision.

    Attributes:
        revision: number of the latest change; 0 before the first.
        web: the objects.
    """

    revision: int
    web: RelayObjects


class Applies:
    """The objects in a database, and the log of their changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last = State(0, RelayObjects({}))

    @property
    def revision(self) -> int:
        """Return the number of the latest change; 0 before the first."""
        with self._database.reading() as connection:
            return _revision(connection)

    def state(self) -> State:
        """Return the current objects; cached until something changes."""
        with self._database.reading() as connection:
            revision = _revision(connection)
            if revision != self._last.revision:
                rows = connection.execute(sa.select(OBJECTS).order_by(OBJECTS.c.kind, OBJECTS.c.folded))
                self._last = State(revision, RelayObjects.of(KINDS[row.kind].model_validate(row.spec) for row in rows))
            return self._last

    def apply(self, steps: Sequence[Step], *, based_on: int, who: str, action: str = "apply") -> Apply:
        """Execute steps atomically.

        Args:
            steps: the steps.
            based_on: the revision that they were planned for.
            who: the user who makes the change.
            action: the command that makes the change.

        Raises:
            ConcurrentApply: another change was made since then.
            InvalidCertificate: a certificate belongs to another owner.
        """
        try:
            with self._database.writing() as connection:
                done = note(connection, who, action, map(str, steps), revision=based_on + 1)
                for step in steps:
                    _take(connection, step, done.at)
                return done
        except ConcurrentChange as error:
            raise ConcurrentApply(
                "The relay was changed at the same time; this command changed nothing",
                hint="`odf relay log` shows the other changes. Try again.",
            ) from error

    def remark(self, lines: Iterable[str], *, who: str, action: str) -> None:
        """Log a change that does not concern objects.

        Args:
            lines: the change, one line each.
            who: the user who makes the change.
            action: the command that makes the change.

        Raises:
            ConcurrentApply: another change was made at the same time.
        """
        try:
            with self._database.writing() as connection:
                note(connection, who, action, lines)
        except ConcurrentChange as error:
            raise ConcurrentApply("Somebody else has changed the relay at the same time", hint="Try again.") from error

    def log(self, num: int) -> list[Apply]:
        """Return the latest changes, newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(APPLIES).order_by(APPLIES.c.revision.desc()).limit(num))
            return [_apply(row) for row in rows]

    def unrecorded(self) -> list[Apply]:
        """Return the changes that are not known to be in the dataset, oldest first."""
        with self._database.reading() as connection:
            query = sa.select(APPLIES).where(sa.not_(APPLIES.c.is_recorded)).order_by(APPLIES.c.revision)
            return [_apply(row) for row in connection.execute(query)]

    def recorded(self, revisions: Iterable[int]) -> None:
        """Mark changes as recorded in the dataset."""
        with self._database.writing() as connection:
            chosen = APPLIES.c.revision.in_(list(revisions))
            connection.execute(sa.update(APPLIES).where(chosen).values(is_recorded=True))


def note(
    connection: sa.Connection, who: str, action: str, steps: Iterable[str], *, revision: int | None = None
) -> Apply:
    """Log a change, within its transaction. Of two with the same number, the second fails.

    Args:
        connection: connection of the transaction.
        who: the user who makes the change.
        action: the command that makes the change.
        steps: the changes, one line each.
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


# Built once, since a relay runs it several times for each question.
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
    """Replace an object's declared certificates by those of the step; issued ones are only removed with their owner."""
    pems = spec.certificates if isinstance(spec, User | PeerRelay) else ()
    wanted = [CertificateFacts.of(pem) for pem in pems]
    own = sa.and_(CERTIFICATES.c.kind == key[0], CERTIFICATES.c.folded == key[1])
    others = CERTIFICATES.c.fingerprint.not_in([facts.fingerprint for facts in wanted])
    gone = own if spec is None else sa.and_(own, CERTIFICATES.c.is_declared, others)
    connection.execute(sa.delete(CERTIFICATES).where(gone))
    for facts in wanted:
        add_certificate(connection, facts, key, now, is_declared=True)


def add_certificate(
    connection: sa.Connection, facts: CertificateFacts, owner: ObjectKey, now: Timestamp, *, is_declared: bool
) -> None:
    """Assign a certificate to an owner, within a transaction.

    Args:
        connection: connection of the transaction.
        facts: the certificate.
        owner: kind and case-folded name.
        now: the time.
        is_declared: whether a document declares it.

    Raises:
        InvalidCertificate: it belongs to another owner.
    """
    known = connection.execute(sa.select(CERTIFICATES).where(CERTIFICATES.c.fingerprint == facts.fingerprint)).first()
    if known is not None:
        if (known.kind, known.folded) != owner:
            raise InvalidCertificate(
                f"The certificate {facts.fingerprint[:16]} ({facts.subject}) is that of {known.folded}",
                hint="Each user and peer needs different certificates.",
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
