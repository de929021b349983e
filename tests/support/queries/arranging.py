"""Pulls with and without an arrangement, side by side."""

from __future__ import annotations

import copy
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from support.queries.cases import QUICK, Case, Runner, Tuned, pull_both
from support.queries.histories import histories
from support.queries.stories import FIELDS

from odfpy.engine.arrangement import ArrangementManifest
from odfpy.engine.checkpoint import read_manifest

BEGINNING = 5
"""Pulls before something happens to the arrangement."""


def case_of(query):
    """A query over `a`, or over `a` and `b`."""
    return Case("query", "", [(None, query)], dict.fromkeys("ab" if " b" in query else "a", FIELDS), {}, ())


def both(spark, case, pulls):
    """Run the pulls with and without an arrangement; return how many of them looked up rows."""
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        plain = Runner(Tuned(spark, **QUICK), case, Path(one))
        arranged = Runner(Tuned(spark, **QUICK), case, Path(other), arranged=True)
        pull_both(plain, arranged, pulls)
        return arranged.looked_up


def hashes_of(spark, case, folder):
    """Return the logical hashes of a case's slices, looking up all possible rows; `none` for a pull without rows."""
    runner = Runner(Tuned(spark, **QUICK), case, folder, arranged=True)
    return [runner.pull(pull).logical_hash or "none" for pull in case.pulls]


def in_random_histories(case, examples, law):
    """Test a law on random histories of the inputs of a case."""

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(histories(tuple(case.inputs), pulls=(3, 6)))
    def tried(pulls):
        law(pulls)

    tried()


def parts(runner):
    """Return the number of files in the checkpoint, and the reported and actual number of arranged stateful inputs."""
    manifest = read_manifest(Path(runner.checkpoint or ""))
    assert manifest is not None
    found = ArrangementManifest.read(runner.arrangement) if runner.arrangement else None
    return (
        len(manifest.rows),
        len(manifest.arranged or ()),
        sum(bool(one.runs) for one in found.arranged) if found else 0,
    )


def arranged_runner(spark, query, pulls, folder):
    """Return a runner of a query that looks up all possible rows."""
    return Runner(Tuned(spark, **QUICK), replace(case_of(query), pulls=pulls), folder, arranged=True)


@dataclass(frozen=True)
class Begun:
    """A story of which an engine with an arrangement has heard the beginning, and one without it all; to be copied.

    Attributes:
        pulls: all pulls.
        runner: the one with the arrangement.
        places: `parts` after each of its pulls.
        plain: the one without.
        lines: what came out of each pull without.
    """

    pulls: list
    runner: Runner
    places: list
    plain: Runner
    lines: list


def begin(spark, query, pulls, folder):
    """Run all pulls without an arrangement, and the first five with one; compare their rows."""
    for name in ("plain", "arranged"):
        (folder / name).mkdir()
    plain = Runner(Tuned(spark, **QUICK), case_of(query), folder / "plain")
    runner = arranged_runner(spark, query, pulls, folder / "arranged")
    lines = [plain.pull(pull).lines for pull in pulls]
    places = []
    for pull, expected in zip(pulls[:BEGINNING], lines, strict=False):
        assert runner.pull(pull).lines == expected
        places.append(parts(runner))
    return Begun(pulls, runner, places, plain, lines)


def resumed(runner, folder):
    """Return a runner that goes on from where another one is, with files of its own."""
    shutil.copytree(runner.folder, folder)

    def copied(path):
        return None if path is None else folder / Path(path).relative_to(runner.folder)

    other = copy.copy(runner)
    other.folder = folder
    other.arrangement = copied(runner.arrangement)
    other.checkpoint = runner.checkpoint and str(copied(runner.checkpoint))
    other.sources = {
        alias: replace(
            source,
            folder=folder,
            slices=[(str(copied(path)), *ends) for path, *ends in source.slices],
            arrivals=[replace(arrival, path=str(copied(arrival.path))) for arrival in source.arrivals],
        )
        for alias, source in runner.sources.items()
    }
    return other


def pulled_with(begun, folder, between):
    """Go on with an action before the sixth pull; compare rows with those of an undisturbed engine.

    Returns `parts` after each pull.
    """
    runner = resumed(begun.runner, folder / "other")
    between(runner)
    places = [*begun.places]
    for pull, expected in zip(begun.pulls[BEGINNING:], begun.lines[BEGINNING:], strict=True):
        assert runner.pull(pull).lines == expected
        places.append(parts(runner))
    return places


def lose(runner):
    """The arrangement is lost."""
    runner.arrangement = None


def damage(runner):
    """Its files are cut off."""
    for run in runner.arrangement.glob("run-*"):
        run.write_bytes(run.read_bytes()[:100])


def swap(runner):
    """It is that of another pull."""
    runner.arrangement = runner.folder / "pull-3" / "arrangement"


SPOILED = (lose, damage, swap)
"""Kinds of damage to an arrangement: it is rebuilt from history."""


@contextmanager
def within(runner, limit):
    """Pulls with another limit, a patch; around the pull, it would be hidden by those of the runner."""
    respond = runner.respond

    def with_limit(request):
        with limit:
            return respond(request)

    runner.respond = with_limit
    yield
    runner.respond = respond
