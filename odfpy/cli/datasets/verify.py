"""`odf verify`: check bytes against the chain, and rows against the queries."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from odfpy.cli.grammar import All, Form, NamesAt, Recursive, command, group, session_of
from odfpy.cli.screen.output import Format, Output
from odfpy.cli.screen.results import NO_DATASETS, print_counts, signature_tree
from odfpy.cli.screen.terminal import paint
from odfpy.data.amounts import count_of, format_size
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.coordinator.maintenance.report import BatchComparison, Finding, LinkedFiles, VerifyReport

commands = group("Verification.")

_SHOWN: Final = 10
_MAX_HISTORIES: Final = 5
"""Maximum number of differences shown to people."""


@command(
    commands,
    "odf verify com.example.rates",
    "odf verify --all --integrity",
    "odf verify com.example.daily --against-batch",
    "odf verify com.example.rates --repair",
)
def verify(
    context: typer.Context,
    names: NamesAt = None,
    all_: All = False,
    integrity: Annotated[
        bool, typer.Option("--integrity", help="Check only hashes and rules, without replay.")
    ] = False,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Replay from the first rows, without checkpoints.")
    ] = False,
    against_batch: Annotated[
        bool,
        typer.Option(
            "--against-batch", help="Also run the query once over the current states of the inputs, and compare."
        ),
    ] = False,
    each_transform: Annotated[
        bool,
        typer.Option("--each-transform", help="With --against-batch: after each transform, not only the last one."),
    ] = False,
    recursive: Recursive = False,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Fetch missing and damaged files from repositories that have the dataset."),
    ] = False,
    form: Form = None,
) -> int:
    """Check every hash and every rule, and replay every transform."""
    from odfpy.coordinator.requests import VerifyRequest

    if integrity and from_start:
        raise UsageError("--integrity cannot be combined with --from-start: it replays nothing")
    session = session_of(context)
    output = session.output_as(form)
    workspace = session.workspace
    request = VerifyRequest(
        refs=tuple(names or ()),
        all=all_,
        integrity_only=integrity,
        from_start=from_start,
        against_batch=against_batch,
        each_transform=each_transform,
        recursive=recursive,
        repair=repair,
    )
    reports = workspace.maintenance.verify(request, session.progress)
    done = []
    try:
        for report in reports:
            session.progress.clear()
            if output.for_people:
                _print(report, output)
            elif output.form is Format.NDJSON:
                output.tree(_tree(report))
            done.append(report)
    finally:
        if not output.for_people and output.form is not Format.NDJSON:
            output.tree([_tree(report) for report in done])
    if not done and output.for_people:
        output.info(NO_DATASETS)
    if output.for_people:
        outcomes = ["verified" for report in done if report.ok] + ["not valid" for report in done if not report.ok]
        print_counts(outcomes, output)
    return 0 if all(report.ok for report in done) else 1


def _print(report: VerifyReport, output: Output) -> None:
    verdict = paint("verified", "green", sys.stdout) if report.ok else paint("NOT VALID", "red", sys.stdout)
    output.text(f"{report.handle}: {verdict} ({', '.join(_checked(report))}, {report.seconds:.1f} s)")
    for file in report.repaired:
        output.text(f"  repaired: {file}")
    if report.unreferenced:
        files = f"{count_of(report.unreferenced, 'file')} ({format_size(report.unreferenced_bytes)})"
        output.text(f"  note: {files} unreferenced; `odf gc` removes what is not needed")
    for line in _former_histories(report):
        output.text(f"  {line}")
    for finding in report.findings:
        code = f" {paint(f'({finding.code})', 'dim', sys.stdout)}" if finding.code else ""
        output.text(f"  {finding.severity.value}: {finding.message}{code}")
        for line in _place(finding):
            output.text(f"    {line}")
        for comparison in report.against_batch if finding.check == "batch" else ():
            if comparison.block == finding.block:
                output.text("\n".join(f"    {line}" for line in _differences(comparison)))


def _checked(report: VerifyReport) -> list[str]:
    """Return descriptions of the checked items, with their numbers."""
    from odfpy.coordinator.storage.keys import UserKeys

    checked = [count_of(report.blocks, "block"), count_of(report.slices, "data file")]
    if report.checkpoints:
        checked.append(count_of(report.checkpoints, "checkpoint"))
    if report.linked is not None:
        linked = report.linked
        checked.append(f"{count_of(linked.here, 'linked file')} ({format_size(linked.here_bytes)})")
        checked += [f"{linked.elsewhere} elsewhere"] if linked.elsewhere else []
        checked += [f"{linked.removed} removed as recorded"] if linked.removed else []
    if report.transforms_replayed:
        checked.append(f"{count_of(report.transforms_replayed, 'transform')} replayed")
    equal = [item.answer for item in report.against_batch if item.answer.obstacle is None and item.answer.is_equal]
    if equal:
        rows = count_of(equal[-1].found, "row")
        checked.append(f"{rows} equal to the batch result" + (f", {len(equal)} times" if equal[1:] else ""))
    if report.signatures is not None:
        checked.append(UserKeys().words(report.signatures, report.handle.id))
    return checked


def _former_histories(report: VerifyReport) -> Iterator[str]:
    """Yield a note on unreferenced blocks that form histories, and how to restore the last one."""
    if not report.following:
        return
    count, last = len(report.following), report.following[0]
    histories = "a history" if count == 1 else f"{count} histories"
    yield f"note: {histories} among them continued the head before a reset, or belong to an old copy:"
    for history in report.following[:_MAX_HISTORIES]:
        yield f"  {count_of(history.num_blocks, 'block')} to {history.head}, written {history.written}"
    if count > _MAX_HISTORIES:
        yield f"  and {count - _MAX_HISTORIES} older ones"
    which = "it" if count == 1 else "the last one"
    yield f"  `odf branch {report.handle} again {last.head}` keeps {which},"
    yield f"  `odf merge {report.handle} again` then restores it"


def _place(finding: Finding) -> list[str]:
    lines = []
    if finding.block is not None:
        lines.append(f"block {finding.sequence_number} {finding.block}")
    if finding.file:
        lines.append(f"file {finding.file}")
    if finding.hint:
        lines.append(f"hint: {finding.hint}")
    return lines


def _differences(comparison: BatchComparison) -> Iterator[str]:
    """Yield the first differences, by key where there is one."""
    answer = comparison.answer
    for difference in answer.differences[:_SHOWN]:
        times = f" ({difference.count} times)" if difference.count > 1 else ""
        match difference.kind.value:
            case "missing":
                yield f"missing:  {difference.expected}{times}"
            case "extra":
                yield f"too many: {difference.found}{times}"
            case _:
                found, expected = (json.loads(text or "{}") for text in (difference.found, difference.expected))
                changed = (
                    f"{name} is {_json(found[name])}, not {_json(expected[name])}" for name in difference.columns
                )
                yield f"differs:  {difference.key} {'; '.join(changed)}"
    more = (
        answer.missing
        + answer.extra
        + answer.differing
        - sum(difference.count for difference in answer.differences[:_SHOWN])
    )
    if more > 0:
        yield f"and {more} more; -o json lists up to {comparison.most} differences"


def _comparison_tree(comparison: BatchComparison) -> dict[str, Any]:
    answer = comparison.answer
    return {
        "block": str(comparison.block),
        "sequenceNumber": comparison.sequence_number,
        "compared": answer.obstacle is None,
        "obstacle": answer.obstacle,
        "rows": answer.found,
        "expectedRows": answer.expected,
        "missing": answer.missing,
        "extra": answer.extra,
        "differing": answer.differing,
        "remarks": list(answer.remarks),
        "listedAtMost": comparison.most,
        "differences": [
            {
                "kind": difference.kind.value,
                "key": json.loads(difference.key),
                "expected": json.loads(difference.expected) if difference.expected else None,
                "found": json.loads(difference.found) if difference.found else None,
                "columns": list(difference.columns),
                "count": difference.count,
            }
            for difference in answer.differences
        ],
    }


def _linked_tree(linked: LinkedFiles | None) -> dict[str, int] | None:
    if linked is None:
        return None
    return {
        "here": linked.here,
        "hereBytes": linked.here_bytes,
        "elsewhere": linked.elsewhere,
        "removed": linked.removed,
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _tree(report: VerifyReport) -> dict[str, Any]:
    return {
        "dataset": str(report.handle),
        "id": str(report.handle.id),
        "ok": report.ok,
        "blocks": report.blocks,
        "slices": report.slices,
        "checkpoints": report.checkpoints,
        "linkedFiles": _linked_tree(report.linked),
        "transformsReplayed": report.transforms_replayed,
        "signatures": signature_tree(report.signatures),
        "seconds": round(report.seconds, 3),
        "unreferenced": {
            "files": report.unreferenced,
            "bytes": report.unreferenced_bytes,
            "following": [
                {"head": str(one.head), "blocks": one.num_blocks, "written": str(one.written)}
                for one in report.following
            ],
        },
        "repaired": list(report.repaired),
        "againstBatch": [_comparison_tree(one) for one in report.against_batch],
        "findings": [
            {
                "severity": finding.severity.value,
                "check": finding.check,
                "message": finding.message,
                "block": str(finding.block) if finding.block else None,
                "sequenceNumber": finding.sequence_number,
                "file": finding.file,
                "hint": finding.hint,
                "code": finding.code,
            }
            for finding in report.findings
        ],
    }
