"""Output of results of pulls, ingests and pushes."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from odfpy.cli.screen.output import Format, Output, error_tree
from odfpy.cli.screen.progress import ProgressLine
from odfpy.cli.screen.terminal import paint
from odfpy.data.amounts import count_of
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.chain.signatures import SignatureReport
    from odfpy.cli.screen.profile import CommandProfile
    from odfpy.coordinator.storage.results import PullResult
    from odfpy.data.data_warning import DataWarning
    from odfpy.errors import OdfError

# Outcomes of the rows of an input, in words for people.
_FATES = {
    "appended": "new",
    "corrected": "corrected",
    "unchanged": "changed nothing",
    "superseded": "superseded by later rows",
    "retracted": "retracted",
    "late": "late",
    "ignored": "ignored",
}


NO_DATASETS = "Nothing to do: no datasets in this workspace"


def report(
    results: Iterable[PullResult],
    output: Output,
    progress: ProgressLine,
    *,
    if_none: str = "",
    profile: CommandProfile | None = None,
) -> int:
    """Print each result when it is ready, or `if_none` if there was none; return the exit code.

    NDJSON is printed line by line, other forms at the end.

    Args:
        results: the results, in the order of completion.
        output: the output of the command.
        progress: the progress line.
        if_none: remark printed if there are no results.
        profile: printed at the end, even after an error.
    """
    codes = {0}
    trees = []
    outcomes = []
    shown_notes: set[str] = set()
    errors = _Errors(output)
    try:
        for result in results:
            outcomes.append(result.outcome.value)
            progress.clear()
            errors.add(result)
            if result.error is not None:
                codes.add(result.error.exit_code)
                if result.num_blocks and output.for_people:
                    output.info(f"  committed before that: {_committed(result)}")
            elif output.for_people:
                _print(result, output, shown_notes)
            if output.form is Format.NDJSON:
                output.tree(_tree(result))
            else:
                trees.append(_tree(result))
        if not outcomes and if_none and output.for_people:
            output.info(if_none)
        errors.flush()
        if output.for_people:
            print_counts(outcomes, output)
    finally:  # report finished work also after an error
        progress.clear()
        if profile is not None and output.for_people:
            profile.print_times()
        elif profile is not None and output.form is Format.NDJSON:
            output.tree(profile.record())
        elif profile is not None:
            trees.append(profile.record())
        if not output.for_people and output.form is not Format.NDJSON:
            output.tree(trees)
    return 1 if 1 in codes else max(codes)


class _Errors:
    """Errors of results. If consecutive datasets have the same usage error, it is printed once."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._error: OdfError | None = None
        self._names: list[str] = []

    def add(self, result: PullResult) -> None:
        """Print the error of a result, if it has one; a usage error is kept until the next result.

        Args:
            result: the next result.
        """
        error = result.error
        if self._error is not None and (error is None or _texts(error) != _texts(self._error)):
            self.flush()
        if error is None:
            return
        self._error = error
        self._names.append(result.name)
        if not isinstance(error, UsageError):
            self.flush()

    def flush(self) -> None:
        """Print the error that was kept, if any."""
        error, names = self._error, self._names
        self._error, self._names = None, []
        if error is None:
            return
        # A file may have the name of the dataset: `rates.csv` does not name `rates`.
        is_named = len(names) == 1 and re.match(rf"{re.escape(names[0])}(?![\w./-])", error.message)
        message = error.message if is_named else f"{', '.join(names)}: {error.message}"
        self._output.error(message, error.hint, error.code)


def _texts(error: OdfError) -> tuple[str, str | None, str]:
    return error.message, error.hint, error.code


def print_counts(outcomes: Sequence[str], output: Output) -> None:
    """Print the number of datasets with each outcome, if there were several datasets.

    Args:
        outcomes: the outcome of each dataset, in words.
        output: the output of the command.
    """
    if len(outcomes) > 1:
        output.info(", ".join(f"{count} {outcome}" for outcome, count in Counter(outcomes).items()))


def _print(result: PullResult, output: Output, shown_notes: set[str]) -> None:
    """Print a result; notes already `shown_notes` for another dataset are skipped."""
    output.info(_line(result))
    print_warnings(result.warnings, output.info, output.detail)
    for note in result.notes:
        if note not in shown_notes:
            output.info(f"  note: {note}")
            shown_notes.add(note)
    if result.lane is not None:
        output.detail(f"  lane {result.lane}")
    if result.num_blocks:
        output.detail(f"  head was {result.old_head or 'none'}")
        output.detail(f"  head is  {result.new_head}")


def print_warnings(warnings: Iterable[DataWarning], say: Callable[[str], None], detail: Callable[[str], None]) -> None:
    """Print warnings; examples go to the detail output.

    Args:
        warnings: the warnings.
        say: prints a warning.
        detail: prints further lines of a warning.
    """
    for warning in warnings:
        say(f"  {paint('warning:', 'yellow', sys.stderr)} {warning.message}")
        for example in warning.examples:
            detail(f"    {example}")


def warning_trees(warnings: Iterable[DataWarning]) -> list[dict[str, Any]]:
    """Return warnings as trees for programs."""
    return [
        {
            "kind": warning.kind.value,
            "message": warning.message,
            "count": warning.count,
            "examples": list(warning.examples),
        }
        for warning in warnings
    ]


def _line(result: PullResult) -> str:
    parts = [paint(result.outcome.value, "green" if result.num_blocks else "dim", sys.stderr)]
    if result.num_blocks:
        read = result.counts.get("read", 0)
        if result.num_records or not read:
            parts.append(_committed(result))
        elif result.counts.get("unchanged"):
            parts.append(f"{count_of(read, 'row')} changed nothing")
        else:  # rows of a derivative may count later, for example when the watermark reaches the end of their window
            parts.append("no new records")
        if result.watermark is not None:
            parts.append(f"watermark {result.watermark}")
    name = f"{result.name}: {result.input}" if result.input else result.name
    return f"{name}: {', '.join(parts)} ({_rows(result)}{result.seconds:.1f} s)"


def _committed(result: PullResult) -> str:
    return f"{count_of(result.num_records, 'record')} in {count_of(result.num_blocks, 'block')}"


def _rows(result: PullResult) -> str:
    """Return the outcome of the rows of an input, and the number of late ones."""
    if not result.counts:
        return ""
    fates = [f"{count} {words}" for key, words in _FATES.items() if (count := result.counts.get(key, 0))]
    return f"{count_of(result.counts.get('read', 0), 'row')} read{': ' if fates else ''}{', '.join(fates)}; "


def signature_tree(report: SignatureReport | None) -> dict[str, Any] | None:
    """Return the signers of blocks as a tree for programs; None if signatures were not checked."""
    if report is None:
        return None
    return {"signed": report.signed, "unsigned": report.unsigned, "signers": list(map(str, report.signers))}


def _tree(result: PullResult) -> dict[str, Any]:
    from odfpy.cli.screen.profile import tree_of

    return {
        "name": result.name,
        "input": result.input,
        "outcome": result.outcome.name.lower().replace("_", "-"),
        "oldHead": str(result.old_head) if result.old_head else None,
        "newHead": str(result.new_head) if result.new_head else None,
        "blocks": result.num_blocks,
        "records": result.num_records,
        "droppedBlocks": result.num_dropped_blocks,
        "droppedRecords": result.num_dropped_records,
        "rows": result.counts,
        "watermark": str(result.watermark) if result.watermark else None,
        "seconds": round(result.seconds, 3),
        "signatures": signature_tree(result.signatures),
        "warnings": warning_trees(result.warnings),
        "notes": list(result.notes),
        **error_tree(result.error),
        **({} if result.profile is None else {"profile": tree_of(result.profile)}),
    }
