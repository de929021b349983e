"""The datasets of a stored answer: one with its name, and below it one for the parts of each fragment.

    NAME               the answer
    NAME.parts.1       rows of the parts of the first fragment, and so on
    NAME.parts.answer  the answer, as long as it is not complete

The answer gets its name last, after everything was verified. What a killed process leaves behind therefore has only
temporary names; the next attempt to store an answer under that name removes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.chain.block import DatasetSnapshot
from odfpy.chain.events import AddPushSource, MetadataEvent, SetAttachments, SetInfo
from odfpy.chain.read_steps import ReadParquet
from odfpy.chain.sources import MergeAppend
from odfpy.coordinator.storage.locks import writer_lock
from odfpy.dataset.attachments import AttachmentEmbedded, AttachmentsEmbedded
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import AlreadyExists
from odfpy.federation.errors import AuthenticationFailed
from odfpy.federation.evidence.record import ATTACHMENT, SignedRecord

if TYPE_CHECKING:
    from odfpy.coordinator.storage.stored_dataset import StoredDataset
    from odfpy.coordinator.workspace import Workspace

KEYWORD: Final = "odf-web-answer"
"""Keyword of all datasets that belong to an answer."""


class AnswerDatasets:
    """The datasets of an answer in a workspace: reserves their names, creates them and cleans up.

    Attributes:
        workspace: the workspace.
        name: name of the answer.
        unfinished: temporary name of the answer before it is complete.
    """

    def __init__(self, workspace: Workspace, name: str) -> None:
        """
        Args:
            workspace: the workspace.
            name: name of the answer.

        Raises:
            InvalidValue: it is not a name of a dataset.
        """
        self.workspace = workspace
        self.name = str(DatasetAlias.parse(name))
        self.unfinished = f"{self.name}.parts.answer"
        DatasetAlias.parse(self.unfinished)  # a name that is too long is rejected now

    def parts(self, number: int) -> str:
        """Return the name of the dataset with the parts of a fragment.

        Args:
            number: number of the fragment, from 1.
        """
        return f"{self.name}.parts.{number}"

    def check(self) -> None:
        """Check that an answer can be stored here.

        Raises:
            AlreadyExists: a dataset has one of the names.
        """
        self._left()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the names while the `with` block runs. Remove leftovers of others first, and one's own at the end.

        Raises:
            AlreadyExists: a dataset has one of the names.
            DatasetLocked: another process is storing an answer of that name.
        """
        storage = self.workspace.storage
        lock = storage.run / "locks" / f"web-{self.name.lower().replace('/', '+')}"
        with writer_lock(lock, f"The answer {self.name}", storage.lock_patience):
            self._remove(self._left())
            try:
                yield
            except BaseException:
                with suppress(AlreadyExists):  # it was completed in the meantime
                    self._remove(self._left())
                raise

    def make(self, name: str, what: str, file: Path, attachment: str | None = None) -> str:
        """Create a dataset from a file; returns its id.

        Args:
            name: name of the dataset.
            what: human-readable description of the content.
            file: a Parquet file, perhaps without rows, but with columns.
            attachment: the record of the answer.

        Raises:
            OdfError: it cannot be created.
        """
        events: list[MetadataEvent] = [
            AddPushSource(source_name="default", read=ReadParquet(), merge=MergeAppend()),
            SetInfo(what, (KEYWORD,)),
        ]
        if attachment is not None:
            events.append(SetAttachments(AttachmentsEmbedded((AttachmentEmbedded(ATTACHMENT, attachment),))))
        [added] = self.workspace.add([DatasetSnapshot(DatasetAlias.parse(name), DatasetKind.ROOT, tuple(events))])
        list(self.workspace.ingest(name, [file]))
        return str(added.handle.id)

    def finish(self) -> None:
        """Rename the answer to its final name.

        Raises:
            AlreadyExists: another dataset has taken it in the meantime.
        """
        self.workspace.datasets.rename(self.unfinished, self.name)

    def _left(self) -> list[str]:
        """Return leftover datasets: parts that belong to no answer, and answers that never got their name."""
        below = f"{self.name}.parts.".lower()
        datasets = {str(dataset.handle).lower(): dataset for dataset in self.workspace.storage.datasets()}
        if self.name.lower() in datasets:
            raise AlreadyExists(
                f"A dataset {self.name!r} already exists",
                hint="Choose another name, or remove it and its parts with `odf delete`.",
            )
        left_over = [candidate for name, candidate in datasets.items() if name.startswith(below)]
        used = self._used(datasets.values()) if left_over else set()
        for candidate in left_over:
            is_own = self.workspace.storage.keys.get(candidate.handle.id) is not None
            if not is_own or not _is_of_answer(candidate) or str(candidate.handle.id) in used:
                raise AlreadyExists(
                    f"A dataset {str(candidate.handle)!r} already exists, which is needed for parts of the answer",
                    hint="Choose another name.",
                )
        return [str(candidate.handle) for candidate in left_over]

    def _used(self, datasets: Iterable[StoredDataset]) -> set[str]:
        """Return ids of the parts of complete answers; these may have been renamed."""
        used: set[str] = set()
        for dataset in datasets:
            attached = dataset.state.attachments if _is_of_answer(dataset) else None
            if attached is None or str(dataset.handle).lower() == self.unfinished.lower():
                continue
            for file in attached.attachments.items:
                with suppress(AuthenticationFailed):
                    record = SignedRecord.parse(file.content).record
                    used |= {parts.id for parts in record.datasets.values()}
        return used

    def _remove(self, names: list[str]) -> None:
        if names:
            self.workspace.datasets.delete(names)


def _is_of_answer(dataset: StoredDataset) -> bool:
    info = dataset.state.info
    return info is not None and KEYWORD in (info.keywords or ())
