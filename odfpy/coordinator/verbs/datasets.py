"""`Workspace.datasets`: list, show, create, rename and delete datasets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from odfpy.chain.block import DatasetSnapshot, HashedBlock
from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.results import AddResult, DamagedDataset, DatasetHandle, DatasetSummary
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.verbs.arguments import with_checked_arguments
from odfpy.coordinator.verbs.context import WorkspaceContext
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias, all_of
from odfpy.errors import IntegrityError, OdfError, UsageError

if TYPE_CHECKING:
    from odfpy.coordinator.planned_datasets import PlannedDatasets
    from odfpy.coordinator.storage.config import Config
    from odfpy.coordinator.storage.signers import Signers


@with_checked_arguments
class DatasetRegistry:
    """The datasets of a workspace; `odfpy.query.resolver` resolves them at a block."""

    def __init__(self, context: WorkspaceContext) -> None:
        self._context = context
        self._storage = context.storage

    def all(self) -> list[DatasetSummary]:
        """Return all datasets, sorted by name.

        Raises:
            OdfError: a dataset is damaged; `survey` continues with the others.
        """
        summaries, damaged = self.survey()
        if damaged:
            raise damaged[0].error
        return summaries

    def survey(self, refs: str | Sequence[str] = ()) -> tuple[list[DatasetSummary], list[DamagedDataset]]:
        """Return the readable datasets, sorted by name, and the damaged ones.

        Args:
            refs: ids, names and patterns; all datasets if empty.

        Raises:
            DatasetNotFound: a name does not exist, or a pattern matches nothing.
        """
        named, damaged = self._storage.scan()
        refs = all_of(refs)
        if refs:
            chosen = {dataset.handle.id for dataset in self._storage.match(refs)}
            named, damaged = [dataset for dataset in named if dataset.handle.id in chosen], []
        summaries = []
        for dataset in named:
            try:
                summaries.append(_summary(dataset))
            except OdfError as error:
                damaged.append(DamagedDataset(str(dataset.handle), error))
        return summaries, damaged

    def summary(self, ref: str) -> DatasetSummary:
        """Return the summary of a dataset."""
        return _summary(self._storage.get_at(ref))

    def handle(self, ref: str) -> DatasetHandle:
        """Return id and name of a dataset.

        Raises:
            DatasetNotFound: the dataset does not exist; the message has a suggestion.
        """
        return self._storage.get(ref).handle

    def match(self, refs: str | Sequence[str]) -> list[DatasetHandle]:
        """Return the distinct datasets with the ids, names and patterns."""
        return [dataset.handle for dataset in self._storage.match(refs)]

    def state(self, ref: str) -> ChainState:
        """Return the state of a dataset's chain: schema, source, transform, watermark, licence..."""
        return self._storage.get_at(ref).state

    def log(self, ref: str) -> Iterator[HashedBlock]:
        """Yield the blocks of a dataset, newest first."""
        dataset = self._storage.get_at(ref)
        try:
            yield from dataset.chain.iter_blocks()
        except OdfError as error:
            raise dataset.named(error) from error

    def signers(self, ref: str) -> Signers:
        """Return the signers of a dataset's blocks."""
        from odfpy.coordinator.storage.signers import Signers

        return Signers(self._storage.get_at(ref))

    def snapshot(self, ref: str) -> DatasetSnapshot:
        """Return a manifest that would create a dataset like this one, as far as manifests can express it."""
        from odfpy.coordinator.manifests import snapshot_of

        dataset = self._storage.get_at(ref)
        return snapshot_of(dataset.handle.alias, dataset.state)

    # --- Creation and changes ---

    def load(
        self, paths: str | Path | Sequence[str | Path], *, recursive: bool = False, stdin: BinaryIO | None = None
    ) -> list[DatasetSnapshot]:
        """Read manifests from files, URLs, folders (`recursive`) and `-`, which is standard input.

        Args:
            paths: files, URLs, folders and `-`.
            recursive: whether to search folders.
            stdin: the stream for `-`.

        Raises:
            MalformedManifest: a manifest is invalid; the message names file, line and path.
        """
        from odfpy.coordinator.manifests import load

        return load(all_of(paths), recursive=recursive, stdin=stdin)

    def add(
        self,
        snapshots: Sequence[DatasetSnapshot],
        *,
        replace: bool = False,
        keep: bool = False,
        dry_run: bool = False,
        approve: bool = True,
    ) -> list[AddResult]:
        """Create datasets from snapshots, in dependency order.

        Args:
            snapshots: manifests, in any order.
            replace: whether to append the changes to existing datasets, whose history is retained.
            keep: whether to leave existing datasets unchanged, and create the others.
            dry_run: whether only to check; missing inputs are then remarks.
            approve: whether to approve their sources in this workspace; if not, use `sources.trust`.

        Raises:
            DatasetLocked: another process is writing to an existing dataset; nothing was added.
            OdfError: a dataset is invalid; nothing was added, unless a file could not be written.
        """
        _require_snapshots(snapshots)
        for event in (event for snapshot in snapshots for event in snapshot.metadata):
            query = getattr(event, "transform", None) or getattr(event, "preprocess", None)
            if query is not None:
                self._context.engines.expect(query.engine)
        from odfpy.coordinator.add import add

        return add(
            self._storage,
            snapshots,
            check=self._check,
            replace_existing=replace,
            keep_existing=keep,
            dry_run=dry_run,
            approve=approve,
        )

    def plan_delete(
        self,
        refs: str | Sequence[str] = (),
        *,
        all: bool = False,  # noqa: A002 - the option's name on the command line
        recursive: bool = False,
        force: bool = False,
    ) -> list[DatasetHandle]:
        """Return the datasets that `delete` would remove, derivatives first; see there for errors.

        Args:
            refs: names, ids or patterns of datasets.
            all: whether to delete all datasets.
            recursive: whether to include their derivatives.
            force: whether to delete datasets that others are derived from.
        """
        return [dataset.handle for dataset in self._doomed(refs, all=all, recursive=recursive, force=force)]

    def delete(
        self,
        refs: str | Sequence[str] = (),
        *,
        all: bool = False,  # noqa: A002 - the option's name on the command line
        recursive: bool = False,
        force: bool = False,
    ) -> list[DatasetHandle]:
        """Delete datasets.

        Args:
            refs: names, ids, patterns.
            all: whether to delete all datasets with a readable name.
            recursive: whether to include all datasets derived from them.
            force: whether to delete datasets that others are derived from, which can then neither be pulled nor
                verified.

        Raises:
            UsageError: other datasets are derived from them; the message names these.
            DatasetLocked: a dataset is being written to; none was deleted, unless the writer has just started.
            OdfError: the datasets are deleted, but some of their files could not be removed.
        """
        with self._storage.editing():
            doomed = self._doomed(refs, all=all, recursive=recursive, force=force)
            for dataset in doomed:  # check all locks first, so that nothing is deleted if one is held
                with dataset.writing():
                    pass  # not kept locked: there may be more datasets than a process may have open files
            left: list[Path] = []
            for dataset in doomed:
                with dataset.writing():
                    left += filter(None, [self._storage.delete(dataset)])
        if left:
            places = ", ".join(map(str, left))
            raise OdfError(
                f"The deleted datasets are no longer in the workspace, but some of their files are still in {places}",
                hint="There is no permission to remove them. Change the permissions, and run `odf gc`.",
            )
        return [dataset.handle for dataset in doomed]

    def rename(self, ref: str, new_name: str) -> DatasetHandle:
        """Rename a dataset; its id is unchanged.

        Raises:
            AlreadyExists: the name is in use.
        """
        alias = DatasetAlias.parse(new_name)
        if self._storage.has_no_name(ref):
            with self._storage.editing():
                return self._storage.restore_name(DatasetId.parse(ref), alias).handle
        with self._storage.editing(), self._storage.get(ref).writing() as dataset:
            return self._storage.rename(dataset, alias).handle

    def settings(self, ref: str) -> Config:
        """Return the settings of one root dataset, which are local to this workspace.

        Raises:
            UsageError: the dataset is derivative, or a copy, and has no settings.
        """
        from odfpy.coordinator.ingest.watermarks import settings_of

        return settings_of(self._storage.get(ref))

    # --- Helpers ---

    def _doomed(
        self,
        refs: str | Sequence[str],
        *,
        all: bool,  # noqa: A002 - the option's name on the command line
        recursive: bool,
        force: bool,
    ) -> list[StoredDataset]:
        from odfpy.coordinator.lineage.lineage import Lineage

        chosen = self._storage.datasets() if all else self._storage.match(refs)
        lineage = Lineage(self._storage)
        if recursive:
            chosen = lineage.with_dependents(chosen)
        ids = {dataset.handle.id for dataset in chosen}
        for dataset in () if force else chosen:
            others = [other for other in lineage.dependents_of(dataset.handle.id) if other.id not in ids]
            if others:
                raise UsageError(
                    f"{dataset.handle} is an input of {', '.join(map(str, others))}",
                    hint="--recursive also deletes these; --force keeps them, but they can no longer be pulled or"
                    " verified.",
                )
        return lineage.in_order(chosen, with_inputs=False)[::-1]

    def _check(self, state: ChainState, planned: PlannedDatasets) -> tuple[str, ...]:
        from odfpy.coordinator.transform.checks import check_sources, check_transform

        if state.set_transform is None:
            return check_sources(state, self._context.engines, self._storage)
        engines = self._context.engines
        return check_transform(state, engines, self._storage, planned.state_of, planned.absent, planned.schemas)


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
        inputs=tuple(dataset.input_ids),
        linked_files=state.linked_count,
        linked_bytes=state.linked_bytes,
    )


def _require_snapshots(given: object) -> None:
    from odfpy.chain.block import DatasetSnapshot

    several = given if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    for snapshot in several:
        if not isinstance(snapshot, DatasetSnapshot):
            raise UsageError(
                f"Datasets are made of snapshots, and {snapshot!r:.100} is a value of type {type(snapshot).__name__}",
                hint="`load` reads the snapshots in files: add(load([path])).",
            )
