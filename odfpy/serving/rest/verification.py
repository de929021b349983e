"""`/{dataset}/verification`: verify a dataset in the background, follow the progress, and read the report."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from odfpy.codec.explain import explanations
from odfpy.coordinator.maintenance.last_verification import (
    LastVerification,
    RecordedFinding,
    RecordedLinks,
    last_verification,
)
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.dataset.identity import ActorId
from odfpy.errors import InvalidValue, OdfError
from odfpy.serving.callers.access import AnyCaller, Caller, DatasetTarget, Readable, Writable
from odfpy.serving.callers.tokens import Scope
from odfpy.serving.http.errors import Refused
from odfpy.serving.rest.explanations import ExplanationModel, explained
from odfpy.serving.rest.models import HASH, SignerModel, answers
from odfpy.serving.rest.verification_jobs import (
    AlreadyUnderWay,
    TooManyUnderWay,
    VerificationJob,
    Verifications,
)

router = APIRouter(tags=["datasets"])

_LATER: Final = {"Retry-After": "10"}
_PRIVATE: Final = "Only for callers who may write here: it may name files and hosts."


class VerificationWanted(BaseModel):
    """A request for a verification."""

    model_config = ConfigDict(extra="forbid")

    integrityOnly: Annotated[  # noqa: N815
        bool, Field(description="Hashes and rules only, no replay.", examples=[False])
    ] = False
    recursive: Annotated[bool, Field(description="Include its inputs, recursively.")] = False


class UnderWayModel(BaseModel):
    """A running verification."""

    startedAt: Annotated[str, Field(examples=["2024-03-16T08:00:00Z"])]  # noqa: N815
    startedBy: Annotated[  # noqa: N815
        str | None, Field(description="Name of the token that started it; only if you may write.")
    ]
    integrityOnly: bool  # noqa: N815
    recursive: bool
    verified: Annotated[int, Field(description="Number of verified datasets.")]
    dataset: Annotated[str | None, Field(description="The dataset that is being verified.")] = None
    action: Annotated[str, Field(examples=["replaying"])] = "starting"
    done: int = 0
    total: Annotated[int | None, Field(description="Null if it is not known yet.")] = None
    unit: Annotated[str, Field(examples=["blocks"])] = ""


class StoppedModel(BaseModel):
    """The end of the last verification that was started here, if it has no report."""

    time: str
    message: Annotated[str, Field(description=_PRIVATE)]
    hint: Annotated[str | None, Field(description=_PRIVATE)]
    code: str | None


class FindingModel(BaseModel):
    """A finding of a verification."""

    severity: Annotated[str, Field(description="error or warning; only errors make a verification fail.")]
    check: Annotated[str, Field(examples=["slice"])]
    message: Annotated[str, Field(description=_PRIVATE)]
    block: Annotated[str | None, Field(examples=[HASH])]
    sequenceNumber: int | None  # noqa: N815
    file: Annotated[str | None, Field(description=_PRIVATE)]
    hint: Annotated[str | None, Field(description=_PRIVATE)]
    code: Annotated[str | None, Field(examples=["E220"])]


class SignaturesModel(BaseModel):
    """The signatures of the blocks that were verified."""

    signed: int
    unsigned: int
    signers: list[SignerModel]


class LinkedFilesModel(BaseModel):
    """The files that rows of a dataset link to, each once."""

    here: Annotated[int, Field(description="Files that exist here and are intact.")]
    hereBytes: int  # noqa: N815
    elsewhere: Annotated[int, Field(description="Files that this partial copy does not have.")]
    removed: Annotated[int, Field(description="Files whose removal is recorded.")]


class ReportModel(BaseModel):
    """The last verification of a dataset: its extent, and its findings."""

    time: str
    head: Annotated[str, Field(examples=[HASH], description="The last block that was verified.")]
    isCurrent: Annotated[bool, Field(description="Whether that block is still the last one.")]  # noqa: N815
    ok: bool
    integrityOnly: bool  # noqa: N815
    transformsReplayed: int  # noqa: N815
    errors: Annotated[int, Field(description="Number of all errors, listed or not.")]
    warnings: int
    blocks: Annotated[int | None, Field(description="Null in reports of older releases, as are the next fields.")]
    slices: int | None
    checkpoints: int | None
    seconds: float | None
    signatures: SignaturesModel | None
    linkedFiles: Annotated[  # noqa: N815
        LinkedFilesModel | None, Field(description="Null if no row can link to files.")
    ]
    findings: Annotated[list[FindingModel], Field(description="The first hundred findings, errors before warnings.")]
    explanations: Annotated[
        dict[str, ExplanationModel], Field(description="Explanations of the error codes of the findings.")
    ]


class VerificationStatus(BaseModel):
    """The running verification, and the report of the last one."""

    underWay: UnderWayModel | None  # noqa: N815
    stopped: StoppedModel | None
    report: ReportModel | None


@router.get("/verification", responses=answers(401, 404))
def status(request: Request, caller: AnyCaller, dataset: Readable) -> VerificationStatus:
    """Return the running verification, and the report of the last one, with its findings."""
    return _status(request, caller, dataset)


@router.post("/verification", status_code=202, responses=answers(400, 401, 403, 404, 409, 413, 422, 503))
def start(request: Request, caller: AnyCaller, target: Writable, wanted: VerificationWanted) -> VerificationStatus:
    """Start a verification of the dataset in the background; needs the scope write. It stops when the server stops."""
    dataset = _there(target)
    engines = request.app.state.own_engines[dataset.workspace_folder.root].get(caller)
    name = caller.token.name if caller.token is not None else ""
    try:
        _verifications(request).start(
            dataset, name, engines, integrity_only=wanted.integrityOnly, recursive=wanted.recursive
        )
    except AlreadyUnderWay as error:
        raise Refused(409, "A verification of this dataset is running") from error
    except TooManyUnderWay as error:
        raise Refused(503, "The server has reached its limit of running verifications", _LATER) from error
    return _status(request, caller, dataset)


@router.delete("/verification", responses=answers(401, 403, 404))
def cancel(request: Request, caller: AnyCaller, target: Writable) -> VerificationStatus:
    """Stop the running verification; needs the scope write. Its findings are discarded."""
    dataset = _there(target)
    if not _verifications(request).cancel(dataset):
        raise Refused(404, "No verification of this dataset is running")
    return _status(request, caller, dataset)


def _verifications(request: Request) -> Verifications:
    verifications = request.app.state.verifications
    assert isinstance(verifications, Verifications)  # noqa: S101 - set by `create_app`
    return verifications


def _there(target: DatasetTarget) -> StoredDataset:
    if target.dataset is None:
        raise Refused(404, "There is no dataset of that name")
    return target.dataset


def _status(request: Request, caller: Caller, dataset: StoredDataset) -> VerificationStatus:
    job = _verifications(request).get(dataset)
    is_own = caller.may(Scope.WRITE, dataset.workspace_folder)
    try:
        last = last_verification(dataset)
    except OdfError:  # the next verification reports it, and writes a new one
        last = None
    return VerificationStatus(
        underWay=None if job is None or not job.is_under_way else _under_way(job, is_own=is_own),
        stopped=None if job is None else _stopped(job, is_own=is_own),
        report=None if last is None else _report(last, dataset, is_own=is_own),
    )


def _under_way(job: VerificationJob, *, is_own: bool) -> UnderWayModel:
    model = UnderWayModel(
        startedAt=str(job.started_at),
        startedBy=job.started_by if is_own else None,
        integrityOnly=job.request.integrity_only,
        recursive=job.request.recursive,
        verified=job.verified,
    )
    sign = job.progress
    if sign is None:
        return model
    subject = sign.subject if is_own else None
    parts = {"dataset": subject, "action": sign.action, "done": sign.done, "total": sign.total, "unit": sign.unit}
    return model.model_copy(update=parts)


def _stopped(job: VerificationJob, *, is_own: bool) -> StoppedModel | None:
    if job.ended_at is None or job.problem is None:
        return None
    return StoppedModel(
        time=str(job.ended_at),
        message=job.problem.message if is_own else "",
        hint=job.problem.hint if is_own else None,
        code=job.problem.code,
    )


def _report(last: LastVerification, dataset: StoredDataset, *, is_own: bool) -> ReportModel:
    counts, findings = last.counts, last.findings or ()
    known = explanations() if findings else {}
    codes = dict.fromkeys(finding.code for finding in findings if finding.code in known)
    return ReportModel(
        time=str(last.time),
        head=str(last.head),
        isCurrent=last.head == dataset.reloaded().state.head,
        ok=last.ok,
        integrityOnly=last.integrity_only,
        transformsReplayed=last.transforms_replayed,
        errors=last.errors,
        warnings=last.warnings,
        blocks=None if counts is None else counts.blocks,
        slices=None if counts is None else counts.slices,
        checkpoints=None if counts is None else counts.checkpoints,
        seconds=None if counts is None else counts.milliseconds / 1000,
        signatures=_signatures(last, dataset),
        linkedFiles=_linked(last.linked),
        findings=[_finding(finding, is_own=is_own) for finding in findings],
        explanations={code: explained(known[code]) for code in codes if code is not None},
    )


def _linked(linked: RecordedLinks | None) -> LinkedFilesModel | None:
    if linked is None:
        return None
    return LinkedFilesModel(
        here=linked.here, hereBytes=linked.here_bytes, elsewhere=linked.elsewhere, removed=linked.removed
    )


def _finding(finding: RecordedFinding, *, is_own: bool) -> FindingModel:
    return FindingModel(
        severity=finding.severity.value,
        check=finding.check,
        message=finding.message if is_own else "",
        block=None if finding.block is None else str(finding.block),
        sequenceNumber=finding.sequence_number,
        file=finding.file if is_own else None,
        hint=finding.hint if is_own else None,
        code=finding.code,
    )


def _signatures(last: LastVerification, dataset: StoredDataset) -> SignaturesModel | None:
    if last.counts is None:
        return None
    keys = UserKeys()
    signers = [SignerModel(id=text, name=_name_of(keys, text, dataset)) for text in dict.fromkeys(last.counts.signers)]
    return SignaturesModel(signed=last.counts.signed, unsigned=last.counts.unsigned, signers=signers)


def _name_of(keys: UserKeys, text: str, dataset: StoredDataset) -> str:
    try:
        return keys.name_of(ActorId.parse(text), dataset.handle.id)
    except InvalidValue:  # the file was edited
        return text
