"""The profile of a job, sent from an engine to the client that asked for the job."""

from __future__ import annotations

import re
from typing import Final

from odfpy.data.scalars import U64
from odfpy.stages import StageTime, current
from odfpy.values import dataclass

_LINE: Final = re.compile(r"(\d{1,4}) (\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,15}) (.{1,200})")

_MAX_LENGTH: Final = 1 << 16
"""Maximum characters of a profile that are parsed: it comes from an untrusted process."""


@dataclass(frozen=True, slots=True)
class JobProfile:
    """The stages of a job, sent before its result; older engines, and those without profiles, do not send it.

    It is sent with every job, but rarely used. So the tree is a single text, which is parsed only where it is needed:
    as separate values, its stages would take as long as a small job may take.

    Attributes:
        text: a line for each stage of the job: depth, how often it was there, microseconds, calls to Java and jobs of
            Spark besides those of its parts, name. Stages that are part of it follow, one deeper.
        calls: calls to Java that belong to none of the stages.
        jobs: jobs of Spark that belong to none of them.
    """

    text: str = ""
    calls: U64 = 0
    jobs: U64 = 0

    @classmethod
    def of(cls, *tops: StageTime) -> JobProfile:
        """Return the message for some stages, one after the other."""
        return cls("\n".join(_line(depth, stage_time) for top in tops for depth, stage_time in top.walk()))

    @classmethod
    def within(cls, whole: StageTime) -> JobProfile:
        """Return the message for the parts of a stage that is measured elsewhere, too."""
        return cls(cls.of(*whole.parts.values()).text, whole.calls, whole.jobs)

    def add_to_current(self) -> float:
        """Add the stages to the current one of this process, if a profile is wanted.

        Returns:
            Total seconds of the stages; malformed lines are skipped.
        """
        current_stage, seconds = current(), 0.0
        if current_stage is None:
            return seconds
        current_stage.add(0.0, 0, self.calls, self.jobs)
        path = [current_stage]
        for line in self.text[:_MAX_LENGTH].splitlines():
            if (match := _LINE.fullmatch(line)) is None:
                continue
            depth, times, micros, calls, jobs = map(int, match.groups()[:5])
            del path[depth + 1 :]
            part = path[-1].part(match[6])
            part.add(micros / 1e6, times, calls, jobs)
            seconds += micros / 1e6 if len(path) == 1 else 0.0
            path.append(part)
        return seconds


def _line(depth: int, timed: StageTime) -> str:
    # Rounded down, so that no stage gets shorter than its parts.
    return f"{depth} {timed.times} {int(timed.seconds * 1e6)} {timed.calls} {timed.jobs} {' '.join(timed.name.split())}"
