"""Past states of datasets as tables of a query: translates options of commands and arguments of functions to SQL."""

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
    """Return the SQL of a dataset for a FROM clause; its log by default.

    Args:
        storage: the workspace.
        name: a name, an id, or `NAME@BLOCK`.
        dialect: dialect of the query.
        current: whether to select the current state.
        as_at: system time, block, tag or branch of the state to select.
        as_of: event time of the state to select.

    Raises:
        DatasetNotFound, BlockNotFound: the dataset or block does not exist; the message has a suggestion.
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
    """Resolve a moment to a system time, or to the hash of the block with a number, tag, branch or hash.

    Args:
        storage: the workspace.
        name: name of the dataset.
        point: the moment.

    Raises:
        BlockNotFound: the block does not exist; the message has a suggestion.
        InvalidValue: the value looks like a time, but is invalid.
        NotYetThen: the dataset did not exist at that time.
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
