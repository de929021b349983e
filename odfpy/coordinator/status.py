"""`odf status`: datasets that need attention. Takes no lock, and uses no network unless requested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Final

from odfpy.chain.signatures import MAX_SIZE, path_of
from odfpy.chain.stores.object_store import ObjectTooLarge
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.lineage.cycles import is_copy
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.schedules.file import load_schedule
from odfpy.coordinator.storage.last_failure import LastFailure, last_failure
from odfpy.coordinator.storage.results import DamagedDataset, Progress, ProgressSink
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transfer.known_remotes import KnownRemotes, was_local_head
from odfpy.coordinator.transform.empty_runs import has_unapplied_query, unread_inputs
from odfpy.coordinator.transform.intervals import InputDiverged, InputInterval, new_intervals, without_data
from odfpy.data.amounts import count_of
from odfpy.data.duration import Duration
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import all_of
from odfpy.errors import DatasetNotFound, HashMismatch, IntegrityError, ObjectNotFound, OdfError
from odfpy.http.url import without_user
from odfpy.repository.divergence import DatasetsDiverged, compare_chains
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.registry import resolve_remote
from odfpy.repository.transfer.clock import FromTheFuture
from odfpy.repository.transfer.simple import ForeignDataset, HistoryRewritten
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.coordinator.maintenance.last_verification import LastVerification


class Condition(Enum):
    """The conditions that a dataset may be in, worst first."""

    DAMAGED = "damaged"
    FAILED = "failed"
    LATE = "late"
    DIVERGED = "diverged"
    BEHIND = "behind"
    STALE = "stale"
    UNPUSHED = "unpushed"
    UNSIGNED = "unsigned"

    @property
    def is_a_choice(self) -> bool:
        """True if the condition is harmless and may be intended by the user."""
        return self is Condition.UNSIGNED


@dataclass(frozen=True, slots=True)
class StatusRemark:
    """A condition that needs attention.

    Attributes:
        condition: the kind of the condition.
        message: the condition with numbers and names, as the text after a colon.
        command: the command that resolves it.
    """

    condition: Condition
    message: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class DatasetStatus:
    """A dataset with its conditions; everything is fine if `remarks` is empty."""

    name: str
    remarks: tuple[StatusRemark, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusReader:
    """A reader of the conditions of datasets.

    Attributes:
        remotes: the known remote locations of the workspace.
        remote: whether to request the heads of remote locations, instead of using those last seen.
        sign: whether commits should be signed.
    """

    storage: Storage
    remotes: KnownRemotes
    progress: ProgressSink
    remote: bool = False
    sign: bool = True

    def statuses(self, refs: str | Sequence[str] = ()) -> Iterator[DatasetStatus]:
        """Yield the status of datasets by id, name and pattern, or of all, inputs first.

        Raises:
            DatasetNotFound: a name, or a pattern, matches nothing.
        """
        refs = all_of(refs)
        chosen = {dataset.handle.id for dataset in self.storage.match(refs)} if refs else None
        named, nameless = self.storage.scan()
        yield from (_damaged(handle) for handle in nameless if chosen is None)
        lineage = Lineage(self.storage)
        waiting: set[DatasetId] = set()  # datasets that must wait for their inputs
        # Examine all datasets: an outdated one far upstream makes the chosen ones stale.
        for dataset in lineage.in_order(named, with_inputs=False):
            status = self._status(dataset, waiting)
            if chosen is None or dataset.handle.id in chosen:
                yield status

    def _status(self, dataset: StoredDataset, waiting: set[DatasetId]) -> DatasetStatus:
        name = str(dataset.handle)
        try:
            remarks = list(self._remarks(dataset, waiting))
            if any(remark.condition in _HOLDS_BACK_DERIVATIVES for remark in remarks):
                waiting.add(dataset.handle.id)
            remarks[:0] = _remark_on_verification(dataset)
            remarks += self._remarks_on_sharing(dataset)
            return DatasetStatus(name, tuple(remarks))
        except OdfError as error:
            waiting.add(dataset.handle.id)
            return _damaged(DamagedDataset(name, error))

    def _remarks(self, dataset: StoredDataset, waiting: set[DatasetId]) -> Iterator[StatusRemark]:
        """Yield remarks on the dataset itself; some of them hold back its derivatives."""
        name, copy = dataset.handle, is_copy(dataset)
        state = dataset.state
        is_derived = not copy and state.kind is DatasetKind.DERIVATIVE
        of_inputs = list(self._compare_with_inputs(dataset)) if is_derived else []
        of_origin = list(_unless_unreachable(self._compare_with_origin(dataset))) if copy and self.remote else []
        failure = last_failure(dataset)
        if failure is not None and not copy and _is_repaired(failure, _last_verification(dataset)):
            failure = None
        # Diverged histories are reported below with their remedy: another pull does not help.
        if failure is not None and not (failure.code in _DIVERGED and _any_diverged(of_inputs + of_origin)):
            yield _remark_on_pull(str(name), failure)
        yield from _compare_with_schedule(dataset)
        yield from of_origin
        yield from of_inputs
        if not copy and (late := [input_id for input_id in dataset.input_ids if input_id in waiting]):
            inputs = ", ".join(str(self.storage.get(input_id).handle) for input_id in late)
            yield StatusRemark(Condition.STALE, f"waits for {inputs}", f"odf pull {name} --recursive")

    def _remarks_on_sharing(self, dataset: StoredDataset) -> Iterator[StatusRemark]:
        """Yield remarks on unpushed and unsigned blocks."""
        state = dataset.state
        yield from _unless_unreachable(self._compare_with_pushed_copy(dataset))
        if self.sign and not is_copy(dataset) and state.head is not None:
            yield from _remark_on_signatures(dataset, state.head)

    def _compare_with_inputs(self, dataset: StoredDataset) -> Iterator[StatusRemark]:
        """Compare a derivative with the heads of its inputs."""
        name, state = dataset.handle, dataset.state
        if state.set_transform is None:
            why = "it has no query: it was reset to before that, perhaps"
            yield StatusRemark(Condition.BEHIND, why, "odf add MANIFEST --replace")
            return
        try:
            intervals = new_intervals(self.storage, dataset, state.set_transform, state)
        except InputDiverged as error:
            again = f"odf pull {name} --reset-derivatives-on-diverged-input"
            yield StatusRemark(Condition.DIVERGED, error.message, again)
        except DatasetNotFound as error:
            yield StatusRemark(Condition.BEHIND, f"{error.message}. {error.hint}")
        else:
            if without_data(intervals):
                return
            if new := unread_inputs(dataset, state, intervals):
                yield StatusRemark(Condition.BEHIND, ", ".join(map(_describe_unread, new)), f"odf pull {name}")
            if has_unapplied_query(dataset, state):
                yield StatusRemark(Condition.BEHIND, "the query has changed", f"odf pull {name}")

    def _compare_with_origin(self, dataset: StoredDataset) -> Iterator[StatusRemark]:
        """Compare a copy with the location that it is pulled from."""
        url = self.remotes.pull_url(dataset)
        if url is None:
            return
        name, remote = dataset.handle, without_user(url)
        seen = self.remotes.seen_heads(dataset).get(url)
        head = self._head_at(dataset, url)
        if head is None:
            yield StatusRemark(Condition.FAILED, f"{remote} no longer has it")
            return
        divergence = compare_chains(open_dataset(url), head, dataset.layout, dataset.state.head)
        gone = divergence.num_gone(seen)
        if divergence.source and divergence.target:
            blocks_here, blocks_of_remote = (
                count_of(len(divergence.target), "block"),
                count_of(len(divergence.source), "block"),
            )
            text = f"{blocks_here} only here, {blocks_of_remote} only at {remote}"
            yield StatusRemark(Condition.DIVERGED, text, f"odf pull {name} --force" if gone else _KEEP_BOTH)
        elif gone:
            text = f"{remote} no longer has {count_of(gone, 'block')} that it had"
            yield StatusRemark(Condition.DIVERGED, text, f"odf help {HistoryRewritten.code}")
        elif divergence.source:
            yield StatusRemark(
                Condition.BEHIND, f"{remote} has {count_of(len(divergence.source), 'block')} more", f"odf pull {name}"
            )

    def _compare_with_pushed_copy(self, dataset: StoredDataset) -> Iterator[StatusRemark]:
        """Compare a dataset with the location of its last push, as far as its head is known."""
        places = self.remotes.aliases(dataset).list("push")
        if not places or dataset.state.head is None:
            return
        url = resolve_remote(places[0], self.remotes.registry)
        their_head = self._head_at(dataset, url) if self.remote else self.remotes.seen_heads(dataset).get(url)
        name, remote = dataset.handle, without_user(places[0])
        if their_head is None and self.remote:
            yield StatusRemark(Condition.UNPUSHED, f"{remote} does not have it", f"odf push {name}")
        if their_head is None or their_head == dataset.state.head:
            return
        number = dataset.number_in_history(their_head)
        if number is not None:
            text = f"{count_of(dataset.state.sequence_number - number, 'block')} more than {remote}"
            yield StatusRemark(Condition.UNPUSHED, text, f"odf push {name}")
        elif url != self.remotes.pull_url(dataset):  # that one is compared by `_compare_with_origin`
            yield self._compare_histories(dataset, url, their_head, remote)

    def _compare_histories(self, dataset: StoredDataset, url: str, their_head: Multihash, remote: str) -> StatusRemark:
        """Compare a dataset with a remote whose head is not in its history.

        Args:
            dataset: the dataset.
            url: URL of the remote dataset.
            their_head: the remote head, now or when last seen.
            remote: name of the remote for messages.
        """
        name, was_here = dataset.handle, their_head in dataset.layout.blocks
        if not self.remote and not was_here:
            text = f"{remote} has a different history: it was at block {their_head}, which is not here"
            return StatusRemark(Condition.DIVERGED, text, f"odf status {name} --remote")
        divergence = compare_chains(
            open_dataset(url) if self.remote else dataset.layout, their_head, dataset.layout, dataset.state.head
        )
        if divergence.target or was_here:
            only_here = f"{count_of(len(divergence.target), 'block')} only here, " if divergence.target else ""
            text = f"{only_here}{count_of(len(divergence.source), 'block')} only at {remote}"
            is_ours = was_local_head(dataset, url, their_head)
            return StatusRemark(Condition.DIVERGED, text, f"odf push {name} --force" if is_ours else _KEEP_BOTH)
        text = f"{remote} has {count_of(len(divergence.source), 'block')} more"
        return StatusRemark(Condition.BEHIND, text, self.remotes.pull_command(dataset, remote))

    def _head_at(self, dataset: StoredDataset, url: str) -> Multihash | None:
        self.progress(Progress(str(dataset.handle), f"asking {without_user(url)}"))
        return open_dataset(url).refs.get(HEAD)


_REFUSED: Final = frozenset(
    error.code for error in (DatasetNotFound, DatasetsDiverged, ForeignDataset, HistoryRewritten, FromTheFuture)
)
"""Codes of errors that persist until the user decides how to proceed."""

_DIVERGED: Final = frozenset(error.code for error in (InputDiverged, DatasetsDiverged, HistoryRewritten))
"""Codes of errors for histories that do not continue each other."""

_DAMAGES: Final = frozenset(error.code for error in (IntegrityError, HashMismatch, ObjectTooLarge, ObjectNotFound))
"""Codes of errors for missing and damaged files."""

_KEEP_BOTH = "odf help E601"
"""Refers to help on keeping the blocks of both sides, which takes several commands."""

_HOLDS_BACK_DERIVATIVES = (Condition.DAMAGED, Condition.FAILED, Condition.DIVERGED, Condition.BEHIND, Condition.STALE)


def _last_verification(dataset: StoredDataset) -> LastVerification | None:
    if not (dataset.folder / "info" / "verification.yaml").exists():
        return None
    from odfpy.coordinator.maintenance.last_verification import last_verification  # only needed for verified datasets

    return last_verification(dataset)


def _remark_on_verification(dataset: StoredDataset) -> Iterator[StatusRemark]:
    """Yield a remark on a failed verification if the verified head is still part of the history."""
    last = _last_verification(dataset)
    if last is None or last.ok or dataset.number_in_history(last.head) is None:
        return
    from odfpy.coordinator.maintenance.report import Severity

    errors = [finding for finding in last.findings or () if finding.severity is Severity.ERROR]
    what = f": {errors[0].message}" if errors else ""
    more = f", and {count_of(last.errors - 1, 'more error')}" if errors and last.errors > 1 else ""
    command = f"odf verify {dataset.handle}"
    if any(error.file is not None for error in errors):
        command += " --repair"
    yield StatusRemark(Condition.DAMAGED, f"verification failed, {_minute(last.time)}{what}{more}", command)


def _is_repaired(failure: LastFailure, verified: LastVerification | None) -> bool:
    """Return whether a damaged file caused the failure, and a later verification found no error."""
    return verified is not None and verified.ok and verified.time > failure.time and failure.code in _DAMAGES


def _minute(time: Timestamp) -> str:
    return str(time)[:16].replace("T", " ")


def _remark_on_pull(name: str, failure: LastFailure) -> StatusRemark:
    text = f"the last pull: {failure.message} ({failure.code}, {_minute(failure.time)})"
    if failure.code in _REFUSED and failure.hint:
        return StatusRemark(Condition.FAILED, f"{text}. {failure.hint}")
    return StatusRemark(Condition.FAILED, text, f"odf pull {name}")


def _compare_with_schedule(dataset: StoredDataset) -> Iterator[StatusRemark]:
    """Compare the age of the last rows with the promise in the dataset's schedule."""
    try:
        schedule = load_schedule(dataset.folder)
    except OdfError as error:
        yield StatusRemark(Condition.FAILED, f"its schedule: {error.message}")
        return
    last = dataset.state.last_data_time
    now = Timestamp.now()
    if schedule is not None and last is not None and schedule.is_late(last, now):
        age = Duration.between(last, now)
        text = f"the last rows came {age.in_words} ago, but its schedule promises {schedule.max_age}"
        yield StatusRemark(Condition.LATE, text, f"odf runs {dataset.handle}")


def _any_diverged(remarks: Sequence[StatusRemark]) -> bool:
    return any(remark.condition is Condition.DIVERGED for remark in remarks)


def _unless_unreachable(remarks: Iterator[StatusRemark]) -> Iterator[StatusRemark]:
    """Yield remarks that depend on remote locations; report an unreachable one as a remark."""
    try:
        yield from remarks
    except OdfError as error:
        yield StatusRemark(Condition.FAILED, error.message)


def _damaged(dataset: DamagedDataset) -> DatasetStatus:
    remark = StatusRemark(Condition.DAMAGED, dataset.error.message, f"odf verify {dataset.name} --repair")
    return DatasetStatus(dataset.name, (remark,))


def _describe_unread(item: InputInterval) -> str:
    """Describe the unread data of an input."""
    interval = item.interval
    if interval.new_offset is None:
        return f"{item.dataset.handle} has new blocks"
    count = interval.new_offset - (-1 if interval.prev_offset is None else interval.prev_offset)
    return f"{item.dataset.handle} has {count} more record{'' if count == 1 else 's'}"


def _remark_on_signatures(dataset: StoredDataset, head: Multihash) -> Iterator[StatusRemark]:
    side = dataset.layout.side
    if side is None:
        return
    if side.read(path_of(head), MAX_SIZE) is None:
        yield StatusRemark(Condition.UNSIGNED, "the last block has no signature")
        return
    from odfpy.coordinator.storage.signers import Signers

    with suppress(OdfError):  # `odf verify` reports the errors of a signature
        if Signers(dataset).has_revoked(head):
            text = "a key that signed the last block was revoked; the signature of the next commit vouches for it"
            yield StatusRemark(Condition.UNSIGNED, text)
