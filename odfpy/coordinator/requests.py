"""Requests: immutable arguments of pull, push, verify and export.

The command line creates them directly, `Workspace` from the arguments of its methods; they are passed unchanged to
the code that executes them. A new option is a new field here. `IngestRequest` is in the subpackage `ingest`.
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
        all: whether to pull every dataset of the workspace; datasets with an unapproved source are skipped.
        recursive: whether to include the inputs of the datasets.
        force: whether to fetch sources again, and overwrite copies that have diverged.
        fetch_uncacheable: whether to fetch sources without versions again.
        as_name: local name for a remote dataset.
        reset_derivatives: whether to rebuild derivatives whose inputs have diverged from the history that was read.
        branch: branch for the new blocks, instead of moving the head.
        tags: further tags to fetch, for copies.
        files: the choice of linked objects of copies: `all`, `none`, `available` or conditions; it is stored for later
            pulls. None for the stored choice.
        overrides: exceptions to default checks.

    Raises:
        UsageError: neither or both of `refs` and `all` are given.
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
        """Create a request from the arguments of `Workspace.pull`; `options` are other fields.

        Args:
            refs: names, ids or patterns of datasets.
            tags: tags to fetch.
            allow_retractions: whether a snapshot may retract any number of rows.
            allow_future: whether system times of blocks may be in the future.
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
        """Return the local name for a remote dataset."""
        return None if self.as_name is None else DatasetAlias.parse(self.as_name)

    @property
    def choice(self) -> LinkFilter | None:
        """Return the choice of linked objects."""
        return None if self.files is None else LinkFilter.parse(self.files)

    @property
    def tag_names(self) -> tuple[ReferenceName, ...]:
        """Return the tags as references."""
        return tuple(ReferenceName.of(ReferenceKind.TAG, tag) for tag in self.tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRequest:
    """A request to copy datasets to another location.

    Attributes:
        refs: names, ids, patterns.
        to: `repository/name`, a repository, a path or a URL; the push alias by default.
        all: whether to push every dataset of the workspace.
        recursive: whether to include the inputs of the datasets.
        force: whether to overwrite a copy that has diverged.
        public: whether everybody may read new datasets on a node.
        branches: further branches to push; with several datasets, a dataset without the branch is skipped.
        tags: further tags to push, likewise.
        files: the choice of linked objects to send: `all`, `none`, `available` or conditions; missing ones are also
            sent where both sides have the same rows. None for all links of new rows.

    Raises:
        UsageError: neither or both of `refs` and `all` are given.
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
        """Return the choice of linked objects."""
        return None if self.files is None else LinkFilter.parse(self.files)

    @property
    def references(self) -> list[ReferenceName]:
        """Return the branches, then the tags."""
        branches = [ReferenceName.of(ReferenceKind.BRANCH, name) for name in self.branches]
        return branches + [ReferenceName.of(ReferenceKind.TAG, name) for name in self.tags]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """A request to verify datasets.

    Attributes:
        refs: names, ids, patterns.
        all: whether to verify every dataset of the workspace.
        integrity_only: whether to skip replays.
        from_start: whether to replay without recorded checkpoints.
        against_batch: whether to compare derivatives with the results of their queries over all input data at once, in
            a separate engine; the results are in `VerifyReport.against_batch`.
        each_transform: with `against_batch`, whether to compare after each transform, not only after the last one.
        recursive: whether to include the inputs of the datasets.
        repair: whether to fetch missing or damaged files from the locations of pulls and pushes.

    Raises:
        UsageError: the options are incompatible.
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
            raise UsageError("--integrity runs no queries, and --against-batch does", hint="Omit one of them.")
        if self.each_transform and not self.against_batch:
            raise UsageError("--each-transform says when to compare --against-batch", hint="Add that.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """A request to export a dataset, or the result of a query, to files.

    Attributes:
        ref: the dataset: its log, unless another view is requested.
        to: the file, whose name determines the format. A folder, for several files.
        sql: a query instead of a dataset.
        engine: `spark` (default of queries) or `datafusion` (default of datasets).
        current: whether to export the current state.
        as_at: export the state that was known at a system time, or at a block, tag or branch.
        as_of: export the state that was valid at an event time.
        files: options of the format; derived from the file name if None.
        partition_by: columns whose values become names of folders.
        rows_per_file: the maximum number of rows of a file.
        overwrite: whether to replace an earlier export.

    Raises:
        UsageError: the options are incompatible.
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
    """Convert fields of a request to tuples; a program may have passed a single text, or a list.

    Args:
        request: the request, which is being initialized.
        fields: names of the fields.
    """
    for field in fields:
        object.__setattr__(request, field, all_of(getattr(request, field)))


def _check_choice(verb: str, refs: Sequence[str], *, all: bool) -> None:  # noqa: A002
    """Check that either datasets are named, or all are requested, but not both.

    Args:
        verb: the operation, for the message.
        refs: the names.
        all: whether all are requested.
    """
    if all and refs:
        raise UsageError(f"Either all datasets or {', '.join(refs)}", hint="Omit the names, or --all.")
    if not all and not refs:
        raise UsageError(f"Nothing to {verb}", hint="Name datasets, or use --all.")
