"""The retractions of a snapshot, and whether so many are meant.

A file that came empty, cut off or with other keys is a state like any other, and the difference to the state before
would end most rows. A dataset only grows, so that this stays in its history for ever: it is asked about first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from odfpy.data.amounts import count_of
from odfpy.data.data_warning import MAX_EXAMPLES, DataWarning, WarningKind, such_as
from odfpy.data.scalars import U64
from odfpy.errors import TooManyRetractions
from odfpy.values import dataclass

MIN_ROWS: Final = 10
"""Fewer retractions are never refused."""

USUAL_PERCENT: Final = 50
"""Of the current rows; more retractions are always remarked on."""


@dataclass(frozen=True, slots=True)
class RetractionLimit:
    """A limit on the share of its current rows that a dataset may lose to one new state.

    Attributes:
        percent: of the current rows.
        is_lifted: whether a person has allowed any number this time.
        dataset: its name, for messages.
    """

    percent: U64 = USUAL_PERCENT
    is_lifted: bool = False
    dataset: str = "NAME"

    @property
    def hint(self) -> str:
        """Return what a person can do about it."""
        return (
            "See whether the input is whole. If it is: --allow-retractions takes it in, and"
            f" `odf config set --dataset {self.dataset} retractions.share 100%` lets the dataset do without."
        )


@dataclass(frozen=True, slots=True)
class StateChange:
    """A new state beside the current one, in rows; both have each key once.

    Attributes:
        new: rows of the new state.
        appended: those of them whose key is not in the current state.
        retracted: rows of the current state whose key is not in the new one.
    """

    new: int
    appended: int
    retracted: int

    @property
    def current(self) -> int:
        """Rows of the current state: those that stay, if changed, and those that go."""
        return self.new - self.appended + self.retracted

    def exceeds(self, percent: int) -> bool:
        """Return whether more than so much of the current state is retracted."""
        return self.retracted * 100 > percent * self.current


def check_retractions(
    change: StateChange, limit: RetractionLimit, keys_of_retracted: Callable[[int], Sequence[Mapping[str, Any]]]
) -> tuple[DataWarning, ...]:
    """Check that a new state does not retract more than it may.

    Args:
        change: what it would do.
        limit: what it may.
        keys_of_retracted: gives the primary keys of so many retracted rows.

    Returns:
        A warning where much is retracted although it may be, or all by an empty state.

    Raises:
        TooManyRetractions: it retracts too much; the message says how much, and some keys.
    """
    if not change.retracted or not (change.exceeds(min(limit.percent, USUAL_PERCENT)) or not change.new):
        return ()
    examples = tuple(map(key_text, keys_of_retracted(MAX_EXAMPLES)))
    if change.exceeds(limit.percent) and change.retracted >= MIN_ROWS and not limit.is_lifted:
        state = f"has {count_of(change.new, 'row')}" if change.new else "has no rows"
        raise TooManyRetractions(
            f"The new state {state}, and would retract {_share(change)} of the current state{such_as(examples)};"
            f" more than {limit.percent}% are not retracted unasked",
            hint=limit.hint,
        )
    state = "" if change.new else ": the new state has no rows"
    message = f"retracted {_share(change)} of the current state{such_as(examples)}{state}"
    return (DataWarning(WarningKind.RETRACTIONS, message, change.retracted, examples),)


def key_text(key: Mapping[str, Any]) -> str:
    """A primary key for people: `region = 'NO', id = 3`."""
    return ", ".join(f"{name} = {value!r}" for name, value in key.items())


def _share(change: StateChange) -> str:
    if change.retracted == change.current > 1:
        return f"all {change.current} rows"
    return f"{change.retracted} of {count_of(change.current, 'row')}"
