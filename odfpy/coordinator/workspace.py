"""The workspace: every verb of the coordinator, for programs and for the command line alike.

    >>> import odfpy
    >>> workspace = odfpy.Workspace.open(".")
    >>> for result in workspace.pull(all=True):
    ...     print(result.name, result.outcome.value, result.num_records)

Datasets are named by text: an alias (`com.example.rates`), an id (`did:odf:f...`), or where several are meant a
pattern (`com.example.%`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.coordinator.housekeeping import check_choice
from odfpy.coordinator.ingest.allowed import NOTHING, Allowed
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.questions import Questions
from odfpy.coordinator.storage.commit import with_time
from odfpy.coordinator.storage.results import (
    DamagedDataset,
    ProgressSink,
    PullOutcome,
    PullResult,
    silent,
)
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.errors import AlreadyExists, OdfError

if TYPE_CHECKING:
    from odfpy.coordinator.dry_run import PullPlan
    from odfpy.coordinator.pull import Puller
    from odfpy.coordinator.transfer.remotes import Remotes
    from odfpy.data.timestamp import Timestamp
    from odfpy.engine.worker.messages import Status
    from odfpy.repository.registry import RepositoryRegistry


def _damaged(dataset: DamagedDataset) -> PullResult:
    return PullResult(name=dataset.name, outcome=PullOutcome.FAILED, error=dataset.error)


class Workspace(Questions):
    """A folder with datasets in it."""

    @classmethod
    def init(cls, folder: str | Path = ".") -> Workspace:
        """Make a workspace in a folder, which is made if need be.

        Raises:
            AlreadyExists: the folder has one.
        """
        from odfpy.coordinator.template import lay_down

        root = Path(folder).resolve()
        storage = Storage(root)
        if (storage.odf / "version").exists():
            raise AlreadyExists(f"There is a workspace in {root} already")
        try:
            root.mkdir(parents=True, exist_ok=True)
            lay_down(root)
        except OSError as error:
            raise OdfError(f"Cannot make a workspace in {root}: {error.strerror}") from error
        return cls(Storage.find(root))

    @classmethod
    def open(cls, folder: str | Path = ".") -> Workspace:
        """The workspace that a folder is in.

        Raises:
            WorkspaceNotFound: neither the folder nor any above it has one.
        """
        return cls(Storage.find(Path(folder)))

    def __repr__(self) -> str:
        return f"Workspace({str(self.root)!r})"

    @cached_property
    def remotes(self) -> Remotes:
        """Transfers to and from other places."""
        from odfpy.coordinator.transfer.remotes import Remotes

        return Remotes(self.storage)

    @property
    def repositories(self) -> RepositoryRegistry:
        """The named repositories."""
        return self.remotes.registry

    def engine_status(self) -> Status | None:
        """Return what the Spark engine is doing, None when none is running."""
        from odfpy.engine.worker.admin import engine_status

        return engine_status(self.storage.run)

    def engine_stop(self, *, force: bool = False) -> Status | None:
        """End the Spark engine; gives back what it was, None when none was running."""
        from odfpy.engine.worker.admin import stop_engine

        return stop_engine(self.storage.run, force=force)

    # --- Data in ---

    def pull(
        self,
        refs: Sequence[str] = (),
        *,
        all: bool = False,  # noqa: A002 - the word of the command line
        recursive: bool = False,
        force: bool = False,
        fetch_uncacheable: bool = False,
        as_name: str | None = None,
        reset_derivatives: bool = False,
        branch: str | None = None,
        tags: Sequence[str] = (),
        allow_retractions: bool = False,
        allow_future: bool = False,
        progress: ProgressSink = silent,
    ) -> Iterator[PullResult]:
        """Bring datasets up to date, in dependency order.

        Args:
            refs: names, ids, patterns, remote references (`repository/name`, `repository/pattern%`), URLs.
            all: every dataset of the workspace.
            recursive: also what they are derived from.
            force: fetch sources again; overwrite copies that have diverged.
            fetch_uncacheable: also fetch sources again that do not tell versions apart.
            as_name: name of a dataset that comes from elsewhere.
            reset_derivatives: make derivatives again whose inputs have another history now.
            branch: stage what is new there instead of moving the head; see `diff` and `merge`.
            tags: also these tags, of copies.
            allow_retractions: let a snapshot retract any number of rows.
            allow_future: let blocks be written and copied that are of the future.
            progress: is told how far the work is.

        Yields:
            One result a dataset; one that failed has `error` set.

        Raises:
            UsageError, NotFound: a reference makes no sense; nothing has been pulled then.
        """
        check_choice("pull", refs, all=all)
        allowed = Allowed(allow_retractions, allow_future)
        puller = self._puller(
            progress, recursive, force, fetch_uncacheable, as_name, reset_derivatives, branch, tags, allowed
        )
        chosen, nameless = self._chosen(refs, all=all)
        puller = replace(puller, options=replace(puller.options, everything=all))
        return chain(map(_damaged, nameless), puller.pull(chosen))

    def plan_pull(
        self,
        refs: Sequence[str] = (),
        *,
        all: bool = False,  # noqa: A002 - the word of the command line
        recursive: bool = False,
        force: bool = False,
        fetch_uncacheable: bool = False,
        as_name: str | None = None,
        reset_derivatives: bool = False,
        allow_retractions: bool = False,
        allow_future: bool = False,
        progress: ProgressSink = silent,
    ) -> Iterator[PullPlan]:
        """Return what `pull` would do with the same arguments: nothing is fetched, changed or locked.

        Yields:
            One plan a dataset, in the order of the pull; one that would fail has `error` set, or a note.

        Raises:
            UsageError, NotFound: a reference makes no sense.
        """
        from odfpy.coordinator.dry_run import DryRun

        check_choice("pull", refs, all=all)
        allowed = Allowed(allow_retractions, allow_future)
        puller = self._puller(
            progress, recursive, force, fetch_uncacheable, as_name, reset_derivatives, allowed=allowed
        )
        chosen, nameless = self._chosen(refs, all=all)
        puller = replace(puller, options=replace(puller.options, everything=all))
        return DryRun(puller).plan(chosen, nameless)

    def _puller(
        self,
        progress: ProgressSink,
        recursive: bool,
        force: bool,
        fetch_uncacheable: bool,
        as_name: str | None,
        reset_derivatives: bool,
        branch: str | None = None,
        tags: Sequence[str] = (),
        allowed: Allowed = NOTHING,
    ) -> Puller:
        from odfpy.coordinator.pull import Puller
        from odfpy.coordinator.pull_options import pull_options

        options = pull_options(
            self.config,
            recursive=recursive,
            force=force,
            fetch_uncacheable=fetch_uncacheable,
            as_name=as_name,
            reset_derivatives=reset_derivatives,
            branch=branch,
            tags=tags,
            allowed=allowed,
        )
        return Puller(self.storage, self.engines, self.remotes, options, progress)

    def _chosen(self, refs: Sequence[str], *, all: bool) -> tuple[list[str], list[DamagedDataset]]:  # noqa: A002
        """Return what to pull, and what cannot even be named."""
        if not all:
            from odfpy.coordinator.transfer.remote_patterns import expand

            return list(expand(refs, self.storage, self.repositories)), []
        named, nameless = self.storage.scan()
        return [str(dataset.handle.id) for dataset in named], nameless

    def set_watermark(self, ref: str, watermark: Timestamp) -> PullResult:
        """Declare that no row at or before a time will come to a root dataset.

        Raises:
            UsageError: the dataset is derivative, or a copy: its watermark follows from others.
            WatermarkWentBack: the watermark is later already.
        """
        from odfpy.coordinator.ingest.watermarks import set_watermark

        with self.storage.get(ref).writing() as dataset:
            return set_watermark(dataset, watermark)

    def ingest(
        self,
        ref: str,
        files: Sequence[str | Path] = (),
        *,
        stdin: BinaryIO | None = None,
        source_name: str | None = None,
        event_time: Timestamp | None = None,
        input_format: str | None = None,
        branch: str | None = None,
        allow_retractions: bool = False,
        progress: ProgressSink = silent,
    ) -> Iterator[PullResult]:
        """Take files, or a stream, into a push source; one commit each, made as the results are asked for.

        Args:
            ref: the dataset.
            files: files, in this order.
            stdin: a stream to take in after them.
            source_name: which push source, where there are several.
            event_time: event time of rows that have none; the time of the ingest by default.
            input_format: format of the input where it is not that of the source (csv, json, ndjson, parquet).
            branch: stage what is new there instead of moving the head; see `diff` and `merge`.
            allow_retractions: let a snapshot retract any number of rows.
            progress: is told how far the work is.

        Raises:
            OdfError: the file at fault was not taken in, nor any after it.
        """
        from odfpy.coordinator.ingest.push_ingest import ingest

        return ingest(
            self.storage,
            self.engines,
            ref,
            files=[Path(file) for file in files],
            stdin=stdin,
            source_name=source_name,
            event_time=event_time,
            input_format=input_format,
            branch=branch,
            allowed=Allowed(retractions=allow_retractions),
            progress=progress,
        )

    def watch(
        self,
        ref: str,
        folder: str | Path,
        *,
        pattern: str = "*",
        source_name: str | None = None,
        event_time: Timestamp | None = None,
        input_format: str | None = None,
        settle: float | None = None,
        pause: Callable[[], None] | None = None,
        allow_retractions: bool = False,
        progress: ProgressSink = silent,
    ) -> Iterator[PullResult]:
        """Take in the files of a folder as they come, each once, until interrupted while waiting.

        Args:
            ref: the dataset.
            folder: where files come; they are neither moved nor changed.
            pattern: names of the files that are meant, such as `*.csv`.
            source_name: which push source, where there are several.
            event_time: event time of rows that have none; the time of the ingest by default.
            input_format: format of the files where it is not that of the source (csv, json, ndjson, parquet).
            settle: seconds for which a file must not change before it is taken in; one by default.
            pause: waits between two looks at the folder; a second by default. KeyboardInterrupt in it ends the watch.
            allow_retractions: let a snapshot retract any number of rows.
            progress: is told how far the work is.

        Yields:
            One result for each file; one that failed has `error` set, and is left alone until it changes.
        """
        from odfpy.coordinator.ingest.watch import INTERVAL, SETTLE, Watch

        return Watch(
            storage=self.storage,
            engines=self.engines,
            ref=ref,
            folder=Path(folder),
            pattern=pattern,
            source_name=source_name,
            event_time=event_time,
            input_format=input_format,
            settle=SETTLE if settle is None else settle,
            pause=pause or partial(time.sleep, INTERVAL),
            allowed=Allowed(retractions=allow_retractions),
            progress=progress,
        ).run()

    # --- Data out; `Questions` has more ---

    def push(
        self,
        refs: Sequence[str] = (),
        *,
        to: str | None = None,
        all: bool = False,  # noqa: A002 - the word of the command line
        recursive: bool = False,
        force: bool = False,
        public: bool = False,
        branches: Sequence[str] = (),
        tags: Sequence[str] = (),
        progress: ProgressSink = silent,
    ) -> Iterator[PullResult]:
        """Copy datasets to a repository or URL, which is remembered as the push alias.

        Args:
            refs: names, ids, patterns.
            to: `repository/name`, a repository, a path or a URL; the push alias by default.
            all: every dataset of the workspace.
            recursive: also what they are derived from.
            force: overwrite a copy that has diverged.
            public: let everybody read what is new on a node.
            branches: also these branches; of several datasets, those that have them.
            tags: also these tags, the same.
            progress: is told how far the work is.

        Raises:
            NoSuchReference: none of several datasets has a branch or tag; nothing was pushed.
        """
        from odfpy.coordinator.storage.references import has_reference, require_in_one, without

        check_choice("push", refs, all=all)
        datasets, nameless = self.storage.scan() if all else (self.storage.match(list(refs)), [])
        lineage = Lineage(self.storage)
        datasets = lineage.in_order(datasets, with_inputs=recursive)
        several = len(datasets) > 1
        extras = [ReferenceName.of(ReferenceKind.BRANCH, name) for name in branches]
        extras += [ReferenceName.of(ReferenceKind.TAG, name) for name in tags]
        if several:
            require_in_one(datasets, extras)

        def pushed(dataset: StoredDataset) -> Iterator[PullResult]:
            circle = lineage.circle_of(dataset.handle.id)
            if circle is not None:  # nobody could bring it up to date
                yield PullResult(name=str(dataset.handle), outcome=PullOutcome.FAILED, error=circle)
                return
            push = partial(self.remotes.push, dataset, to, several=several, force=force, public=public)
            result = with_time(str(dataset.handle), partial(push, progress=progress))
            yield result
            for name in extras if result.error is None else ():
                if several and not has_reference(dataset, name):
                    yield without(dataset, name, f"it has no {name}")
                    continue
                send = partial(self.remotes.push_reference, dataset, name, to, several=several, force=force)
                yield with_time(f"{dataset.handle} {name}", partial(send, progress=progress))

        return chain(map(_damaged, nameless), chain.from_iterable(map(pushed, datasets)))
