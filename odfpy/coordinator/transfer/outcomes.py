"""Results of transfers, and hints for diverged histories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from odfpy.chain.references import ReferenceName
from odfpy.chain.state import ChainState
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.storage.clock import warnings_of_copy
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.coordinator.storage.results import Progress, ProgressSink, PullOutcome, PullResult
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.transfer.files import remarks_on
from odfpy.coordinator.transfer.known_remotes import was_local_head
from odfpy.data.amounts import count_of
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import InvalidValue, OdfError, UsageError
from odfpy.http.url import without_user
from odfpy.repository.divergence import DatasetsDiverged
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.transfer.simple import TransferOutcome, TransferResult


@contextmanager
def hint_if_diverged(dataset: StoredDataset, url: str, pull: str) -> Iterator[None]:
    """Add a hint to an error about diverged histories in the block: first a way to keep the blocks of both sides.

    If the remote has an earlier history of the local dataset, from before a reset or a compaction, there is nothing to
    keep: a merge would apply the same records twice.

    Args:
        dataset: the local dataset.
        url: URL of the remote dataset.
        pull: the command that pulls from the remote.
    """
    try:
        yield
    except DatasetsDiverged as error:
        if dataset.branch is not None:
            raise
        name = dataset.handle
        if _was_here(dataset, url):
            hint = (
                "The remote has the history from before a reset or `odf compact`. To replace it:"
                f" `odf push {name} --force`. To restore it here: `{pull} --force`."
            )
            raise error.with_message(error.message, hint=hint) from None
        keep = f"`odf branch {name} mine`, `{pull} --force`, `odf merge {name} mine`"
        was_made_here = name.id in dataset.workspace_folder.keys
        if dataset.state.kind is DatasetKind.DERIVATIVE and was_made_here:  # runs of a query cannot be merged
            keep = f"`{pull} --force`, `odf pull {name}`, which derives again what is only here"
        hint = f"To lose nothing, rebase on the remote: {keep}. To drop one side: {error.hint}"
        raise error.with_message(error.message, hint=hint) from None


def _was_here(dataset: StoredDataset, url: str) -> bool:
    """Return whether the remote head was once the local head."""
    with suppress(OdfError):  # the next attempt reports its errors
        remote_head = open_dataset(url).refs.get(HEAD)
        return remote_head is not None and was_local_head(dataset, url, remote_head)
    return False


def dataset_name_in(url: str) -> DatasetAlias:
    """Return the name of a dataset from its URL.

    Raises:
        UsageError: the URL does not end in a name.
    """
    last = url.rstrip("/").rpartition("/")[2]
    try:
        return DatasetAlias.parse(last)
    except InvalidValue as error:
        raise UsageError(
            f"{without_user(url)} does not end in the name of a dataset", hint="Give the dataset a name with --as."
        ) from error


def with_note_on_credentials(result: PullResult, remote: str) -> PullResult:
    """Add a note to a result if a location was stored without the credentials in its URL."""
    if result.error is not None or without_user(remote) == remote:
        return result
    note = "user and password in the URL are not stored: the next pull or push needs them again"
    return replace(result, notes=(*result.notes, note))


def with_reference(result: PullResult, reference: ReferenceName) -> PullResult:
    """Return a result whose name includes a branch or tag."""
    return replace(result, name=f"{result.name} {reference}")


def bytes_reporter(subject: str, action: str, progress: ProgressSink) -> Callable[[int, int], None]:
    """Return a callback that reports transferred and total bytes.

    Args:
        subject: name of the dataset.
        action: description of the action.
        progress: the sink for the reports.
    """
    return lambda done, total: progress(Progress(subject, action, done, total, "bytes"))


def pull_result(
    name: str,
    moved: TransferResult,
    read_state: Callable[[], ChainState],
    *,
    target: str = "it",
    source: str = "where it is from",
    if_ahead: str | None = None,
    if_dropped: str | None = None,
) -> PullResult:
    """Convert the result of a transfer to that of a pull.

    Args:
        name: name of the dataset.
        moved: the result of the transfer.
        read_state: reads the chain state if the transfer result has none.
        target: description of the target, for remarks.
        source: description of the source, for remarks.
        if_ahead: hint if the target has more blocks than the source.
        if_dropped: hint if the target has lost blocks.
    """
    updated = moved.outcome is TransferOutcome.UPDATED
    state = (moved.state or read_state()) if updated else None  # reading the state of a long chain is slow
    notes = []
    if moved.outcome is TransferOutcome.TARGET_AHEAD:
        ahead = f"{target} has {count_of(moved.num_ahead, 'block')} more than {source}"
        notes.append("; ".join(filter(None, (ahead, if_ahead))))
    if moved.num_dropped:
        lost = f"{count_of(moved.num_dropped, 'block')} with {count_of(moved.num_dropped_records, 'record')}"
        dropped = f"{target} has lost {lost}; the head was {moved.old_head}"
        notes.append("; ".join(filter(None, (dropped, if_dropped))))
    signatures = moved.signatures if moved.num_blocks else None  # a tag alone has no signers
    if signatures is not None and state is not None:
        notes.append(UserKeys().words(signatures, state.dataset_id))
    notes += remarks_on(moved.links)
    return PullResult(
        name=name,
        outcome=PullOutcome.UPDATED if updated else PullOutcome.UP_TO_DATE,
        old_head=moved.old_head,
        new_head=moved.new_head,
        num_blocks=moved.num_blocks,
        num_records=moved.num_records,
        num_dropped_blocks=moved.num_dropped,
        num_dropped_records=moved.num_dropped_records,
        watermark=state.watermark if state is not None else None,
        signatures=signatures,
        warnings=warnings_of_copy(state.system_time) if state is not None else (),
        notes=tuple(notes),
    )
