"""What all commits have in common."""

from __future__ import annotations

from odfpy.chain.state import ChainState
from odfpy.data.timestamp import Timestamp


def commit_time(state: ChainState) -> Timestamp:
    """The one system time of a commit; it does not go back even if the clock does."""
    now = Timestamp.now()
    return now if state.system_time is None else max(now, state.system_time)
