"""Preparation: from fetched bytes to readable ones (ODF specification, "PrepStep").

Each step reads one file and writes another, in the scratch folder of the ingest. Steps stream, so memory use is small
whatever the size; an intermediate file is deleted as soon as the next step is done. Kinds of steps are imported on
demand: most sources have none.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from odfpy.chain.sources import PrepDecompress, PrepPipe, PrepStep
from odfpy.errors import PrepareError
from odfpy.ingest.archive import UnpackLimits

__all__ = ["PrepareContext", "check_steps", "commands_of", "prepare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareContext:
    """Context of the preparation of a file.

    Attributes:
        scratch: folder for output files; the caller clears it.
        limits: limits on every output file.
        timeout: maximum seconds of a command, None for no limit.
    """

    scratch: Path
    limits: UnpackLimits = field(default_factory=UnpackLimits)
    timeout: float | None = None


def check_steps(steps: Sequence[PrepStep] | None) -> None:
    """Validate the steps before there is a file.

    Raises:
        PrepareError: a step is invalid for any file.
    """
    for step in steps or ():
        if isinstance(step, PrepPipe):
            from odfpy.ingest.prepare.pipe import check_pipe

            check_pipe(step)
        else:
            from odfpy.ingest.prepare.decompress import check_decompress

            check_decompress(step)


def commands_of(steps: Sequence[PrepStep] | None) -> tuple[str, ...]:
    """Return the commands of steps, as users type them."""
    return tuple(shlex.join(step.command) for step in steps or () if isinstance(step, PrepPipe))


def prepare(steps: Sequence[PrepStep] | None, path: Path, context: PrepareContext, *, name: str | None = None) -> Path:
    """Return the prepared file; without steps, the fetched file itself.

    Args:
        steps: the steps, in order of execution.
        path: the fetched file, which is not changed.
        context: scratch folder and limits.
        name: name of the file in errors; by default its path.

    Raises:
        PrepareError: a step failed; its output has been removed.
    """
    check_steps(steps)
    current = path
    for number, step in enumerate(steps or (), 1):
        target = context.scratch / f"prepared-{number}"
        try:
            _carry_out(step, current, target, name or str(path), context)
        except OSError as error:
            raise PrepareError(f"Cannot prepare {name or path}: {error.strerror or error}") from error
        finally:
            if current != path:
                current.unlink(missing_ok=True)
        current = target
    return current


def _carry_out(step: PrepStep, source: Path, target: Path, name: str, context: PrepareContext) -> None:
    try:
        if isinstance(step, PrepDecompress):
            from odfpy.ingest.prepare.decompress import decompress

            decompress(step, source, target, name, context.limits)
        else:
            from odfpy.ingest.prepare.pipe import pipe

            folder = context.scratch / f"{target.name}-folder"
            pipe(step, source, target, name, folder=folder, timeout=context.timeout, limits=context.limits)
    except BaseException:  # also when interrupted
        target.unlink(missing_ok=True)
        raise
