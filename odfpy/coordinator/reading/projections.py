"""Past states of datasets as tables of a query: options of commands and arguments of Python, translated to SQL."""

from __future__ import annotations

from odfpy.coordinator.storage.references import find_block
from odfpy.coordinator.storage.storage import Storage
from odfpy.data.timestamp import Instant, Timestamp
from odfpy.errors import InvalidValue, NotYetThen, UsageError
from odfpy.query.dialects import Dialect
from odfpy.query.moments import PointInTime, moment_word


def table_of(
    storage: Storage,
    name: str,
    dialect: Dialect,
    *,
    current: bool = False,
    as_at: PointInTime | None = None,
    as_of: Instant | None = None,
) -> str:
    """Return the SQL after FROM for a dataset; its log by default.

    Args:
        storage: where the dataset is.
        name: a name, an id, or `NAME@BLOCK`.
        dialect: dialect of the query.
        current: whether to read its current state.
        as_at: a system time, block, tag or branch as at which to read.
        as_of: an event time as of which to read.

    Raises:
        DatasetNotFound, BlockNotFound: with a suggestion.
        InvalidValue: a time is invalid.
        UsageError: both the current state and an earlier one are requested.
    """
    storage.get_at(name)
    if current and (as_at is not None or as_of is not None):
        raise UsageError(
            "Either the current state or an earlier one", hint="--as-at and --as-of select a state: omit --current."
        )
    at = None if as_at is None else moment(storage, name, as_at)
    of = None if as_of is None else str(Timestamp.of(as_of))
    arguments = [name, *(value for value in (at, of) if value is not None)]
    function = {(True, True): "odf_as_at_of", (True, False): "odf_as_at", (False, True): "odf_as_of"}.get(
        (at is not None, of is not None), "odf_current"
    )
    if function == "odf_current" and not current:
        return dialect.quoted(name)
    return f"{function}({', '.join(map(dialect.literal, arguments))})"


def moment(storage: Storage, name: str, point: PointInTime) -> str:
    """Return a system time, or the hash of the block that a number, tag, branch or hash refers to.

    Args:
        storage: the workspace.
        name: name of the dataset.
        point: the given moment.

    Raises:
        BlockNotFound: there is no such block; the message has a suggestion.
        InvalidValue: the value looks like a time, but is invalid.
        NotYetThen: the dataset did not exist yet.
    """
    dataset, text = storage.get_at(name), moment_word(point)
    try:
        time = Timestamp.parse(text)
    except InvalidValue:
        if ":" in text or text.count("-") > 1:  # intended as a time
            raise
        return str(find_block(dataset, text))
    began = dataset.chain.in_order()[0].block.system_time
    if began > time:
        raise NotYetThen(f"{name} did not exist yet at {time}", hint=f"It began at {began}; ask for a later time.")
    return str(time)
