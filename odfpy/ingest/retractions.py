"""Limit on the retractions of a snapshot.

A file that is empty, truncated or has other keys is still a valid snapshot, and the difference to the current state
would retract most rows. Datasets are append-only, so that would stay in the history for ever: the user has to confirm
it first.
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
"""Smaller numbers of retractions are never rejected."""

USUAL_PERCENT: Final = 50
"""Percentage of the current rows; more retractions always cause a warning."""


@dataclass(frozen=True, slots=True)
class RetractionLimit:
    """The limit on the share of its current rows that a dataset may lose to one snapshot.

    Attributes:
        percent: percentage of the current rows.
        is_lifted: whether the user has permitted any number for this request.
        dataset: name of the dataset, for messages.
    """

    percent: U64 = USUAL_PERCENT
    is_lifted: bool = False
    dataset: str = "NAME"

    @property
    def hint(self) -> str:
        """The available options for the user."""
        return (
            "Check that the input is complete. If it is: --allow-retractions ingests it, and"
            f" `odf config set --dataset {self.dataset} retractions.share 100%` removes the limit for the dataset."
        )


@dataclass(frozen=True, slots=True)
class StateChange:
    """A new snapshot compared with the current state; both have each key once.

    Attributes:
        new: number of rows of the snapshot.
        appended: number of those whose key is not in the current state.
        retracted: number of rows of the current state whose key is not in the snapshot.
    """

    new: int
    appended: int
    retracted: int

    @property
    def current(self) -> int:
        """The number of rows of the current state, retained and retracted ones."""
        return self.new - self.appended + self.retracted

    def exceeds(self, percent: int) -> bool:
        """Return whether more than a percentage of the current state is retracted."""
        return self.retracted * 100 > percent * self.current


def check_retractions(
    change: StateChange, limit: RetractionLimit, keys_of_retracted: Callable[[int], Sequence[Mapping[str, Any]]]
) -> tuple[DataWarning, ...]:
    """Check that a snapshot does not retract more than allowed.

    Args:
        change: the comparison with the current state.
        limit: the limit.
        keys_of_retracted: returns the primary keys of up to a number of retracted rows.

    Returns:
        A warning if many rows are retracted with permission, or all by an empty snapshot; else none.

    Raises:
        TooManyRetractions: the snapshot retracts too much; the message has the number and some keys.
    """
    if not change.retracted or not (change.exceeds(min(limit.percent, USUAL_PERCENT)) or not change.new):
        return ()
    examples = tuple(map(key_text, keys_of_retracted(MAX_EXAMPLES)))
    if change.exceeds(limit.percent) and change.retracted >= MIN_ROWS and not limit.is_lifted:
        state = f"has {count_of(change.new, 'row')}" if change.new else "has no rows"
        raise TooManyRetractions(
            f"The new state {state}, and would retract {_share(change)} of the current state{such_as(examples)};"
            f" more than {limit.percent}% needs --allow-retractions",
            hint=limit.hint,
        )
    state = "" if change.new else ": the new state has no rows"
    message = f"retracted {_share(change)} of the current state{such_as(examples)}{state}"
    return (DataWarning(WarningKind.RETRACTIONS, message, change.retracted, examples),)


def key_text(key: Mapping[str, Any]) -> str:
    """Return a primary key as text for messages: `region = 'NO', id = 3`."""
    return ", ".join(f"{name} = {value!r}" for name, value in key.items())


def _share(change: StateChange) -> str:
    if change.retracted == change.current > 1:
        return f"all {change.current} rows"
    return f"{change.retracted} of {count_of(change.current, 'row')}"
