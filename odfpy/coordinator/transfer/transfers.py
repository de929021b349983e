"""Transfers of dataset copies: clone, pull and push; and the stored locations of these transfers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceName
from odfpy.chain.required_signers import RequiredSigners
from odfpy.chain.stores.checked_files import CheckedFiles
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.keys import UserKeys, required_signers
from odfpy.coordinator.storage.locks import writer_lock
from odfpy.coordinator.storage.results import ProgressSink, PullResult
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.transfer.files import files_to_fetch, files_to_send, save_choice
from odfpy.coordinator.transfer.known_remotes import KnownRemotes, seen_heads_of
from odfpy.coordinator.transfer.outcomes import (
    bytes_reporter,
    dataset_name_in,
    hint_if_diverged,
    pull_result,
    with_note_on_credentials,
    with_reference,
)
from odfpy.coordinator.transfer.push_targets import check_push_target
from odfpy.coordinator.transfer.remote_inputs import InputElsewhere
from odfpy.coordinator.transfer.revocation_notes import known_revocations, revocation_notes
from odfpy.data.link_filter import LinkFilter
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias, is_url
from odfpy.errors import AlreadyExists, DatasetNotFound, OdfError, UsageError
from odfpy.http.url import without_user
from odfpy.repository.divergence import DatasetsDiverged
from odfpy.repository.exchange import fetch_dataset, send_dataset
from odfpy.repository.locations.index import IndexEntry, enter, has_index
from odfpy.repository.locations.open import is_path, normalize_url
from odfpy.repository.objects import BytesProgress
from odfpy.repository.reference_transfer import ReferenceNotThere, fetch_reference, send_reference
from odfpy.repository.registry import Aliases, normalize_remote, resolve_remote
from odfpy.repository.transfer.linked import WantedFiles
from odfpy.repository.transfer.options import TransferOptions
from odfpy.repository.transfer.simple import HistoryRewritten, TransferResult
from odfpy.settings.sections import SignaturesSection
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """Permissions and content of a copy, beyond the defaults.

    Attributes:
        force: whether to accept a history that drops local blocks.
        future: whether to accept blocks with a time in the future.
        files: the choice of linked objects; None for the setting of the copy.
    """

    force: bool = False
    future: bool = False
    files: LinkFilter | None = None

    @property
    def clock(self) -> Timestamp | None:
        """Return the time that blocks are compared with, None if their time is not limited."""
        return None if self.future else Timestamp.now()


class Transfers(KnownRemotes):
    """Transfers between a workspace and remote locations; used by pull, push and clone."""

    @property
    def required(self) -> RequiredSigners:
        """Return the required signers of copies, with the known key revocations."""
        return required_signers(Config.load(self._storage.root).section(SignaturesSection).require, UserKeys())

    def pull(self, dataset: StoredDataset, url: str, limits: CopyLimits, *, progress: ProgressSink) -> PullResult:
        """Update a copy; requires the dataset's lock.

        If the dataset is opened on a branch, fetch the remote branch of the same name, or the remote head if there is
        none.

        Args:
            dataset: the dataset.
            url: URL of the remote dataset.
            limits: permissions and content of the copy.
            progress: called with the progress.
        """
        if dataset.branch is not None:
            with suppress(ReferenceNotThere):
                return self.pull_reference(dataset, url, dataset.branch, limits, progress=progress)
        name, place = str(dataset.handle), without_user(url)
        seen, files = seen_heads_of(dataset.folder), files_to_fetch(dataset.folder, limits.files)
        revoked = known_revocations(dataset)
        options = TransferOptions(
            clock=limits.clock,
            expected_id=dataset.handle.id,
            seen=seen.get(url),
            required=self.required,
            files=files,
        )
        reporter = bytes_reporter(name, "pulling", progress)

        with hint_if_diverged(dataset, url, self.pull_command(dataset, url)):
            try:
                result = fetch_dataset(url, dataset.layout, options, progress=reporter)
            except (DatasetsDiverged, HistoryRewritten):
                if not limits.force:
                    raise
                # Only force if required: a copy that is merely ahead loses nothing.
                result = fetch_dataset(url, dataset.layout, replace(options, force=True), progress=reporter)
        save_choice(dataset.folder, files.choice)
        seen.remember(url, result.source_head)
        undo = f"`odf reset {name} {result.old_head}` restores it, until `odf gc` has run"
        pulled = pull_result(name, result, lambda: dataset.reloaded().state, source=place, if_dropped=undo)
        return replace(pulled, notes=(*pulled.notes, *revocation_notes(dataset, revoked)))

    def pull_reference(
        self, dataset: StoredDataset, url: str, reference: ReferenceName, limits: CopyLimits, *, progress: ProgressSink
    ) -> PullResult:
        """Fetch a branch or tag of a copy; requires the dataset's lock.

        Args:
            dataset: the dataset.
            url: URL of the remote dataset.
            reference: the branch or tag.
            limits: permissions and content of the copy.
            progress: called with the progress.

        Raises:
            ReferenceNotThere: the remote does not have the branch or tag.
            AlreadyExists: the tag exists here, at another block.
        """
        name, layout = str(dataset.handle), dataset.on(None).layout
        options = TransferOptions(
            force=limits.force,
            clock=limits.clock,
            expected_id=dataset.handle.id,
            required=self.required,
            files=files_to_fetch(dataset.folder, limits.files),
        )
        reporter = bytes_reporter(name, f"pulling {reference}", progress)
        result = fetch_reference(url, layout, reference, options, progress=reporter)
        return with_reference(pull_result(name, result, layout.on(reference).chain.state), reference)

    def push_reference(
        self,
        dataset: StoredDataset,
        reference: ReferenceName,
        to: str | None,
        *,
        several: bool,
        force: bool,
        progress: ProgressSink,
    ) -> PullResult:
        """Send a branch or tag to the location of the dataset's last push; see `push`.

        Args:
            dataset: the dataset.
            reference: the branch or tag.
            to: the remote, None for that of the last push.
            several: whether several datasets are pushed, so that `to` is a repository.
            force: whether to overwrite a diverged history.
            progress: called with the progress.

        Raises:
            ReferenceNotThere: the dataset does not have the branch or tag.
            AlreadyExists: the tag exists at the remote, at another block.
        """
        name, layout = str(dataset.handle), dataset.on(None).layout
        if layout.refs.get(reference.reference) is None:
            raise ReferenceNotThere(
                f"{name}: there is no {reference} here",
                hint=f"`odf {reference.kind.value} {name}` lists the existing ones.",
            )
        url = resolve_remote(self._target(dataset, to, several=several), self.registry)
        reporter = bytes_reporter(name, f"pushing {reference}", progress)
        files = files_to_send(dataset.folder, dataset.state, None)
        result = send_reference(layout, url, reference, force=force, files=files, progress=reporter)
        return with_reference(pull_result(name, result, layout.on(reference).chain.state), reference)

    def missing_inputs(self, dataset: StoredDataset, ref: str) -> list[InputElsewhere]:
        """Return the inputs of a dataset that are missing in the workspace.

        Args:
            dataset: a copy.
            ref: source of the copy.
        """
        transform = dataset.state.set_transform
        own_ids = {known.handle.id for known in self._storage.datasets()}
        return [
            InputElsewhere(ref, item.alias or str(item.dataset_ref), item.dataset_ref)
            for item in (transform.inputs if transform else ())
            if isinstance(item.dataset_ref, DatasetId) and item.dataset_ref not in own_ids
        ]

    def clone(
        self,
        ref: str,
        *,
        as_name: DatasetAlias | None,
        limits: CopyLimits,
        progress: ProgressSink,
        expected_id: DatasetId | None = None,
    ) -> PullResult:
        """Copy a dataset into the workspace, or update the existing copy.

        Args:
            ref: URL of the dataset, or its name in a repository.
            as_name: local name of the copy, None for its name at the remote.
            limits: permissions and content of the copy.
            progress: called with the progress.
            expected_id: the expected id, None to accept any id.
        """
        url = resolve_remote(ref, self.registry)
        alias = as_name or dataset_name_in(url)
        existing = self._existing(alias)
        if existing is not None and expected_id not in (None, existing.handle.id):
            raise AlreadyExists(
                f"{without_user(ref)} should be {expected_id}, but {alias} is another dataset here",
                hint=f"Pull it under another name: odf pull {without_user(ref)} --as NAME",
            )
        if existing is not None:
            return self._pull_into(existing, ref, url, limits, progress)
        # The folder is named after the URL, so that an interrupted copy is continued.
        folder = self._storage.cache / "incoming" / str(Multihash.of(url.encode()))
        with writer_lock(self._storage.lock_of(folder), f"The copy of {without_user(url)}"):
            checked = CheckedFiles()
            layout = DatasetLayout.local(folder, checked=checked)
            choice = limits.files or LinkFilter()
            options = TransferOptions(
                clock=limits.clock, expected_id=expected_id, required=self.required, files=WantedFiles(choice)
            )
            moved = _fetch_new(url, layout, options, bytes_reporter(str(alias), "pulling", progress))
            save_choice(folder, choice)
            state = moved.state or layout.chain.state()
            result = pull_result(str(alias), moved, lambda: state)
            # Stored before the dataset appears: without it, the copy would look like a local dataset, and would never
            # be pulled again.
            Aliases.of(folder).add("pull", ref)
            seen_heads_of(folder).remember(url, moved.source_head)
            with self._storage.editing():
                copy = self._storage.create(alias, state.dataset_id, folder)
            copy.checked_files.update(checked)
        return result

    def _pull_into(
        self, dataset: StoredDataset, ref: str, url: str, limits: CopyLimits, progress: ProgressSink
    ) -> PullResult:
        """Update an existing dataset from a remote; store the remote location unless the dataset was created here.

        A dataset created here has a source or a query, which would not run again if it had a pull location.
        """
        with dataset.writing() as locked:
            result = self.pull(locked, url, limits, progress=progress)
            if self.pull_url(locked) is None and locked.handle.id in self._storage.keys:
                note = f"it was created here: `odf pull {dataset.handle}` does not fetch from {without_user(ref)}"
                return replace(result, notes=(*result.notes, note))
            self.aliases(locked).add("pull", ref)
            return result

    def push(
        self,
        dataset: StoredDataset,
        to: str | None,
        *,
        several: bool,
        force: bool,
        progress: ProgressSink,
        public: bool = False,
        files: LinkFilter | None = None,
    ) -> PullResult:
        """Copy a dataset to a remote location, and store the location.

        A path or URL names the dataset itself, unless it ends in a slash: then, and when several datasets are pushed,
        it names a repository.

        Args:
            dataset: the dataset.
            to: the remote, None for that of the last push.
            several: whether several datasets are pushed, so that `to` is a repository.
            force: whether to overwrite a diverged history.
            progress: called with the progress.
            public: whether a node makes the dataset public.
            files: the choice of linked objects to send; None for all.

        Raises:
            UsageError: the target is a repository, or the repository of the target is a dataset itself.
        """
        name = str(dataset.handle)
        target = self._target(dataset, to, several=several)
        url = resolve_remote(target, self.registry)
        check_push_target(url, dataset.handle.alias.name.text)
        place = without_user(url)
        pull = self.pull_command(dataset, normalize_remote(target))
        with hint_if_diverged(dataset, url, pull):
            result = send_dataset(
                dataset.layout,
                url,
                force=force,
                public=public,
                files=files_to_send(dataset.folder, dataset.state, files),
                progress=bytes_reporter(name, "pushing", progress),
            )
        more = f"`{pull}` brings them here, `odf push {name} --force` drops them there"
        pushed = pull_result(
            name, result, lambda: dataset.reloaded().state, target=place, source="are here", if_ahead=more
        )
        notes = pushed.notes if to is not None else (f"to {without_user(target)}", *pushed.notes)
        problems = self._remember_push(dataset, to, target, url, result.new_head, several=several)
        return with_note_on_credentials(replace(pushed, notes=(*notes, *problems)), to or "")

    def _remember_push(
        self, dataset: StoredDataset, to: str | None, target: str, url: str, head: Multihash, *, several: bool
    ) -> Iterator[str]:
        """Store location and head of a push, and add the dataset to the remote index; yield remarks on failures.

        The push itself has succeeded, so failures here are no errors.

        Args:
            dataset: the dataset.
            to: the remote as given by the user, None for that of the last push.
            target: the remote.
            url: URL of the remote.
            head: the new remote head.
            several: whether several datasets are pushed, so that `to` is a repository.
        """
        try:
            if to is not None:  # otherwise it is already stored; an earlier release may have stored a password
                self.aliases(dataset).add("push", target)
            seen_heads_of(dataset.folder).remember(url, head)
        except OdfError as error:
            yield f"the repository could not be remembered for the next time: {error.message}"
        try:
            is_named = not is_url(target) and not is_path(target)
            self._add_to_index(dataset, url, is_in_repository=several or is_named or (to or "").endswith("/"))
        except OdfError as error:
            yield f"the index of the repository was not written: {error.message}"

    def _add_to_index(self, dataset: StoredDataset, url: str, *, is_in_repository: bool) -> None:
        """Add a pushed dataset to the index of its repository, so that static servers can list it.

        Args:
            dataset: the dataset.
            url: the URL of the pushed dataset.
            is_in_repository: whether the user has named a repository; otherwise only an existing index is updated.
        """
        head = dataset.layout.refs.get(HEAD)
        repository, _, name = url.rpartition("/")
        if head is not None and (is_in_repository or has_index(repository)):
            enter(repository, IndexEntry(dataset.handle.id, DatasetAlias.parse(name), head))

    def _target(self, dataset: StoredDataset, to: str | None, *, several: bool) -> str:
        if to is None:
            latest = next(iter(self.aliases(dataset).list("push")), None)
            if latest is None:
                raise UsageError("This has not been pushed anywhere yet", hint="Give the repository with --to.")
            return latest
        name = dataset.handle.alias.name
        if is_url(to) or is_path(to):
            return f"{normalize_url(to)}/{name}" if several or to.endswith("/") else to
        if "://" in to:
            raise UsageError(
                f"Not a repository, path or URL: {to!r}",
                hint="After :// there is a host, a bucket or a path: s3://bucket/folder/",
            )
        if not to.strip():
            raise UsageError(
                "--to must name a repository, path or URL", hint="A repository, repository/name, a path or a URL."
            )
        return to if "/" in to else f"{to}/{name}"

    def _existing(self, alias: DatasetAlias) -> StoredDataset | None:
        try:
            return self._storage.get(alias)
        except DatasetNotFound:
            return None


def _fetch_new(url: str, layout: DatasetLayout, options: TransferOptions, progress: BytesProgress) -> TransferResult:
    """Fetch a dataset into a folder, which may contain objects from an interrupted attempt.

    Args:
        url: URL of the dataset.
        layout: the folder.
        options: the options of the transfer.
        progress: called with the progress.
    """
    head = layout.refs.get(HEAD)
    if head is not None:
        # The interrupted attempt may have requested less: without a head, everything is checked again, but no object is
        # fetched twice.
        layout.refs.delete(HEAD, head)
    return fetch_dataset(url, layout, options, progress=progress)
