"""Results of pulls, ingests and pushes on the screen."""

from __future__ import annotations

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

# What became of the rows of an input, in the vocabulary of a person.
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
    """Tell each result as it comes, or `if_none` when there was none; returns the exit code.

    NDJSON comes line by line, other forms at the end.

    Args:
        results: the results, as they come.
        output: where to print.
        progress: the line of progress.
        if_none: what to print if there are none.
        profile: printed at the end, however that comes.
    """
    codes = {0}
    trees = []
    outcomes = []
    told: set[str] = set()
    errors = _Errors(output)
    try:
        for result in results:
            outcomes.append(result.outcome.value)
            progress.clear()
            errors.tell_others(result)
            if result.error is not None:
                codes.add(result.error.exit_code)
                errors.take(result)
                if result.num_blocks and output.for_people:
                    output.say(f"  committed before that: {_committed(result)}")
            elif output.for_people:
                _print(result, output, told)
            if output.form is Format.NDJSON:
                output.tree(_tree(result))
            else:
                trees.append(_tree(result))
        if not outcomes and if_none and output.for_people:
            output.say(if_none)
        errors.tell()
        if output.for_people:
            print_counts(outcomes, output)
    finally:  # what is done is done, and a program wants to know of it too
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
    """Errors of results. Identical errors of consecutive datasets are printed once."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._error: OdfError | None = None
        self._names: list[str] = []

    def take(self, result: PullResult) -> None:
        """Tell an error now, or with those like it."""
        error = result.error
        if error is None:
            return
        self._names.append(result.name)
        self._error = error
        if not isinstance(error, UsageError) or not error.message.startswith(f"{result.name} has "):
            self.tell()

    def tell_others(self, result: PullResult) -> None:
        """Tell what waits, unless the next result has the same error."""
        error, ours = result.error, self._error
        if ours is None:
            return
        last = self._names[-1]
        if error is None or error.hint != ours.hint or error.message != result.name + ours.message[len(last) :]:
            self.tell()

    def tell(self) -> None:
        """Tell what waits."""
        error, names = self._error, self._names
        self._error, self._names = None, []
        if error is None:
            return
        name, message = names[-1], error.message
        if len(names) > 1:
            message = f"{', '.join(names)}{message[len(name) :].replace(' has ', ' have ', 1)}"
        elif not message.startswith(name):
            message = f"{name}: {message}"
        self._output.error(message, error.hint, error.code)


def print_counts(outcomes: Sequence[str], output: Output) -> None:
    """Say at the end how many datasets had which outcome, where there were several.

    Args:
        outcomes: one for each dataset, in words.
        output: where to print.
    """
    if len(outcomes) > 1:
        output.say(", ".join(f"{count} {outcome}" for outcome, count in Counter(outcomes).items()))


def _print(result: PullResult, output: Output, told: set[str]) -> None:
    """Print a result; notes that were `told` of another dataset are not told again."""
    output.say(_line(result))
    print_warnings(result.warnings, output.say, output.detail)
    for note in result.notes:
        if note not in told:
            output.say(f"  note: {note}")
            told.add(note)
    if result.lane is not None:
        output.detail(f"  lane {result.lane}")
    if result.num_blocks:
        output.detail(f"  head was {result.old_head or 'none'}")
        output.detail(f"  head is  {result.new_head}")


def print_warnings(warnings: Iterable[DataWarning], say: Callable[[str], None], detail: Callable[[str], None]) -> None:
    """Tell warnings, and in detail their examples.

    Args:
        warnings: the warnings.
        say: prints one.
        detail: whether to print more than the first line of each.
    """
    for warning in warnings:
        say(f"  {paint('warning:', 'yellow', sys.stderr)} {warning.message}")
        for example in warning.examples:
            detail(f"    {example}")


def warning_trees(warnings: Iterable[DataWarning]) -> list[dict[str, Any]]:
    """Warnings, for programs."""
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
        else:
            parts.append(f"{count_of(read, 'row')} changed nothing")
        if result.watermark is not None:
            parts.append(f"watermark {result.watermark}")
    name = f"{result.name}: {result.input}" if result.input else result.name
    return f"{name}: {', '.join(parts)} ({_rows(result)}{result.seconds:.1f} s)"


def _committed(result: PullResult) -> str:
    return f"{count_of(result.num_records, 'record')} in {count_of(result.num_blocks, 'block')}"


def _rows(result: PullResult) -> str:
    """Return what became of the rows of an input, and how many of them came late."""
    if not result.counts:
        return ""
    fates = [f"{count} {words}" for key, words in _FATES.items() if (count := result.counts.get(key, 0))]
    return f"{count_of(result.counts.get('read', 0), 'row')} read{': ' if fates else ''}{', '.join(fates)}; "


def signature_tree(report: SignatureReport | None) -> dict[str, Any] | None:
    """Return who has signed some blocks, for programs; None where nobody looked."""
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
