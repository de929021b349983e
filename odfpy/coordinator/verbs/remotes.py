"""`Workspace.remotes`: copies of datasets in other locations, and named repositories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from odfpy.coordinator.storage.results import ProgressSink, PullOutcome, PullResult, silent
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.verbs.arguments import with_checked_arguments
from odfpy.coordinator.verbs.context import WorkspaceContext
from odfpy.coordinator.verbs.updates import damaged_result
from odfpy.dataset.names import all_of

if TYPE_CHECKING:
    from odfpy.coordinator.requests import PushRequest
    from odfpy.coordinator.transfer.search import FoundDataset
    from odfpy.errors import OdfError
    from odfpy.repository.registry import Aliases, RepositoryRegistry


@with_checked_arguments
class Remotes:
    """Known locations of copies, and transfers to them."""

    def __init__(self, context: WorkspaceContext) -> None:
        self._context = context
        self._storage = context.storage

    @property
    def repositories(self) -> RepositoryRegistry:
        """Return the named repositories."""
        return self._context.remotes.registry

    def aliases(self, ref: str) -> Aliases:
        """Return the locations that a dataset is pulled from and pushed to."""
        return self._context.remotes.aliases(self._storage.get(ref))

    def search(self, text: str = "", places: str | Sequence[str] = ()) -> tuple[list[FoundDataset], list[OdfError]]:
        """Search for datasets in repositories; a failing repository does not affect the others.

        Args:
            text: words that name, description or keywords must contain; all datasets if empty.
            places: repositories, paths or URLs; all repositories by default.
        """
        from odfpy.coordinator.transfer.search import search_repositories

        return search_repositories(self.repositories, text, all_of(places))

    def push(self, request: PushRequest, progress: ProgressSink = silent) -> Iterator[PullResult]:
        """Copy datasets to a repository or URL, which is stored as the push alias.

        Raises:
            NoSuchReference: none of several datasets has a branch or tag; nothing was pushed.
        """
        from odfpy.coordinator.lineage.lineage import Lineage
        from odfpy.coordinator.maintenance.damage import explain_damage
        from odfpy.coordinator.storage.commit import with_time
        from odfpy.coordinator.storage.references import has_reference, require_in_one, without

        datasets, nameless = self._storage.scan() if request.all else (self._storage.match(list(request.refs)), [])
        lineage = Lineage(self._storage)
        datasets = lineage.in_order(datasets, with_inputs=request.recursive)
        transfers, several, extras = self._context.transfers, len(datasets) > 1, request.references
        if several:
            require_in_one(datasets, extras)

        def pushed(dataset: StoredDataset) -> Iterator[PullResult]:
            cycle = lineage.cycle_of(dataset.handle.id)
            if cycle is not None:  # it could not be pulled
                yield PullResult(name=str(dataset.handle), outcome=PullOutcome.FAILED, error=cycle)
                return
            push = partial(transfers.push, dataset, request.to, several=several, force=request.force)
            push = partial(push, public=request.public, files=request.choice, progress=progress)
            result = with_time(str(dataset.handle), explain_damage(dataset)(push))
            yield result
            for name in extras if result.error is None else ():
                if several and not has_reference(dataset, name):
                    yield without(dataset, name, f"it has no {name}")
                    continue
                send = partial(transfers.push_reference, dataset, name, request.to)
                send = partial(send, several=several, force=request.force, progress=progress)
                yield with_time(f"{dataset.handle} {name}", explain_damage(dataset)(send))

        return chain(map(damaged_result, nameless), chain.from_iterable(map(pushed, datasets)))
