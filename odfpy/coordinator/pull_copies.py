"""Pulls of copies: datasets that are pulled from another location, with tags and inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from odfpy.chain.references import ReferenceName
from odfpy.coordinator.requests import PullRequest
from odfpy.coordinator.storage.commit import with_time
from odfpy.coordinator.storage.pull_observer import NOBODY, PullObserver
from odfpy.coordinator.storage.references import without
from odfpy.coordinator.storage.results import ProgressSink, PullOutcome, PullResult
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transfer.outcomes import with_note_on_credentials
from odfpy.coordinator.transfer.transfers import CopyLimits, Transfers
from odfpy.dataset.identity import DatasetId
from odfpy.errors import OdfError, UsageError
from odfpy.http.url import without_user
from odfpy.repository.reference_transfer import ReferenceNotThere
from odfpy.repository.registry import resolve_remote
from odfpy.stages import stage


@dataclass(frozen=True, slots=True)
class CopyPuller:
    """The part of a pull that contacts other locations.

    Attributes:
        storage: the workspace.
        request: the request.
        progress: called with the progress.
        observer: is notified of new datasets.
    """

    storage: Storage
    request: PullRequest
    progress: ProgressSink
    observer: PullObserver = NOBODY

    @property
    def transfers(self) -> Transfers:
        """Return the transfers to and from other locations."""
        return Transfers(self.storage)

    @property
    def limits(self) -> CopyLimits:
        """Return the limits of copies, as requested."""
        return CopyLimits(force=self.request.force, future=self.request.overrides.future, files=self.request.choice)

    def pull_from(self, dataset: StoredDataset, url: str) -> PullResult:
        """Update an existing copy from its source."""
        with dataset.writing() as locked, stage("transfer"):
            result = self.transfers.pull(locked, url, self.limits, progress=self.progress)
        if dataset.handle.id not in self.storage.keys:
            return result
        remote = self.transfers.aliases(dataset).shown("pull")[0]
        own = f"`odf repo forget {dataset.handle} {remote} --pull` restores its own source or query"
        return replace(result, notes=(*result.notes, f"it was created here, but is fetched from {remote}: {own}"))

    def pull_remote(self, ref: str) -> Iterator[PullResult]:
        """Pull a dataset from another location; with `recursive` also its inputs in the same location."""
        result = with_time(without_user(ref), partial(self._pull_new, ref))
        self._notify_created(result)
        yield with_note_on_credentials(result, ref) if result.old_head is None else result
        if result.error is None and self.request.tag_names:
            copy = self.storage.get(result.name)
            yield from (self.pull_tag(copy, name, remote=ref) for name in self.request.tag_names)
        if result.error is None and self.request.recursive:
            yield from self._pull_inputs(result.name, ref)

    def _pull_inputs(self, name: str, ref: str) -> Iterator[PullResult]:
        """Pull the inputs of a copy that the workspace lacks, and their inputs."""
        tried: set[DatasetId] = set()
        missing = self.transfers.missing_inputs(self.storage.get(name), ref)
        while missing:
            item = missing.pop(0)
            if item.dataset_id in tried:
                continue
            tried.add(item.dataset_id)
            try:
                ref = item.find(self.transfers.registry)
            except OdfError as error:
                yield PullResult(name=item.name, outcome=PullOutcome.FAILED, error=error)
                continue
            result = with_time(without_user(ref), partial(self._pull_new, ref, item.dataset_id))
            self._notify_created(result)
            yield result
            if result.error is None:
                missing += self.transfers.missing_inputs(self.storage.get(result.name), ref)

    def pull_tag(
        self, dataset: StoredDataset, name: ReferenceName, *, remote: str | None = None, skip: bool = False
    ) -> PullResult:
        """Fetch a tag of a copy.

        Args:
            dataset: the copy.
            name: the tag.
            remote: the other location; None for the one that the copy is pulled from.
            skip: whether to skip datasets that are not copies, and copies whose remote lacks the tag.
        """

        def pull() -> PullResult:
            transfers = self.transfers
            url = resolve_remote(remote, transfers.registry) if remote else transfers.pull_url(dataset)
            if url is None and skip:
                return without(dataset, name, "it is not a copy")
            if url is None:
                hint = f"odf tag {dataset.handle}"
                raise UsageError("tags can be pulled only for copies", hint=hint)
            limits, progress = self.limits, self.progress
            with dataset.writing() as locked:
                try:
                    return transfers.pull_reference(locked, url, name, limits, progress=progress)
                except ReferenceNotThere:
                    if not skip:
                        raise
                    return without(dataset, name, f"{without_user(url)} has no {name}")

        return with_time(f"{dataset.handle} {name}", pull)

    def _notify_created(self, result: PullResult) -> None:
        if result.error is None and self.observer is not NOBODY:
            self.observer.finished(self.storage.get(result.name), result)

    def _pull_new(self, ref: str, expected_id: DatasetId | None = None) -> PullResult:
        with stage("transfer"):
            return self.transfers.clone(
                ref,
                as_name=self.request.alias if expected_id is None else None,
                expected_id=expected_id,
                limits=self.limits,
                progress=self.progress,
            )

    @staticmethod
    def found_nowhere(name: ReferenceName, count: int) -> PullResult:
        """Return the result for a tag that none of several datasets has."""
        missing = ReferenceNotThere(f"None of the {count} datasets is a copy of one with a {name}")
        return PullResult(name=str(name), outcome=PullOutcome.FAILED, error=missing)
