"""Verification of linked objects: hash and size of those that exist here, and which ones are missing.

A missing object is an error, unless no current row needs it and its removal is recorded. For a copy that has only some
files, by its setting `copy.files`, the report counts the files that exist elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from odfpy.chain.block import HashedBlock
from odfpy.chain.link_summary import LinkedObjects
from odfpy.chain.links.linked_objects import UNKNOWN, LinkedSlice, linked_slices, times_kept
from odfpy.coordinator.maintenance.damage import Damage
from odfpy.coordinator.maintenance.report import LinkedFiles
from odfpy.coordinator.maintenance.verification import Verification
from odfpy.coordinator.storage.results import Progress
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.transfer.files import SETTING, choice_of
from odfpy.data.hash_set import HashSet, as_names, name_of
from odfpy.data.link_filter import ALL, LinkFilter
from odfpy.data.multihash import Multihash
from odfpy.errors import HashMismatch, IntegrityError, ObjectNotFound, OdfError
from odfpy.repository.objects import ObjectOfBlock, StreamMonitor, run_all
from odfpy.repository.transfer.linked_names import linked_in
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.data.hash_set import Names

CHECK: Final = "file"
_MAX_COUNT: Final = 20
"""Maximum number of missing objects with a finding of their own."""

_REPAIR: Final = "`odf verify --repair` fetches it from a repository that has the dataset."


@dataclass
class LinkedCheck:
    """The check of the linked objects of one dataset.

    Attributes:
        dataset: the dataset.
        monitor: counts the bytes read.
        damaged: existing objects that are damaged, each with its damage.
        missing: names of the objects that do not exist here.
        count: number of intact objects.
        size: total size of the intact objects in bytes.
    """

    dataset: StoredDataset
    monitor: StreamMonitor

    def __post_init__(self) -> None:
        self.damaged: list[tuple[ObjectOfBlock, Damage]] = []
        self.missing = HashSet()
        self.count = self.size = 0
        self._done = HashSet()

    def look(self, item: LinkedSlice) -> None:
        """Check the objects that rows of a slice link to, each once.

        Raises:
            OdfError: the slice cannot be read, or has an invalid link.
        """
        for items in linked_in([item], self.dataset.layout, ALL, self._done, with_removed=True):
            outcomes: list[tuple[ObjectOfBlock, Damage | int]] = []
            run_all([partial(self._check, linked, outcomes) for linked in items], self.monitor.stop)
            for linked, outcome in outcomes:
                if isinstance(outcome, int):
                    self.count, self.size = self.count + 1, self.size + outcome
                elif outcome.cause is ObjectNotFound:
                    self.missing.add(as_names([linked.name]))
                else:
                    self.damaged.append((linked, outcome))

    def needed(self, blocks: list[HashedBlock]) -> Names:
        """Return the missing objects that current rows need, sorted.

        Args:
            blocks: the whole chain, oldest first.

        Raises:
            OdfError: a slice cannot be read.
        """
        import numpy as np

        names = np.sort(as_names(self.missing))
        return names[times_kept(names, linked_slices(blocks), self.dataset.layout) > 0] if len(names) else names

    def due(self, blocks: list[HashedBlock], names: Names, choice: LinkFilter) -> Names:
        """Return those of the missing objects that the copy should have according to its choice.

        Args:
            blocks: the whole chain, oldest first.
            names: the missing objects.
            choice: the copy's choice of objects.

        Raises:
            OdfError: a slice cannot be read.
        """
        if choice.is_whole or not len(names):
            return names
        if choice.is_empty or choice.allows_missing:
            return names[:0]
        chosen = HashSet()
        for _ in linked_in(linked_slices(blocks), self.dataset.layout, choice, chosen):
            pass
        return names[chosen.contains(names)]

    def _check(self, item: ObjectOfBlock, outcomes: list[tuple[ObjectOfBlock, Damage | int]]) -> None:
        outcomes.append((item, self._outcome(item)))

    def _outcome(self, item: ObjectOfBlock) -> Damage | int:
        """Return the size of an intact object, or its damage."""
        store = self.dataset.layout.data
        try:
            size = store.size(item.name)
            if item.size not in (UNKNOWN, size):
                return Damage(f"Damaged file: it has {size} bytes, its row says {item.size}", IntegrityError)
            with self.monitor.over(store.open(item.name), store.describe(item.name)) as stream:
                actual = Multihash.of_stream(stream, item.name.algorithm)
        except ObjectNotFound:
            return Damage("Missing file", ObjectNotFound)
        except (OdfError, OSError) as error:
            return Damage(f"Unreadable file: {error}", type(error) if isinstance(error, OdfError) else OdfError)
        return size if actual == item.name else Damage(f"Damaged file: its bytes have the hash {actual}", HashMismatch)


def verify_links(verification: Verification) -> LinkedFiles | None:
    """Check the linked objects of a dataset; return None if rows cannot have links. The blocks must have been read."""
    slices = list(linked_slices(verification.blocks))
    if not slices:
        return None
    recorded = sum((LinkedObjects.of(hashed.block.event) for hashed in verification.blocks), LinkedObjects())
    check = LinkedCheck(verification.dataset, StreamMonitor(recorded.size, partial(_report_progress, verification)))
    for item in slices:
        try:
            check.look(item)
        except OdfError as error:
            if not isinstance(error, HashMismatch | ObjectNotFound):  # damage of the slice has its own finding
                verification.add_finding(CHECK, error.message, item.slice.block, hint=error.hint, cause=type(error))
    blocks = {hashed.hash: hashed for hashed in verification.blocks} if check.damaged else {}
    for linked, damage in check.damaged:
        file = verification.dataset.layout.data.describe(linked.name)
        verification.add_finding(
            CHECK, damage.message, blocks.get(linked.block), file=file, hint=_REPAIR, cause=damage.cause
        )
    elsewhere = removed = 0
    try:
        choice = choice_of(verification.dataset.folder)
        needed = check.needed(verification.blocks)
        due = check.due(verification.blocks, needed, choice)
        elsewhere, removed = len(needed) - len(due), len(check.missing) - len(needed)
        _add_missing_files(verification, [name_of(name) for name in due[:_MAX_COUNT].tolist()], len(due), choice)
    except OdfError as error:
        verification.add_finding(
            CHECK, f"Cannot determine which files are missing: {error.message}", hint=error.hint, cause=type(error)
        )
    return LinkedFiles(check.count, check.size, elsewhere, removed)


def _add_missing_files(verification: Verification, names: Iterable[Multihash], count: int, choice: LinkFilter) -> None:
    setting = f"odf config set --dataset {verification.dataset.handle} {SETTING} available"
    hint = f"{_REPAIR} For a copy with only some of the files: {setting}" if choice.is_whole else _REPAIR
    for name in names:
        file = verification.dataset.layout.data.describe(name)
        verification.add_finding(
            CHECK, "Missing file, which a row links to", file=file, hint=hint, cause=ObjectNotFound
        )
    if count > _MAX_COUNT:
        verification.add_finding(CHECK, f"Missing files: {count - _MAX_COUNT} more", hint=hint, cause=ObjectNotFound)


def _report_progress(verification: Verification, done: int, total: int) -> None:
    verification.progress(Progress(str(verification.dataset.handle), "checking linked files", done, total, "bytes"))
