"""A pull of a query with state whose engine or coordinator is killed: the next one gives what it would have given.

Each kill costs two pulls on a real engine, so that a run of all tests has a few at chosen places, over windows only;
`ODF_KILLS=100` (see `benchmarks/kills.py`) makes so many more of each kind, at random moments, over several steps of other classes.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from signal import SIGKILL

import pytest
from support.processes.killing import STEPS, WINDOWS, Story, eventually, is_alive, kill
from support.processes.tally import KILLS

from odfpy.engine.worker.admin import engine_status

pytestmark = pytest.mark.spark

MORE = KILLS
PULLS = 3 if MORE else 2
LAST = PULLS - 1
FAILED = 1 << 8
"""Exit code 1, as `waitpid` has it."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    made = Story(tmp_path_factory.mktemp("story"), PULLS, STEPS if MORE else WINDOWS)
    yield made
    made.close()


def goes_on(story: Story, pull: int, before: dict[str, int]) -> None:
    """What is there is valid; the next pull brings the rest, and nothing is left of what was killed."""
    assert story.findings(integrity_only=True) == []
    assert story.pull() == 0
    assert story.contents() == story.wanted[pull]
    assert story.leftovers() == []
    now = set(story.family().values())
    eventually(lambda: not any(is_alive(pid) for pid in before.values() if pid not in now))


def while_busy(story: Story, what: str, seconds: float = 0) -> tuple[int, dict[str, int]]:
    """A pull, and a process that is killed some time after the engine has begun with it; how the pull ended, and the
    engine's processes."""
    family: dict[str, int] = {}
    done = threading.Event()

    def strike() -> None:
        folder = story.root / ".odf" / "run"
        eventually(lambda: done.is_set() or ((status := engine_status(folder)) and status.busy))
        done.wait(seconds)
        if not done.is_set():
            family.update(story.family())
            kill(story.zygote.child if what == "coordinator" else family[what], what)

    striking = threading.Thread(target=strike)
    striking.start()
    status = story.pull()
    done.set()
    striking.join()
    return status, family


def struck(story: Story, what: str) -> tuple[int, dict[str, int]]:
    """The last pull with a kill that came before its end, which on a busy machine may take several attempts."""
    for _ in range(20):
        story.go_back(LAST)
        status, family = while_busy(story, what)
        if status:
            break
    return status, family


# How many of its changes of files a coordinator has yet to make when it is killed: the engine has answered; the slice,
# the checkpoint, a block, the head have only their temporary names.
PLACES = {"answer": 14, "slice": 13, "checkpoint": 10, "block": 7, "head": 3}


@pytest.mark.parametrize("place", PLACES if MORE else ["checkpoint"])
def test_a_coordinator_that_is_killed_while_it_commits(story: Story, place: str) -> None:
    story.go_back(LAST)
    assert story.pull(kill_at=story.steps[LAST] - PLACES[place]) == SIGKILL
    goes_on(story, LAST, {})


@pytest.mark.parametrize("what", ["java", "worker", "host", "supervisor"] if MORE else ["java"])
def test_an_engine_that_is_killed_at_work(story: Story, what: str) -> None:
    status, family = struck(story, what)
    assert status == FAILED
    goes_on(story, LAST, family)


def test_a_coordinator_that_is_killed_while_the_engine_works(story: Story) -> None:
    assert struck(story, "coordinator")[0] == SIGKILL
    goes_on(story, LAST, {})


if MORE:

    @pytest.mark.parametrize("what", ["coordinator", "java", "worker", "host", "supervisor"])
    def test_kills_at_any_moment(story: Story, what: str) -> None:
        chance = random.Random(what)
        for _ in range(MORE):
            pull = chance.randrange(PULLS)
            story.go_back(pull)
            if what == "coordinator" and chance.random() < 0.5:
                story.pull(kill_after=chance.uniform(0, story.seconds[pull]))
                family: dict[str, int] = {}
            else:
                _, family = while_busy(story, what, chance.uniform(0, story.seconds[pull]))
            goes_on(story, pull, family)


def test_the_last_one_verifies(story: Story) -> None:
    assert story.findings(integrity_only=False) == []
