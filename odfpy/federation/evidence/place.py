"""Where an answer is kept: a dataset of its name, and one for the parts of each fragment below it.

    NAME               the answer
    NAME.parts.1       rows of the parts of the first fragment, and so on
    NAME.parts.answer  the answer, as long as it is not complete

The answer gets its name last of all, when everything was verified. So what a killed process has left has no name that
anybody uses; whoever keeps an answer of that name next removes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.coordinator.storage.locks import writer_lock
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import AlreadyExists

if TYPE_CHECKING:
    from odfpy.chain.block import DatasetSnapshot
    from odfpy.coordinator.workspace import Workspace

KEYWORD: Final = "odf-web-answer"
"""Keyword of all datasets that belong to an answer."""


class AnswerPlace:
    """The datasets of an answer in a workspace.

    Attributes:
        workspace: the workspace.
        name: of the answer.
        unfinished: name of the answer before it is complete.
    """

    def __init__(self, workspace: Workspace, name: str) -> None:
        """
        Args:
            workspace: the workspace.
            name: of the answer.

        Raises:
            InvalidValue: it is no name of a dataset.
        """
        self.workspace = workspace
        self.name = str(DatasetAlias.parse(name))
        self.unfinished = f"{self.name}.parts.answer"
        DatasetAlias.parse(self.unfinished)  # a name that is too long is refused now

    def parts(self, number: int) -> str:
        """The name of the dataset with the parts of a fragment.

        Args:
            number: of the fragment, from 1.
        """
        return f"{self.name}.parts.{number}"

    def check(self) -> None:
        """Check that an answer can be kept here.

        Raises:
            AlreadyExists: a dataset has one of the names.
        """
        self._left()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the names for a block. What others have left unfinished goes first, what this one leaves at the end.

        Raises:
            AlreadyExists: a dataset has one of the names.
            DatasetLocked: another process keeps an answer of that name just now.
        """
        storage = self.workspace.storage
        lock = storage.run / "locks" / f"web-{self.name.lower().replace('/', '+')}"
        with writer_lock(lock, f"The answer {self.name}", storage.lock_patience):
            self._remove(self._left())
            try:
                yield
            except BaseException:
                with suppress(AlreadyExists):  # it was complete just then
                    self._remove(self._left())
                raise

    def make(self, snapshot: DatasetSnapshot, file: Path, rows: int) -> str:
        """Make a dataset, and take the rows of a file in; gives its id.

        Args:
            snapshot: of the dataset.
            file: a Parquet file.
            rows: how many are in it; without any, none are taken in.

        Raises:
            OdfError: it cannot be made.
        """
        [made] = self.workspace.add([snapshot])
        if rows:
            list(self.workspace.ingest(str(snapshot.name), [file]))
        return str(made.handle.id)

    def finish(self) -> None:
        """Give the answer its name.

        Raises:
            AlreadyExists: another dataset has got it in the meantime.
        """
        self.workspace.datasets.rename(self.unfinished, self.name)

    def _left(self) -> list[str]:
        """The datasets that somebody has left unfinished."""
        prefix = f"{self.name}.parts.".lower()
        found = []
        for dataset in self.workspace.storage.datasets():
            name = str(dataset.handle)
            if name.lower() == self.name.lower():
                raise AlreadyExists(
                    f"A dataset {name!r} is there already", hint="Choose another name, or remove it with `odf delete`."
                )
            if name.lower().startswith(prefix):
                info = dataset.state.info
                if info is None or KEYWORD not in (info.keywords or ()):
                    raise AlreadyExists(
                        f"A dataset {name!r} is there already, where parts of the answer go", hint="Choose another name."
                    )
                found.append(name)
        return found

    def _remove(self, names: list[str]) -> None:
        if names:
            self.workspace.datasets.delete(names)
