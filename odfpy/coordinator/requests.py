"""Requests: one frozen value for a pull, a push, a verification, an export.

The command line makes them, or `Workspace` from the arguments of its verbs; they go as they are to whoever does the
work. A new option is a field here. `IngestRequest` is in the subpackage `ingest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.coordinator.ingest.overrides import NOTHING, Overrides
from odfpy.data.link_filter import LinkFilter
from odfpy.data.scalars import count_given
from odfpy.dataset.names import DatasetAlias, all_of
from odfpy.errors import UsageError
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.data.rows.files import RowFileOptions
    from odfpy.data.timestamp import Instant
    from odfpy.query.moments import PointInTime


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A request to bring datasets up to date.

    Attributes:
        refs: names, ids, patterns, remote references (`repository/name`, `repository/pattern%`), URLs.
        all: every dataset of the workspace; those with a source that nobody has approved are passed over.
        recursive: also what they are derived from.
        force: fetch sources again; overwrite copies that have diverged.
        fetch_uncacheable: also fetch sources again that do not tell versions apart.
        as_name: name of a dataset that comes from elsewhere.
        reset_derivatives: make derivatives again whose inputs have another history now.
        branch: stage what is new there instead of moving the head.
        tags: also these tags, of copies.
        files: the objects that rows link to and that copies have: `all`, `none`, `available` or conditions; remembered.
            None for what was said before.
        overrides: what is refused otherwise.

    Raises:
        UsageError: neither names nor all, or both.
        InvalidValue: a name of a dataset or tag is invalid.
    """

    refs: tuple[str, ...] = ()
    all: bool = False
    recursive: bool = False
    force: bool = False
    fetch_uncacheable: bool = False
    as_name: str | None = None
    reset_derivatives: bool = False
    branch: str | None = None
    tags: tuple[str, ...] = ()
    files: str | None = None
    overrides: Overrides = NOTHING

    @classmethod
    def of(
        cls,
        refs: str | Sequence[str],
        *,
        tags: str | Sequence[str] = (),
        allow_retractions: bool = False,
        allow_future: bool = False,
        **options: Any,
    ) -> PullRequest:
        """Make a request of the arguments of `Workspace.pull`; `options` are fields as they are.

        Args:
            refs: names, ids or patterns of datasets.
            tags: tags to bring along.
            allow_retractions: whether a state may retract most rows.
            allow_future: whether blocks of the future may come.
            options: other fields of the request.
        """
        overrides = Overrides(allow_retractions, allow_future)
        return cls(refs=all_of(refs), tags=all_of(tags), overrides=overrides, **options)

    def __post_init__(self) -> None:
        _take_one_as_several(self, "refs", "tags")
        _check_choice("pull", self.refs, all=self.all)
        _ = self.alias, self.tag_names, self.choice

    @property
    def alias(self) -> DatasetAlias | None:
        """The name of a dataset that comes from elsewhere."""
        return None if self.as_name is None else DatasetAlias.parse(self.as_name)

    @property
    def choice(self) -> LinkFilter | None:
        """The objects that copies have."""
        return None if self.files is None else LinkFilter.parse(self.files)

    @property
    def tag_names(self) -> tuple[ReferenceName, ...]:
        """The tags as references."""
        return tuple(ReferenceName.of(ReferenceKind.TAG, tag) for tag in self.tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRequest:
    """A request to copy datasets to another place.

    Attributes:
        refs: names, ids, patterns.
        to: `repository/name`, a repository, a path or a URL; the push alias by default.
        all: every dataset of the workspace.
        recursive: also what they are derived from.
        force: overwrite a copy that has diverged.
        public: let everybody read what is new on a node.
        branches: also these branches; of several datasets, those that have them.
        tags: also these tags, the same.
        files: the objects that rows link to and that go along: `all`, `none`, `available` or conditions; where both
            sides have the same rows, what is missing there is sent. None for all of what is new.

    Raises:
        UsageError: neither names nor all, or both.
    """

    refs: tuple[str, ...] = ()
    to: str | None = None
    all: bool = False
    recursive: bool = False
    force: bool = False
    public: bool = False
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    files: str | None = None

    def __post_init__(self) -> None:
        _take_one_as_several(self, "refs", "branches", "tags")
        _check_choice("push", self.refs, all=self.all)
        _ = self.choice

    @property
    def choice(self) -> LinkFilter | None:
        """The objects that go along."""
        return None if self.files is None else LinkFilter.parse(self.files)

    @property
    def references(self) -> list[ReferenceName]:
        """The branches, then the tags."""
        branches = [ReferenceName.of(ReferenceKind.BRANCH, name) for name in self.branches]
        return branches + [ReferenceName.of(ReferenceKind.TAG, name) for name in self.tags]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """A request to verify datasets.

    Attributes:
        refs: names, ids, patterns.
        all: every dataset of the workspace.
        integrity_only: no replay.
        from_start: replay without the checkpoints that are recorded.
        against_batch: compare what derivatives amount to with their queries run once over what their inputs
            amounted to, in an engine of its own; `VerifyReport.against_batch` has what came of it.
        each_transform: with `against_batch`, after each transform, not only after the last one.
        recursive: also what they are derived from.
        repair: fetch what is missing or damaged from where the datasets were pulled from or pushed to.

    Raises:
        UsageError: what is asked for does not go together.
    """

    refs: tuple[str, ...] = ()
    all: bool = False
    integrity_only: bool = False
    from_start: bool = False
    against_batch: bool = False
    each_transform: bool = False
    recursive: bool = False
    repair: bool = False

    def __post_init__(self) -> None:
        _take_one_as_several(self, "refs")
        _check_choice("verify", self.refs, all=self.all)
        if self.integrity_only and self.against_batch:
            raise UsageError("--integrity runs no queries, and --against-batch does", hint="Leave one of them out.")
        if self.each_transform and not self.against_batch:
            raise UsageError("--each-transform says when to compare --against-batch", hint="Add that.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """A request to write a dataset, or an answer, to files.

    Attributes:
        ref: the dataset: its log, unless something else of it is asked for.
        to: the file; its name says the format. A folder, if it is partitioned or cut.
        sql: a query instead of a dataset.
        engine: `spark` (default of queries) or `datafusion` (default of datasets).
        current: its current state.
        as_at: what was known at a system time, or up to a block, tag or branch.
        as_of: what held at an event time.
        files: how files are written; by their name if None.
        partition_by: columns whose values become names of folders.
        rows_per_file: rows of a file at most.
        overwrite: take the place of what was exported there before.

    Raises:
        UsageError: what is asked for does not go together.
    """

    ref: str | None = None
    to: str | Path
    sql: str | None = None
    engine: str | None = None
    current: bool = False
    as_at: PointInTime | None = None
    as_of: Instant | None = None
    files: RowFileOptions | None = None
    partition_by: tuple[str, ...] = ()
    rows_per_file: int | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        _take_one_as_several(self, "partition_by")
        if self.rows_per_file is not None:
            object.__setattr__(self, "rows_per_file", count_given(self.rows_per_file, "rows_per_file", least=1))
        if not isinstance(self.to, (str, Path)):
            raise UsageError(f"`to` is the path of a file, not a value of type {type(self.to).__name__}")
        if (self.ref is None) == (self.sql is None):
            raise UsageError("A dataset cannot be combined with a query", hint="Name one dataset, or give one query.")


def _take_one_as_several(request: object, *fields: str) -> None:
    """Make tuples of fields of a request for which a program gave one text, or a list.

    Args:
        request: a value that is just being made.
        fields: their names.
    """
    for field in fields:
        object.__setattr__(request, field, all_of(getattr(request, field)))


def _check_choice(verb: str, refs: Sequence[str], *, all: bool) -> None:  # noqa: A002
    """Check that datasets are named, or all are meant, but not both.

    Args:
        verb: what is to be done with them.
        refs: the names.
        all: that all are meant.
    """
    if all and refs:
        raise UsageError(f"Either all datasets or {', '.join(refs)}", hint="Leave out the names, or --all.")
    if not all and not refs:
        raise UsageError(f"Nothing to {verb}", hint="Name datasets, or use --all.")
