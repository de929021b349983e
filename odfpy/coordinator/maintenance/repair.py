"""`odf verify --repair`: fetch missing or damaged files from the remotes of a dataset.

Objects are named by their hashes, so they can be fetched from any remote: data is hashed on arrival, and replaces the
existing file atomically. References and signatures are not objects: see `repair_references`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.links.linked_objects import UNKNOWN, linked_slices
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.maintenance.damage import damage_of
from odfpy.coordinator.maintenance.repair_references import ReferenceRepair, restored_signatures
from odfpy.coordinator.maintenance.report import Finding, Severity
from odfpy.coordinator.maintenance.verify_links import LinkedCheck
from odfpy.coordinator.storage.results import Progress, ProgressSink
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.transfer.files import choice_of
from odfpy.coordinator.transfer.transfers import Transfers
from odfpy.data.hash_set import HashSet
from odfpy.data.multihash import Multihash
from odfpy.errors import ObjectNotFound, OdfError, TransferError
from odfpy.files import make_way_for
from odfpy.http.url import without_user
from odfpy.repository.divergence import read_block
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.objects import ObjectKind, ObjectOfBlock, StreamMonitor, objects_of_blocks
from odfpy.repository.reference_transfer import ReferenceNotThere
from odfpy.repository.registry import resolve_remote
from odfpy.repository.transfer.linked import LinkedCopy

_MAX_TAGS = 20
"""Maximum number of findings reported per remote."""


@dataclass
class Repair:
    """A repair of one dataset; requires its lock.

    Attributes:
        repaired: paths of the files that were fetched again.
        findings: reasons why files could not be repaired.
    """

    dataset: StoredDataset
    transfers: Transfers
    progress: ProgressSink
    repaired: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    _remotes: list[tuple[str, DatasetLayout]] = field(default_factory=list)

    def run(self) -> None:
        """Check all references and reachable objects, and fetch missing or damaged ones."""
        try:
            self._repair()
        except OdfError as error:  # for example from the file of remotes: other datasets can still be repaired
            self._add_finding(f"Not repaired: {error.message}", type(error), error.hint)

    def findings_beside(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Return the reasons why files were not repaired; if there is no remote, add a finding that says so.

        Args:
            findings: the findings of a verification after the repair.
        """
        if findings and not self._remotes and not self.findings:
            self._add_finding(
                "Nothing to repair from: the dataset was neither pulled from nor pushed to a repository", OdfError
            )
        return self.findings

    def _repair(self) -> None:
        self._remotes = list(self._open_remotes())
        layout = self.dataset.layout
        references = ReferenceRepair(self.dataset, self._remotes)
        seen: set[Multihash] = set()
        for name in dict.fromkeys((HEAD, *layout.refs.names())):
            try:
                if references.restored(name):
                    self.repaired.append(layout.refs.describe(name))
            except OdfError as error:
                self._add_finding(error.message, type(error), error.hint, layout.refs.describe(name))
            with suppress(OdfError):  # the following verification reports remaining damage
                self._reached(name, seen)
        try:
            self._linked()
        except OdfError as error:
            self._add_finding(f"Not all linked files were checked: {error.message}", type(error), error.hint)
        self._tell_lost_tags()

    def _linked(self) -> None:
        """Fetch linked objects that are damaged, or missing although this copy should have them."""
        layout, choice = self.dataset.layout, choice_of(self.dataset.folder)
        check = LinkedCheck(self.dataset, StreamMonitor(0, self._tell_bytes))
        wanted = HashSet()
        for name in dict.fromkeys((HEAD, *layout.refs.names())):
            blocks = layout.chain.in_order(layout.refs.get(name))
            for item in linked_slices(blocks):
                check.look(item)
            wanted.add(check.due(blocks, check.needed(blocks), choice))
        damaged = [item.name for item, _ in check.damaged]
        for name in (*damaged, *wanted):
            self._fetch(layout.data, name, lambda remote, name=name: self._copy_linked(remote, name))  # type: ignore[misc]

    def _copy_linked(self, remote: DatasetLayout, name: Multihash) -> None:
        item = ObjectOfBlock(ObjectKind.DATA_SLICE, name, UNKNOWN, name)
        copying = LinkedCopy(self.dataset.layout.data, StreamMonitor(0, self._tell_bytes))
        copying.copy([item], remote.data)
        if len(copying.missing):
            raise ObjectNotFound(f"Missing object: {remote.data.describe(name)}")

    def _tell_bytes(self, done: int, total: int) -> None:
        self.progress(Progress(str(self.dataset.handle), "looking for damage", done, total, "bytes"))

    def _reached(self, reference: str, seen: set[Multihash]) -> None:
        """Repair all objects reachable from a reference, except for those already seen."""
        head = self.dataset.layout.refs.get(reference)
        blocks = [] if head is None else self._blocks(head, seen)
        for item in objects_of_blocks(blocks):
            self._object(item)
        self.repaired += restored_signatures(self.dataset, blocks, self._remotes)

    def _open_remotes(self) -> list[tuple[str, DatasetLayout]]:
        aliases = self.transfers.aliases(self.dataset)
        places = dict.fromkeys([*aliases.list("pull"), *aliases.list("push")])
        opened = []
        for remote in places:
            place = without_user(remote)
            try:
                opened.append((place, open_dataset(resolve_remote(remote, self.transfers.registry))))
            except OdfError as error:
                self._add_finding(f"Cannot fetch from {place}: {error.message}", type(error), error.hint)
        return opened

    def _tell_lost_tags(self) -> None:
        """Report pushed tags that are missing here: only the user knows if they were deleted or lost."""
        own_names = set(self.dataset.layout.refs.names())
        pushed_to = self.transfers.aliases(self.dataset).shown("push")
        for remote, layout in (known for known in self._remotes if known[0] in pushed_to):
            with suppress(OdfError):  # not all remotes can be listed
                lost = [
                    name for text in layout.refs.names() if text not in own_names and (name := _tag(text)) is not None
                ]
                for name in lost[:_MAX_TAGS]:
                    self._add_finding(
                        f"{remote} has {name}, which does not exist here",
                        ReferenceNotThere,
                        f"If it was lost: odf tag {self.dataset.handle} {name.name} {layout.refs.get(name.reference)}",
                    )

    def _blocks(self, head: Multihash, seen: set[Multihash]) -> list[HashedBlock]:
        """Repair and return a block and its ancestors, up to the first one already seen."""
        blocks: list[HashedBlock] = []
        store = self.dataset.layout.blocks
        name: Multihash | None = head
        while name is not None and name not in seen:
            if damage_of(store, name, "block") is not None:
                self._fetch(store, name, lambda remote, name=name: self._copy_block(remote, name))  # type: ignore[misc]
            hashed = self.dataset.chain.block(name)
            seen.add(name)
            blocks.append(hashed)
            self.progress(Progress(str(self.dataset.handle), "looking for damage", len(seen), None, "blocks"))
            name = hashed.block.prev_block_hash
        return blocks

    def _object(self, item: ObjectOfBlock) -> None:
        store = item.kind.store(self.dataset.layout)
        what = "slice" if item.kind is ObjectKind.DATA_SLICE else "checkpoint"
        if damage_of(store, item.name, what, item.size) is None:
            return

        def copy(remote: DatasetLayout) -> None:
            with item.kind.store(remote).open(item.name) as stream:
                store.insert_stream(stream, item.name, size=item.size)

        self._fetch(store, item.name, copy)

    def _copy_block(self, remote: DatasetLayout, name: Multihash) -> None:
        data = read_block(remote.blocks, name).data
        self.dataset.layout.blocks.insert_stream(io.BytesIO(data), name, size=len(data))

    def _fetch(self, store: ObjectStore, name: Multihash, copy: Callable[[DatasetLayout], None]) -> None:
        file = store.describe(name)
        for remote, layout in self._remotes:
            try:
                make_way_for(Path(file))
                copy(layout)
            except ObjectNotFound:
                self._add_finding(f"{remote} does not have it either", ObjectNotFound, file=file)
            except (OdfError, OSError) as error:
                cause = type(error) if isinstance(error, OdfError) else TransferError
                self._add_finding(f"{remote}: {error}", cause, getattr(error, "hint", None), file)
            else:
                self.repaired.append(file)
                return

    def _add_finding(
        self, message: str, cause: type[OdfError], hint: str | None = None, file: str | None = None
    ) -> None:
        self.findings.append(
            Finding(severity=Severity.WARNING, check="repair", message=message, file=file, hint=hint, code=cause.code)
        )


def _tag(reference: str) -> ReferenceName | None:
    name = ReferenceName.parse(reference)
    return name if name is not None and name.kind is ReferenceKind.TAG else None
