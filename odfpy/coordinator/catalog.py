"""The datasets of a workspace: looking at them, making and changing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from odfpy.chain.block import DatasetSnapshot, HashedBlock
from odfpy.chain.state import ChainState
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.storage.results import AddResult, DamagedDataset, DatasetHandle, DatasetSummary, LineageNode
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.errors import IntegrityError, OdfError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.chain.references import ReferenceKind
    from odfpy.coordinator.add import PlannedDatasets
    from odfpy.coordinator.branches.diff import BranchDiff
    from odfpy.coordinator.branches.merge import MergeResult
    from odfpy.coordinator.ingest.source_actions import KnownSource
    from odfpy.coordinator.ingest.source_report import SourceReport
    from odfpy.coordinator.lineage.graph import DependencyCycle
    from odfpy.coordinator.storage.config import Config
    from odfpy.coordinator.storage.references import Reference
    from odfpy.coordinator.storage.signers import Signers
    from odfpy.engine.contract import AnalyzeResponseSuccess
    from odfpy.engine.registry import EngineRegistry
    from odfpy.provenance.model import Provenance


class Catalog:
    """The datasets of a workspace. `Housekeeping` adds maintenance, `odfpy.Workspace` the verbs that move data.

    Attributes:
        storage: the workspace's files.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    @property
    def root(self) -> Path:
        """The folder that the person works in."""
        return self.storage.root

    @property
    def odf(self) -> Path:
        """The folder `.odf` in it."""
        return self.storage.odf

    @cached_property
    def config(self) -> Config:
        """Settings, from this workspace, the folders above it, the user, and defaults."""
        from odfpy.coordinator.storage.config import Config
        from odfpy.coordinator.transfer.transfer_limits import put_in_force

        return put_in_force(Config.load(self.root))

    def settings_of(self, ref: str) -> Config:
        """Settings of one root dataset, which stay with it here.

        Raises:
            UsageError: the dataset is derivative, or a copy, and has none.
        """
        from odfpy.coordinator.ingest.watermarks import settings_of

        return settings_of(self.storage.get(ref))

    @cached_property
    def engines(self) -> EngineRegistry:
        """The engines that queries can name."""
        from odfpy.coordinator.transform.engines import engine_registry

        return engine_registry(self.storage, self.config)

    # --- Looking ---

    def datasets(self) -> list[DatasetSummary]:
        """All datasets, in the order of their names.

        Raises:
            OdfError: one of them is damaged; `survey` goes on with the others.
        """
        found, damaged = self.survey()
        if damaged:
            raise damaged[0].error
        return found

    def survey(self) -> tuple[list[DatasetSummary], list[DamagedDataset]]:
        """The datasets that can be read, in the order of their names, and those that cannot."""
        named, damaged = self.storage.scan()
        found = []
        for dataset in named:
            try:
                found.append(_summary(dataset))
            except OdfError as error:
                damaged.append(DamagedDataset(str(dataset.handle), error))
        return found, damaged

    def summary(self, ref: str) -> DatasetSummary:
        """One dataset's line of the list."""
        return _summary(self.storage.look(ref))

    def resolve(self, ref: str) -> DatasetHandle:
        """Id and name of a dataset.

        Raises:
            DatasetNotFound: with a suggestion.
        """
        return self.storage.get(ref).handle

    def match(self, refs: Sequence[str]) -> list[DatasetHandle]:
        """The datasets of some ids, names and patterns, each once."""
        return [dataset.handle for dataset in self.storage.match(list(refs))]

    def state(self, ref: str) -> ChainState:
        """Return what the dataset's chain amounts to: schema, source, transform, watermark, licence..."""
        return self.storage.look(ref).state

    def log(self, ref: str) -> Iterator[HashedBlock]:
        """The blocks of a dataset, newest first."""
        dataset = self.storage.look(ref)
        try:
            yield from dataset.chain.iter_blocks()
        except OdfError as error:
            raise dataset.named(error) from error

    def signers(self, ref: str) -> Signers:
        """Looks up who has signed the blocks of a dataset."""
        from odfpy.coordinator.storage.signers import Signers

        return Signers(self.storage.look(ref))

    def references(self, ref: str, kind: ReferenceKind) -> list[Reference]:
        """The branches or tags of a dataset, in the order of their names."""
        from odfpy.coordinator.storage.references import references

        return list(references(self.storage.get(ref), kind))

    def create_reference(self, ref: str, kind: ReferenceKind, name: str, block: str | None = None) -> Reference:
        """A new branch or tag.

        Args:
            ref: the dataset.
            kind: branch or tag.
            name: its name.
            block: where: a tag, branch, number or hash; the head by default.

        Raises:
            AlreadyExists: there is one of that name, elsewhere.
            BlockNotFound, InvalidValue: no such block, or not a name.
        """
        from odfpy.coordinator.storage.references import create

        with self.storage.get(ref).writing() as dataset:
            return create(dataset, kind, name, block)

    def delete_reference(self, ref: str, kind: ReferenceKind, name: str) -> Multihash:
        """Remove a branch or tag; what it led to stays until `odf gc`. Gives back the block where it was.

        Raises:
            NoSuchReference: with a suggestion.
        """
        from odfpy.coordinator.storage.references import delete

        with self.storage.get(ref).writing() as dataset:
            return delete(dataset, kind, name)

    def diff(self, ref: str, branch: str) -> BranchDiff:
        """Return what a branch would add to the head of a dataset.

        Raises:
            NoSuchReference: with a suggestion.
        """
        from odfpy.coordinator.branches.diff import diff

        return diff(self.storage.get(ref), branch)

    def staged_rows(self, found: BranchDiff, limit: int) -> pa.Table:
        """The first rows that a branch would add."""
        from odfpy.coordinator.branches.diff import staged_rows

        return staged_rows(self.storage.get(found.handle.id), found, limit)

    def merge(self, ref: str, branch: str, *, fast_forward_only: bool = False) -> MergeResult:
        """Take over what is on a branch, which is deleted then; `delete_reference` drops it instead.

        Args:
            ref: the dataset.
            branch: what to take over.
            fast_forward_only: refuse where the head has moved on, and events would have to be applied again.

        Raises:
            MergeConflict: they cannot be applied again; nothing has changed.
            NoSuchReference: with a suggestion.
        """
        from odfpy.coordinator.branches.merge import merge

        with self.storage.get(ref).writing() as dataset:
            return merge(self.storage, dataset, branch, fast_forward_only=fast_forward_only)

    def snapshot(self, ref: str) -> DatasetSnapshot:
        """A manifest that would make a dataset like this one: what is in force of what manifests can say."""
        dataset = self.storage.look(ref)
        state = dataset.state
        sources = (state.polling_source, *state.push_sources)
        events = (state.set_vocab, *sources, state.set_transform, state.info, state.license, state.attachments)
        return DatasetSnapshot(dataset.handle.alias, state.kind, tuple(event for event in events if event is not None))

    def lineage(self, ref: str) -> LineageNode:
        """A dataset and what it is derived from, as far as that is in the workspace, with watermarks."""
        return Lineage(self.storage).tree(self.storage.get(ref).handle.id)

    def circle_below(self, ref: str) -> DependencyCycle | None:
        """An error that shows a circle that a dataset is in, or is derived from, and how that is mended."""
        return Lineage(self.storage).circle_below(self.storage.get(ref).handle.id)

    def held_back(self) -> dict[DatasetId, tuple[DatasetHandle, ...]]:
        """The datasets at which the watermark of each derivative waits, through all levels; see `LineageNode`."""
        found = {}
        lineage = Lineage(self.storage)
        for dataset in self.storage.datasets():
            with suppress(OdfError):  # what is damaged is told by `survey`
                found[dataset.handle.id] = lineage.tree(dataset.handle.id).held_back_by
        return found

    def source(self, ref: str, *, num_commits: int = 5) -> SourceReport:
        """The sources of a root dataset, how far they are taken in, and the last commits of data, newest first.

        Raises:
            UsageError: the dataset is derivative.
        """
        from odfpy.coordinator.ingest.source_report import source_report
        from odfpy.coordinator.transfer.remotes import Remotes

        dataset = self.storage.get(ref)
        aliases = Remotes.aliases(dataset).list("pull")
        return source_report(dataset, num_commits, copied_from=next(iter(aliases), None))

    def analyze(self, ref: str) -> AnalyzeResponseSuccess | None:
        """Return what the engine says of a derivative's query; None when the schema of an input is not known yet.

        Raises:
            UsageError: the dataset is not derivative.
        """
        from odfpy.coordinator.transform.analysis import analyze

        dataset = self.storage.get(ref)
        if dataset.state.set_transform is None:
            raise UsageError(f"{dataset.handle} has no query: it is a root dataset")
        return analyze(self.storage, self.engines, dataset.state.set_transform, dataset.state, self._state_of)

    def provenance(
        self, ref: str, offset: int, *, column: str | None = None, depth: int | None = None, check: bool = True
    ) -> Provenance:
        """Return where a row comes from: the rows that it is made of, through all datasets that it is derived from.

        Args:
            ref: the dataset of the row.
            offset: the row.
            column: of columns, only what this one comes from is told.
            depth: how many derivatives are followed, one behind the other; all by default.
            check: replay the cited rows alone, to see whether they give the row again.

        Raises:
            NoSuchRow, NoSuchColumn: the dataset has none of that offset or name.
            UnknownProvenance: it cannot be told.
            DatasetNotFound, InputDiverged: an input is not in the workspace, or not as it was.
        """
        from odfpy.coordinator.provenance.trace import row_provenance

        return row_provenance(self.storage, self.engines, ref, offset, column=column, depth=depth, check=check)

    def inputs(self, ref: str) -> list[DatasetHandle | DatasetId]:
        """Return the direct inputs of a dataset; of inputs that are not in the workspace only the id is known."""
        return [self._handle_of(item) for item in self.storage.get(ref).input_ids]

    def dependents(self, ref: str) -> list[DatasetHandle]:
        """The datasets that are directly derived from a dataset."""
        return Lineage(self.storage).dependents_of(self.storage.get(ref).handle.id)

    # --- Making, changing ---

    def load(
        self, paths: Sequence[str | Path], *, recursive: bool = False, stdin: BinaryIO | None = None
    ) -> list[DatasetSnapshot]:
        """Manifests of files, URLs, folders (`recursive`) and `-`, which is standard input.

        Raises:
            MalformedManifest: the message names file, line and path.
        """
        from odfpy.coordinator.manifests import load

        return load(paths, recursive=recursive, stdin=stdin)

    def add(
        self,
        snapshots: Sequence[DatasetSnapshot],
        *,
        replace: bool = False,
        dry_run: bool = False,
        approve: bool = True,
    ) -> list[AddResult]:
        """Make datasets of snapshots, in dependency order.

        Args:
            snapshots: manifests, in any order.
            replace: append what has changed to datasets that exist; their history stays.
            dry_run: only check; inputs that are not there are remarked on.
            approve: let their sources run on this machine; else they run once `trust_source` has approved them.

        Raises:
            OdfError: what is wrong with one of them; nothing was added.
        """
        for event in (event for snapshot in snapshots for event in snapshot.metadata):
            query = getattr(event, "transform", None) or getattr(event, "preprocess", None)
            if query is not None:
                self.engines.expect(query.engine)
        from odfpy.coordinator.add import add

        return add(
            self.storage,
            snapshots,
            check=self._check,
            replace_existing=replace,
            dry_run=dry_run,
            approve=approve,
        )

    def sources(self, refs: Sequence[str] = ()) -> list[KnownSource]:
        """The sources of datasets, what each does on this machine, and whether it may.

        Args:
            refs: names, ids and patterns; all datasets by default.

        Raises:
            UsageError, NotFound: a reference makes no sense.
        """
        from odfpy.coordinator.ingest.source_actions import known_sources

        datasets = self.storage.match(list(refs)) if refs else self.storage.scan()[0]
        return [known for dataset in datasets for known in known_sources(dataset)]

    def trust_source(self, ref: str) -> list[KnownSource]:
        """Let the sources run that a dataset has now; others that it gets later have to be approved anew.

        Raises:
            NotFound: there is no such dataset.
        """
        from odfpy.coordinator.storage.approvals import sources_of

        dataset = self.storage.get(ref)
        self.storage.approvals.approve(dataset.handle.id, sources_of(dataset))
        return self.sources([str(dataset.handle.id)])

    def untrust_source(self, ref: str) -> bool:
        """Let no source of a dataset run on this machine; tells whether one might. Raises as `trust_source`."""
        return self.storage.approvals.withdraw(self.storage.get(ref).handle.id)

    # --- Pieces ---

    def _handle_of(self, dataset_id: DatasetId) -> DatasetHandle | DatasetId:
        try:
            return self.storage.get(dataset_id).handle
        except OdfError:
            return dataset_id

    def _state_of(self, dataset_id: DatasetId) -> ChainState:
        return self.storage.get(dataset_id).state

    def _check(self, state: ChainState, planned: PlannedDatasets) -> tuple[str, ...]:
        from odfpy.coordinator.transform.checks import check_sources, check_transform

        if state.set_transform is None:
            return check_sources(state, self.engines, self.storage)
        return check_transform(state, self.engines, self.storage, planned.state_of, planned.absent, planned.schemas)


def _summary(dataset: StoredDataset) -> DatasetSummary:
    state = dataset.state
    if state.head is None:
        raise IntegrityError(f"{dataset.handle} has an empty chain")
    return DatasetSummary(
        handle=dataset.handle,
        kind=state.kind,
        head=state.head,
        num_blocks=state.sequence_number + 1,
        num_records=state.num_records,
        data_bytes=state.data_bytes,
        watermark=state.watermark,
        last_data_time=state.last_data_time,
    )
