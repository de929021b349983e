"""Approvals of sources: the sources that may run in this workspace (docs/adr/0028-approved-sources.md).

A source can act on the machine: a polling source fetches data, reads files and variables, and runs commands and images,
with the permissions of the user who pulls; the query of a source runs over ingested data. Datasets may come from other
users, for instance by a push. So a source runs only if exactly this source was approved: by `odf add` of its manifest
here, or by `odf source trust`. Hashes of approved sources are stored in `.odf/approved/<dataset>`, which is never
copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddPushSource, SetPollingSource, Source
from odfpy.chain.signatures import has_signatures, read_signatures
from odfpy.codec.canonical_json import canonical_json
from odfpy.codec.tree import to_tree
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.storage.workspace_folder import WorkspaceFolder
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import ActorId, DatasetId
from odfpy.errors import IngestError, OdfError
from odfpy.files import replace_file
from odfpy.values import dataclass


class SourceNotApproved(IngestError, code="E430"):
    """An unapproved source would run here."""


def runs_something(source: Source) -> bool:
    """Return whether a source runs anything; a push source without a query only reads the data passed to it."""
    return isinstance(source, SetPollingSource) or source.preprocess is not None


def fingerprint(source: Source) -> str:
    """Return the identity of a source: the SHA3-256 hash of its whole content."""
    return str(Multihash.of(canonical_json(to_tree(source))))


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approved sources of a workspace."""

    workspace_folder: WorkspaceFolder

    def has(self, dataset_id: DatasetId, source: Source) -> bool:
        """Return whether a source may run."""
        return not runs_something(source) or fingerprint(source) in self._known(dataset_id)

    def require(self, dataset: StoredDataset, source: Source) -> None:
        """Check that a source may run.

        Raises:
            SourceNotApproved: the source may not run.
        """
        if self.has(dataset.handle.id, source):
            return
        raise SourceNotApproved(
            f"The source of {dataset.handle} comes from another origin, and is not approved in this workspace",
            hint=f"`odf source trust {dataset.handle}` shows what it would do here, and approves it.",
        )

    def approve(self, dataset_id: DatasetId, sources: Iterable[Source]) -> None:
        """Approve sources, in addition to those already approved; requires `Storage.editing`."""
        known = self._known(dataset_id)
        self._write(dataset_id, known | {fingerprint(source) for source in sources if runs_something(source)}, known)

    def withdraw(self, dataset_id: DatasetId) -> bool:
        """Withdraw all approvals of a dataset, and return whether there were any; requires `Storage.editing`."""
        known = self._known(dataset_id)
        self._write(dataset_id, set(), known)
        return bool(known)

    # --- Files ---

    def _known(self, dataset_id: DatasetId) -> set[str]:
        if not self._folder.is_dir():
            self._begin()
        path = self._path(dataset_id)
        try:
            return set(path.read_text(encoding="ascii").split())
        except FileNotFoundError:
            return set()
        except (OSError, UnicodeDecodeError) as error:
            raise OdfError(f"Cannot read {path}: {error}", hint="Without the file, no source is approved.") from error

    def _write(self, dataset_id: DatasetId, wanted: set[str], known: set[str]) -> None:
        if wanted == known:
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if wanted:
            content = "".join(f"{line}\n" for line in sorted(wanted))
            replace_file(self._path(dataset_id), content.encode("ascii"), mode=0o600)
        else:
            self._path(dataset_id).unlink(missing_ok=True)

    @property
    def _folder(self) -> Path:
        return self.workspace_folder.odf / "approved"

    def _path(self, dataset_id: DatasetId) -> Path:
        return self._folder / dataset_id.multibase

    # --- Workspaces of earlier releases ---

    def _begin(self) -> None:
        """Approve the sources of a workspace created before approvals existed; runs once.

        Only sources that were set here are approved: those whose block is signed by the dataset's own key, which is
        only in this workspace; or all sources of a dataset whose key is here, if it has no signatures at all.
        """
        sources_by_dataset: list[tuple[DatasetId, list[Source]]] = []
        for entry in self.workspace_folder.entries():
            try:
                dataset = StoredDataset.load(entry, self.workspace_folder)
                if self.workspace_folder.keys.get(dataset.handle.id) is not None:
                    sources_by_dataset.append((dataset.handle.id, list(_set_here(dataset))))
            except OdfError:
                continue  # sources of damaged datasets are not approved
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for dataset_id, sources in sources_by_dataset:
            self.approve(dataset_id, sources)


def _set_here(dataset: StoredDataset) -> Iterator[Source]:
    wanted = dataset.state.sources
    if not wanted:
        return
    for hashed in dataset.chain.iter_blocks(dataset.state.head):
        event = hashed.block.event
        if isinstance(event, (SetPollingSource, AddPushSource)) and event in wanted and _is_ours(dataset, hashed):
            yield event


def _is_ours(dataset: StoredDataset, hashed: HashedBlock) -> bool:
    side = dataset.layout.side
    if side is None or not has_signatures(side):
        return True
    signed = read_signatures(side, dataset.handle.id, hashed)
    return signed is not None and ActorId.owner_of(dataset.handle.id) in signed.signers
