"""Linked objects in a push, uploaded after the slices in rounds of their own; see `pull_links`.

The client declares in a header whether its copy is complete. If so, the server checks that all objects were uploaded
before its head moves. Otherwise, or without the header, as from the reference, the server's copy becomes a partial one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.links.linked_objects import linked_slices
from odfpy.chain.state import ChainState
from odfpy.data.hash_set import HashSet
from odfpy.data.link_filter import ALL
from odfpy.errors import IntegrityError
from odfpy.repository.objects import ObjectKind, ObjectOfBlock
from odfpy.repository.smart_transfer.incoming import Incoming, require_files
from odfpy.repository.smart_transfer.messages import ObjectFile
from odfpy.repository.transfer.linked import WantedFiles, lacking, require_columns, require_no_loss
from odfpy.repository.transfer.linked_names import linked_in

LINKS_HEADER: Final = "odf-linked-objects"
"""Header in the handshake of a client: it has `all` objects that rows link to, or `some`."""

HAS_ALL: Final = "all"
HAS_SOME: Final = "some"


# --- The client ---


@dataclass
class OfferedLinks:
    """The linked objects of pushed blocks that exist here.

    Attributes:
        elsewhere: number of objects that do not exist here, although current rows link to them.
    """

    source: DatasetLayout
    blocks: Sequence[HashedBlock]
    files: WantedFiles
    elsewhere: int = 0

    def portions(self) -> Iterator[list[ObjectOfBlock]]:
        """Yield the objects in portions, with their sizes.

        Raises:
            MissingLinkedObjects: a required object is missing.
            IntegrityError: an object has another size than its row records.
        """
        before = self.source.chain.in_order(self.blocks[0].block.prev_block_hash) if self._has_before else []
        base = ChainState()
        for hashed in before:
            base = base.after(hashed)
        require_columns(self.blocks, base, self.files.choice)
        missing = HashSet()
        for items in linked_in(linked_slices(self.blocks, base), self.source, self.files.choice, HashSet()):
            missing.add_hashes(item.name for item in lacking(items, self.source.data))
            there = [item for item in items if item.name not in missing]
            yield [replace(item, size=self.source.data.size(item.name)) for item in there]
        whole = [*before, *self.blocks]
        self.elsewhere = require_no_loss(missing, whole, self.source, self.files, "The copy here")

    @property
    def _has_before(self) -> bool:
        return self.blocks[0].block.prev_block_hash is not None


def link_headers(files: WantedFiles) -> dict[str, str]:
    """Return the headers for a client's handshake."""
    return {LINKS_HEADER: HAS_ALL if files.choice.is_whole and not files.may_lack else HAS_SOME}


# --- The server ---


@dataclass
class AcceptedLinks:
    """The linked objects that a push may upload.

    Attributes:
        incoming: the pushed blocks.
        staged: the dataset or staging folder that receives the files.
    """

    incoming: Incoming
    staged: DatasetLayout
    _names: HashSet | None = field(default=None, init=False)

    def find(self, file: ObjectFile, max_size: int) -> ObjectOfBlock | None:
        """Return the object offered by a client, None if no pushed row links to it.

        Args:
            file: the offered object.
            max_size: maximum size in bytes.

        Raises:
            IntegrityError: the object is too large, or its link is invalid; or slices are missing or damaged.
        """
        if file.object_type is not ObjectKind.DATA_SLICE:
            return None
        if self._names is None:
            # The slices have arrived: clients only learn about links from them. Their footers have not been checked
            # yet.
            require_files(self.incoming, self.staged)
            self._names = HashSet()
            for _ in self._portions(self._names):
                pass
        if file.physical_hash not in self._names:
            return None
        if file.size > max_size:
            raise IntegrityError(f"Object {file.physical_hash} has {file.size} bytes, {max_size} are allowed")
        return ObjectOfBlock(ObjectKind.DATA_SLICE, file.physical_hash, file.size, self.incoming.head)

    def lacking(self, *, has_all: bool) -> int:
        """Return the number of missing objects that current rows link to.

        Args:
            has_all: whether missing objects are an error.

        Raises:
            MissingLinkedObjects: objects are missing, and `has_all` is set.
            IntegrityError: an object has another size than its row records.
        """
        missing = HashSet()
        for items in self._portions(HashSet()):
            missing.add_hashes(item.name for item in lacking(items, self.staged.data))
        if not len(missing):
            return 0
        blocks, head = self.incoming.received, self.incoming.received_base.head
        before = [] if head is None else self.staged.chain.in_order(head)
        wanted = WantedFiles(may_lack=not has_all)
        return require_no_loss(missing, [*before, *blocks], self.staged, wanted, "What was pushed")

    def _portions(self, names: HashSet) -> Iterator[list[ObjectOfBlock]]:
        slices = linked_slices(self.incoming.received, self.incoming.received_base)
        return linked_in(slices, self.staged, ALL, names)
