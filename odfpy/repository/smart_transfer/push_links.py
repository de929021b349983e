"""Objects that rows link to, in a push: they go after the slices, in rounds of their own; see `pull_links`.

The client says with a header whether its copy has all of them. If so, the server sees to it that they have come before
its head moves; if not, or where nothing is said, as by the reference, its copy becomes one that has some files only.
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
"""Says in the handshake of a client whether it has all objects that rows link to: `all`, or `some`."""

HAS_ALL: Final = "all"
HAS_SOME: Final = "some"


# --- The client ---


@dataclass
class OfferedLinks:
    """The linked objects of blocks that are pushed, those that are here.

    Attributes:
        elsewhere: how many are not, though current rows link to them.
    """

    source: DatasetLayout
    blocks: Sequence[HashedBlock]
    files: WantedFiles
    elsewhere: int = 0

    def portions(self) -> Iterator[list[ObjectOfBlock]]:
        """Yield them in portions, with their sizes.

        Raises:
            MissingLinkedObjects: one is not here that should be.
            IntegrityError: one has another size than its row says.
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


def says_of_links(files: WantedFiles) -> dict[str, str]:
    """The headers of a client's handshake."""
    return {LINKS_HEADER: HAS_ALL if files.choice.is_whole and not files.may_lack else HAS_SOME}


# --- The server ---


@dataclass
class AcceptedLinks:
    """The linked objects that a push may bring.

    Attributes:
        incoming: its blocks.
        staged: where its files come.
    """

    incoming: Incoming
    staged: DatasetLayout
    _names: HashSet | None = field(default=None, init=False)

    def find(self, file: ObjectFile, max_size: int) -> ObjectOfBlock | None:
        """The object that a client offers, None if no row that is pushed links to it.

        Args:
            file: the object.
            max_size: bytes that it may have.

        Raises:
            IntegrityError: it is too large, or a row links to what cannot be; slices have not come or are damaged.
        """
        if file.object_type is not ObjectKind.DATA_SLICE:
            return None
        if self._names is None:
            # The slices are here: a client learns of links from nothing else. Nobody has looked at their footers yet.
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
        """Count the objects that have not come, though current rows link to them.

        Args:
            has_all: whether that is an error.

        Raises:
            MissingLinkedObjects: some have not come.
            IntegrityError: one has another size than its row says.
        """
        missing = HashSet()
        for items in self._portions(HashSet()):
            missing.add_hashes(item.name for item in lacking(items, self.staged.data))
        if not len(missing):
            return 0
        blocks, head = self.incoming.came, self.incoming.came_base.head
        before = [] if head is None else self.staged.chain.in_order(head)
        wanted = WantedFiles(may_lack=not has_all)
        return require_no_loss(missing, [*before, *blocks], self.staged, wanted, "What was pushed")

    def _portions(self, names: HashSet) -> Iterator[list[ObjectOfBlock]]:
        slices = linked_slices(self.incoming.came, self.incoming.came_base)
        return linked_in(slices, self.staged, ALL, names)
