"""Pulls that go on from a checkpoint, pulls that read all of history, and the batch: all three give the same rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.examples import examples
from support.queries.arranging import resumed
from support.queries.batch_cases import Compared
from support.queries.cases import QUICK, Case, Pull, Tuned, lines, parsed

from odfpy.dataset.transform import TemporalTable
from odfpy.engine.contract import TransformRequest, TransformResponse

pytestmark = pytest.mark.spark

VALUES = [pa.field("k", pa.string()), pa.field("v", pa.int32())]
TEXTS = [pa.field("k", pa.string()), pa.field("s", pa.string())]
KEYS = [pa.field("k", pa.string())]
Step = tuple[str | None, str]
Text = Mapping[str, str]


@dataclass
class FromEither(Compared):
    """Pulls with a checkpoint or, `from_history`, without."""

    from_history: bool = False

    def respond(self, request: TransformRequest) -> TransformResponse:
        return super().respond(replace(request, prev_checkpoint_path=None) if self.from_history else request)


@dataclass(frozen=True)
class Story:
    """A transform, and what comes: of each pull the rows and watermarks, as texts."""

    query: str | Sequence[Step]
    inputs: Mapping[str, Sequence[pa.Field]]
    pulls: Sequence[tuple[Text, Text]]
    last: Sequence[str]
    temporal: tuple[TemporalTable, ...] = ()


# --- Joins within a time, of which a side keeps state itself ---

SEEN: list[tuple[Text, Text]] = [
    (
        {"a": "+A 2024-01-01T02:00 x 1", "b": "+A 2024-01-01T03:00 x 10"},
        {"a": "2024-01-01T02:00", "b": "2024-01-01T03:00"},
    ),
    (
        {"a": "+A 2024-01-09T00:00 y 2", "b": "+A 2024-01-09T00:00 y 20"},
        {"a": "2024-01-09T00:00", "b": "2024-01-09T00:00"},
    ),
]
LATE, BACK = ({"a": "+A 2024-01-01T01:00 x 3"}, {}), ({"a": "-R 2024-01-01T02:00 x 1"}, {})
DISTINCT = "(SELECT DISTINCT event_time, k, v AS n FROM a) l"
NUMBERED = "(SELECT event_time, k, row_number() OVER (PARTITION BY k ORDER BY event_time) AS n FROM a) l"
WITHIN = "l.k = b.k AND b.event_time BETWEEN l.event_time AND l.event_time + INTERVAL 1 DAY"
BOTH = {"a": VALUES, "b": VALUES}
SHOWN = "SELECT l.event_time, l.k, l.n"

# --- Versions with values that are not simply equal or not ---

IN_FORCE = "f.k = t.k AND f.event_time >= t.valid_from AND f.event_time < t.valid_to"
VERSIONS = (TemporalTable(name="t", primary_key=("k",)),)
FOLDED: list[Step] = [
    ("t", "SELECT event_time, k, s COLLATE UTF8_LCASE AS s FROM r"),
    (None, f"SELECT f.event_time, f.k, t.s FROM f JOIN t ON {IN_FORCE}"),
]
MAPS: list[Step] = [
    ("t", "SELECT event_time, k, map('v', v) AS m FROM r"),
    (None, f"SELECT f.event_time, f.k, to_json(t.m) AS m FROM f JOIN t ON {IN_FORCE}"),
]
FACT = {"r": "2024-01-03T00:00", "f": "2024-01-03T00:00"}

# --- Equal values of several forms ---

SIGNED = "(SELECT event_time, k, v * DOUBLE('-0.0') AS z FROM a)"
LAGGED = "lag(v * DOUBLE('-0.0')) OVER (PARTITION BY k ORDER BY event_time)"
UNRELATED: tuple[Text, Text] = {"a": "-R 2024-01-01T02:00 y 1"}, {}
BEFORE: tuple[Text, Text] = {"a": "+A 2024-01-01T01:00 x 1"}, {}
TWO_KEYS: tuple[Text, Text] = {"a": "+A 2024-01-01T02:00 x 1\n+A 2024-01-01T02:00 y 1"}, {}
PARTNER: tuple[Text, Text] = {"b": "+A 2024-01-01T01:00 x 1"}, {}

# --- Late rows alone ---

TOTALS = (
    "SELECT /*+ LATE(only) */ date_trunc('DAY', event_time) AS event_time, k, count(*) AS n, sum(v) AS s"
    " FROM a GROUP BY date_trunc('DAY', event_time), k"
)

STORIES = {
    "a late row of DISTINCT": Story(
        f"{SHOWN}, b.v FROM {DISTINCT} JOIN b ON {WITHIN}", BOTH, [*SEEN, LATE], ["+A 2024-01-01T01:00 x 3 10"]
    ),
    "a late row before a window function": Story(
        f"{SHOWN}, b.v FROM {NUMBERED} JOIN b ON {WITHIN}",
        BOTH,
        [*SEEN, LATE],
        ["+A 2024-01-01T01:00 x 1 10", "-R 2024-01-01T02:00 x 1 10", "+A 2024-01-01T02:00 x 2 10"],
    ),
    "a row of DISTINCT taken back": Story(
        f"{SHOWN}, b.v FROM {DISTINCT} JOIN b ON {WITHIN}", BOTH, [*SEEN, BACK], ["-R 2024-01-01T02:00 x 1 10"]
    ),
    "a late row that has a partner": Story(
        f"{SHOWN} FROM {DISTINCT} LEFT SEMI JOIN b ON {WITHIN}", BOTH, [*SEEN, LATE], ["+A 2024-01-01T01:00 x 3"]
    ),
    "a late row where EXISTS is one of two": Story(
        f"{SHOWN} FROM {DISTINCT} WHERE l.n = 99 OR EXISTS (SELECT 1 FROM b WHERE {WITHIN})",
        BOTH,
        [*SEEN, LATE],
        ["+A 2024-01-01T01:00 x 3"],
    ),
    "a version of which only the case is corrected": Story(
        FOLDED,
        {"r": TEXTS, "f": KEYS},
        [
            ({"r": "+A 2024-01-01T00:00 x a", "f": "+A 2024-01-02T00:00 x"}, FACT),
            ({"r": "-C 2024-01-01T00:00 x a\n+C 2024-01-01T00:00 x A"}, {}),
        ],
        ["+A 2024-01-02T00:00 x A", "-R 2024-01-02T00:00 x a"],
        VERSIONS,
    ),
    "one of two versions that are equal but for the case": Story(
        FOLDED,
        {"r": TEXTS, "f": KEYS},
        [
            ({"r": "+A 2024-01-01T00:00 x a\n+A 2024-01-01T00:00 x A", "f": "+A 2024-01-02T00:00 x"}, FACT),
            ({"r": "-R 2024-01-01T00:00 x A"}, {}),
        ],
        ["-R 2024-01-02T00:00 x A", "+A 2024-01-02T00:00 x a"],
        VERSIONS,
    ),
    "a late version with a map": Story(
        MAPS,
        {"r": VALUES, "f": KEYS},
        [
            ({"r": "+A 2024-01-01T00:00 x 1", "f": "+A 2024-01-02T00:00 x"}, FACT),
            ({"r": "+A 2024-01-01T12:00 x 7"}, {}),
        ],
        ['-R 2024-01-02T00:00 x {"v":1}', '+A 2024-01-02T00:00 x {"v":7}'],
        VERSIONS,
    ),
    "a negative zero that is computed": Story(
        "SELECT event_time, k, CAST(z AS STRING) AS s, row_number() OVER (PARTITION BY k ORDER BY event_time) AS n"
        f" FROM {SIGNED}",
        {"a": VALUES},
        [TWO_KEYS, UNRELATED, BEFORE],
        ["-C 2024-01-01T02:00 x 0.0 1", "+C 2024-01-01T01:00 x 0.0 1", "+A 2024-01-01T02:00 x 0.0 2"],
    ),
    "a negative zero of a window function": Story(
        f"SELECT event_time, k, CAST(z AS STRING) AS s FROM (SELECT event_time, k, {LAGGED} AS z FROM a)",
        {"a": VALUES},
        [TWO_KEYS, UNRELATED, BEFORE],
        ["+A 2024-01-01T01:00 x -", "-R 2024-01-01T02:00 x -", "+A 2024-01-01T02:00 x 0.0"],
    ),
    "a negative zero of explode": Story(
        "SELECT event_time, k, CAST(z AS STRING) AS s, row_number() OVER (PARTITION BY k ORDER BY event_time) AS n"
        " FROM (SELECT event_time, k, explode(array(v * DOUBLE('-0.0'))) AS z FROM a)",
        {"a": VALUES},
        [TWO_KEYS, UNRELATED, BEFORE],
        ["-C 2024-01-01T02:00 x 0.0 1", "+C 2024-01-01T01:00 x 0.0 1", "+A 2024-01-01T02:00 x 0.0 2"],
    ),
    "a map that is made": Story(
        "SELECT l.event_time, l.k, to_json(l.m) AS m, b.v"
        " FROM (SELECT event_time, k, map('v', v, 'a', 1) AS m FROM a) l LEFT JOIN b ON l.k = b.k",
        BOTH,
        [TWO_KEYS, UNRELATED, PARTNER],
        ['-R 2024-01-01T02:00 x {"a":1,"v":1} -', '+A 2024-01-01T02:00 x {"a":1,"v":1} 1'],
    ),
    "a negative zero of a step before": Story(
        [
            ("z", "SELECT event_time, k, v * DOUBLE('-0.0') AS z FROM a"),
            (None, "SELECT z.event_time, z.k, CAST(z.z AS STRING) AS s, b.v FROM z LEFT JOIN b ON z.k = b.k"),
        ],
        BOTH,
        [TWO_KEYS, UNRELATED, PARTNER],
        ["-R 2024-01-01T02:00 x 0.0 -", "+A 2024-01-01T02:00 x 0.0 1"],
    ),
    "a row that was wrong, corrected in time": Story(
        "SELECT max(event_time) AS event_time, k, sum(CAST(10 / v AS INT)) AS s FROM a GROUP BY k",
        {"a": VALUES},
        [
            ({"a": "+A 2024-01-01T01:00 x 2"}, {}),
            (
                {
                    "a": "+A 2024-01-01T02:00 x 0\n-C 2024-01-01T02:00 x 0\n+C 2024-01-01T02:00 x 5\n"
                    "+A 2024-01-01T02:00 x 5"
                },
                {},
            ),
        ],
        ["-C 2024-01-01T01:00 x 5", "+C 2024-01-01T02:00 x 9"],
    ),
    "a row that was wrong, before DISTINCT": Story(
        [
            ("d", "SELECT DISTINCT event_time, k FROM a WHERE CAST(if(v = 0, 'bad', '1') AS INT) = 1"),
            (None, "SELECT event_time, k, row_number() OVER (PARTITION BY k ORDER BY event_time) AS n FROM d"),
        ],
        {"a": VALUES},
        [
            (
                {
                    "a": "+A 2024-01-01T01:00 x 2\n+A 2024-01-01T02:00 x 0\n-R 2024-01-01T02:00 x 0\n+A 2024-01-01T03:00 y 5"
                },
                {},
            )
        ],
        ["+A 2024-01-01T01:00 x 1", "+A 2024-01-01T03:00 y 1"],
    ),
    "a row taken back that was not late": Story(
        TOTALS,
        {"a": VALUES},
        [
            ({"a": "+A 2024-01-01T03:00 x 3"}, {"a": "2024-01-01T03:00"}),
            (
                {"a": "+A 2024-01-01T02:00 x 1\n+A 2024-01-01T01:00 x 1\n-R 2024-01-01T03:00 x 3"},
                {"a": "2024-01-04T04:00"},
            ),
        ],
        ["+A 2024-01-01T00:00 x 2 2"],
    ),
}
LOOK_CLOSER = {
    "a row of DISTINCT taken back",
    "a late row that has a partner",
    "one of two versions that are equal but for the case",
    "a negative zero that is computed",
    "a negative zero of explode",
    "a negative zero of a step before",
    "a row that was wrong, before DISTINCT",
}
"""Stories of which another one is alike: of each section, some are quick tests."""


def told():
    """The stories."""
    for name, story in STORIES.items():
        yield pytest.param(story, id=name, marks=[pytest.mark.slow] if name in LOOK_CLOSER else [])


@pytest.mark.parametrize("story", list(told()))
def test_they_agree(spark: Any, tmp_path: Path, story: Story) -> None:
    steps: Sequence[Step] = [(None, story.query)] if isinstance(story.query, str) else story.query
    pulls = [
        Pull({name: [parsed(line, story.inputs[name]) for line in lines(text)] for name, text in rows.items()}, clock)
        for rows, clock in story.pulls
    ]
    case, quick = Case("story", "", steps, story.inputs, {}, pulls), Tuned(spark, **QUICK)
    (tmp_path / "checkpoint").mkdir()
    going_on = FromEither(quick, case, tmp_path / "checkpoint", temporal=story.temporal, batch_spark=quick)
    several = examples(1, len(pulls))  # the last one is what a story is about
    for pull in pulls[:-several]:
        going_on.pull(pull)
    anew = resumed(going_on, tmp_path / "history")
    anew.slices, anew.from_history = [*going_on.slices], True
    for pull in pulls[-several:]:
        made, other = going_on.pull(pull), anew.pull(pull)
        assert (other.lines, other.logical_hash) == (made.lines, made.logical_hash)
    assert made.lines == story.last
    assert not going_on.compare().differences


def test_texts_that_are_equal_by_their_collation_stand_by_their_bytes(spark: Any, tmp_path: Path) -> None:
    """In whichever task they were made."""
    words = ["".join(letters) for letters in itertools.product("aA", repeat=3)]
    query = "SELECT a.event_time, a.s COLLATE UTF8_LCASE AS s FROM a JOIN b ON a.k = b.k"
    rows = {
        "a": "\n".join(f"+A 2024-01-01T02:00 {at} {word}" for at, word in enumerate(words)),
        "b": "\n".join(f"+A 2024-01-01T02:00 {at}" for at in range(len(words))),
    }
    fields = {"a": TEXTS, "b": KEYS}
    pull = Pull({name: [parsed(line, fields[name]) for line in lines(text)] for name, text in rows.items()}, {})
    found = []
    for at, (tasks, partitions) in enumerate(((1_000_000, 1), (1, 4), (2, 3))):
        (tmp_path / str(at)).mkdir()
        tuned = Tuned(
            spark,
            spark__sql__shuffle__partitions=str(partitions),
            spark__sql__autoBroadcastJoinThreshold="-1",
        )
        run = Compared(
            tuned,
            Case("texts", "", [(None, query)], fields, {}, [pull]),
            tmp_path / str(at),
            rows_in_one_task=tasks,
            batch_spark=tuned,
        )
        found.append([line.split()[-1] for line in run.pull(pull).lines])
    assert found == [sorted(words)] * 3
