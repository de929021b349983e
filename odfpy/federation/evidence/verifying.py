"""Verifying an answer that was kept: offline, from its datasets and the certificates of the authorities alone.

1. The requester has signed the record, and nothing of it was changed since.
2. The SQL, split again over the recorded entities, gives the recorded fragments and rest.
3. Each part has a statement of a relay: a certificate of a trusted authority, this query, this fragment, this asker.
4. The rows of each part have the number and the hash that its relay has signed; there are no others.
5. The rest of the query, run again over the parts, gives the rows of the answer.

Certificates must have been valid when they signed. It does not matter whether they have expired since.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import DatasetNotFound, OdfError, UsageError
from odfpy.federation.errors import AuthenticationFailed
from odfpy.federation.evidence.recompute import AnswerRows, counted
from odfpy.federation.evidence.record import ATTACHMENT, SignedRecord
from odfpy.federation.evidence.rows import PartFiles, rows_of
from odfpy.federation.evidence.statements import SignedPart, Statements
from odfpy.federation.execution.options import MEMORY
from odfpy.federation.execution.plan import planned
from odfpy.federation.model.certificates import subject_of
from odfpy.federation.relay.question import MissingRelay
from odfpy.federation.relay.requesters import Authorities

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

HINT: Final = "`odf web sql SQL --into NAME` stores an answer with the signatures of the relays."


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of a verification.

    Attributes:
        name: name of the dataset.
        query: id of the query.
        sql: the query.
        requester: fingerprint of the requester.
        subject: subject of their certificate; None if their signature does not hold.
        at: seconds since the epoch, when they have kept the answer; None the same.
        rows: how many the answer has, by its record.
        signed: what relays have signed, as far as their signatures are valid.
        missing: relays whose rows are not in the answer, as the record says.
        findings: descriptions of the errors; empty if everything is valid.
    """

    name: str
    query: str
    sql: str
    requester: str
    subject: str | None
    at: int | None
    rows: int
    signed: tuple[SignedPart, ...]
    missing: tuple[MissingRelay, ...]
    findings: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True if there are no findings."""
        return not self.findings


def verify(
    workspace: Workspace,
    name: str,
    authorities: Authorities,
    *,
    memory: int = MEMORY,
    control: CancellationToken | None = None,
) -> Verification:
    """Verify an answer.

    Args:
        workspace: workspace of the answer.
        name: name or id of its dataset.
        authorities: trusted authorities of the relays and the requester.
        memory: bytes that assembling the answer may use.
        control: lets another thread cancel it.

    Raises:
        DatasetNotFound: there is no such dataset.
        UsageError: the dataset is not an answer of a web.
        QueryCancelled: the verification was stopped.
    """
    text = _attachment(workspace, name)
    try:
        signed = SignedRecord.parse(text)
    except AuthenticationFailed as error:
        return Verification(name, "", "", "", None, None, 0, (), (), (error.message,))
    with ExitStack() as stack:
        inner = stack.enter_context(CancellationToken(parent=control))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="odf-web-")))
        return _Verifier(workspace, name, signed, authorities, folder, memory, inner).run()


def _attachment(workspace: Workspace, name: str) -> str:
    attachments = workspace.datasets.state(name).attachments
    for attachment in () if attachments is None else attachments.attachments.items:
        if attachment.path == ATTACHMENT:
            return attachment.content
    raise UsageError(f"{name} is not an answer of a web: it has no attachment {ATTACHMENT}", hint=HINT)


class _Verifier:
    def __init__(
        self,
        workspace: Workspace,
        name: str,
        signed: SignedRecord,
        authorities: Authorities,
        folder: Path,
        memory: int,
        control: CancellationToken,
    ) -> None:
        self._workspace, self._name = workspace, name
        self._signed, self._record = signed, signed.record
        self._authorities = authorities
        self._folder, self._memory, self._control = folder, memory, control
        self._findings: list[str] = []

    def run(self) -> Verification:
        """Run all checks."""
        record = self._record
        subject, at = self._asker()
        self._split()
        parts = self._statements()
        files = self._parts(parts)
        if not self._findings:  # otherwise this would only be a consequential error
            self._answer(files)
        signed = tuple(part for part in parts.values() if part is not None)
        return Verification(
            name=self._name,
            query=record.plan.query,
            sql=record.plan.sql,
            requester=record.requester,
            subject=subject,
            at=at,
            rows=record.rows,
            signed=signed,
            missing=record.missing,
            findings=tuple(self._findings),
        )

    def _found(self, where: str, error: OdfError) -> None:
        self._control.check()
        self._findings.append(f"{where}: {error.message}")

    def _asker(self) -> tuple[str | None, int | None]:
        """Step 1."""
        try:
            signer, at = self._signed.signer(self._authorities)
        except AuthenticationFailed as error:
            self._found("record", error)
            return None, None
        return subject_of(signer.certificate or b""), at

    def _split(self) -> None:
        """Step 2."""
        plan = self._record.plan
        try:
            again = planned(plan.sql, plan.entities, plan.nonce)
        except OdfError as error:
            self._found("SQL", error)
            return
        if again.to_json() != plan.to_json():
            why = f"the fragments do not follow from the query; {self._record.software} has split it"
            self._findings.append(f"SQL: {why}")

    def _statements(self) -> dict[int, SignedPart | None]:
        """Step 3."""
        record = self._record
        statements = Statements(record.plan, record.requester, self._authorities)
        signed: dict[int, SignedPart | None] = {}
        for number, part in enumerate(record.parts):
            signed[number] = None
            try:
                signed[number] = statements.take(part.fragment, part.statement)
            except AuthenticationFailed as error:
                self._found(f"part {number} ({part.fragment})", error)
        return signed

    def _parts(self, signed: Mapping[int, SignedPart | None]) -> dict[str, list[Path]]:
        """Step 4; returns the files with the rows of each fragment."""
        files: dict[str, list[Path]] = {}
        if self._record.datasets.keys() != self._record.plan.fragments.keys():
            self._findings.append("record: the datasets are not those of the fragments")
            return files
        for name, dataset in self._record.datasets.items():
            numbers = [number for number, part in enumerate(self._record.parts) if part.fragment == name]
            try:
                schema = self._record.plan.fragments[name].schema
                part_files = PartFiles(name, schema, numbers, self._folder)
                part_files.read(self._workspace, dataset.id, self._control)
            except DatasetNotFound:
                where = f"dataset {dataset.id}, which was {dataset.name} where the answer was kept"
                self._findings.append(f"parts of {name}: they are not in this workspace: pull the {where}")
                continue
            except OdfError as error:
                self._found(f"parts of {name} ({dataset.name})", error)
                continue
            files[name] = part_files.paths
            for number, (rows, digest) in part_files.sizes.items():
                given = signed[number]
                if given is not None and (rows, digest) != (given.rows, given.hash):
                    what = f"there are {rows:,} rows, which are not the {given.rows:,} that {given.relay} has signed"
                    self._findings.append(f"part {number} ({name}): {what}")
        return files

    def _answer(self, files: Mapping[str, list[Path]]) -> None:
        """Step 5."""
        record = self._record
        dataset = str(self._workspace.datasets.handle(self._name).id)
        try:
            with AnswerRows(record.plan, files, self._memory, self._control) as answer_rows:
                again = counted(answer_rows)
                columns = answer_rows.schema.names
            kept = counted(rows_of(self._workspace, dataset, columns, self._control))
        except OdfError as error:
            self._found("answer", error)
            return
        if again != (record.rows, record.hash):
            self._findings.append("answer: the query over the parts does not give the rows that were recorded")
        if kept != again:
            what = f"the dataset has {kept[0]:,} rows, which are not the {again[0]:,} that the query gives"
            self._findings.append(f"answer: {what}")
