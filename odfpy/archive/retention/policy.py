"""The policy of an archive: retention rules and legal holds, in a document that is part of the dataset.

The document is the attachment `archive/policy.yaml`. Each change is a `SetAttachments` event of the chain, signed like
all others, so that the history shows who has changed what, when. Rules define how long bytes must be kept; a hold keeps
files until it is lifted. Bytes may only be removed if both permit it, for every version of the record: a correction
never shortens the retention of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from odfpy.archive.record import FileRecord
from odfpy.chain.events import SetAttachments
from odfpy.chain.state import ChainState
from odfpy.codec.tree import from_tree, to_tree
from odfpy.codec.yaml import dump, load_documents
from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.attachments import AttachmentEmbedded, AttachmentsEmbedded
from odfpy.errors import AlreadyExists, MalformedManifest, NotFound, UsageError

PATH: Final = "archive/policy.yaml"
"""Path of the attachment."""

FOREVER: Final = "forever"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """A rule on how long files must be kept, counted from their end (from their start, if they have none).

    Attributes:
        keep: a duration, or `forever`.
        what: kind of the files; None for any.
        where: origin of the files; None for any.
        who: author of the rule.
        why: reason of the rule.
        since: when the rule was set.
    """

    keep: str
    what: str | None = None
    where: str | None = None
    who: str
    why: str
    since: Timestamp

    def __post_init__(self) -> None:
        if self.keep != FOREVER:
            Duration.parse(self.keep)

    def covers(self, record: FileRecord) -> bool:
        """Return whether the rule applies to a file."""
        return self.what in (None, record.what) and self.where in (None, record.where)

    @property
    def rank(self) -> tuple[bool, bool]:
        """The precedence, greater for more specific rules: what and where, then what, then where, then any."""
        return self.what is not None, self.where is not None

    def ends(self, record: FileRecord) -> int | None:
        """Return when the retention of a file ends, in milliseconds; None for never."""
        if self.keep == FOREVER:
            return None
        last = record.start if record.end is None else record.end
        return last + Duration.parse(self.keep).seconds * 1000

    def __str__(self) -> str:
        about = [f"{name} {value}" for name, value in (("what", self.what), ("where", self.where)) if value]
        return f"keep {self.keep} ({', '.join(about) or 'any file'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalHold:
    """A hold: files that are kept whatever their retention, until the hold is lifted.

    Attributes:
        name: name of the hold, such as a case.
        what: kinds of files; empty for any.
        where: origins of files; empty for any.
        start: files that overlap the time from here on; None if unbounded.
        end: files that overlap the time up to here; None if unbounded.
        work_id: files of this job; None for any.
        ids: only these files; empty for any.
        who: author of the hold.
        why: reason of the hold.
        since: when the hold was set.
    """

    name: str
    what: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    start: Timestamp | None = None
    end: Timestamp | None = None
    work_id: str | None = None
    ids: tuple[str, ...] = ()
    who: str
    why: str
    since: Timestamp

    def covers(self, record: FileRecord) -> bool:
        """Return whether the hold applies to a file."""
        last = record.start if record.end is None else record.end
        return (
            (not self.what or record.what in self.what)
            and (not self.where or record.where in self.where)
            and (self.start is None or last >= self.start.millis)
            and (self.end is None or record.start <= self.end.millis)
            and self.work_id in (None, record.work_id)
            and (not self.ids or record.id in self.ids)
        )


@dataclass(frozen=True, slots=True)
class ArchivePolicy:
    """The rules and holds of an archive."""

    retention: tuple[RetentionRule, ...] = ()
    holds: tuple[LegalHold, ...] = ()

    def rule_for(self, record: FileRecord) -> RetentionRule | None:
        """Return the rule that applies to a file: the most specific one; None if there is none."""
        rules = [rule for rule in self.retention if rule.covers(record)]
        return max(rules, key=lambda rule: rule.rank, default=None)

    def hold_on(self, record: FileRecord) -> LegalHold | None:
        """Return the first hold on a file, None if there is none."""
        return next((hold for hold in self.holds if hold.covers(record)), None)

    def keeps(self, history: Iterable[FileRecord], now: int) -> bool:
        """Return whether a hold or a rule requires the bytes of a file, by any version of its record."""
        return any(self.hold_on(version) is not None or self._is_retained(version, now) for version in history)

    def _is_retained(self, record: FileRecord, now: int) -> bool:
        rule = self.rule_for(record)
        if rule is None:
            return False
        ends = rule.ends(record)
        return ends is None or now < ends

    def has_expired(self, history: Sequence[FileRecord], now: int) -> RetentionRule | None:
        """Return the rule whose retention has ended for a file; None if the file is still required, or has no rule.

        Args:
            history: all versions of its record, oldest first.
            now: current time, in milliseconds.
        """
        return None if self.keeps(history, now) else self.rule_for(history[-1])

    def allows_removal(self, history: Sequence[FileRecord], now: int) -> bool:
        """Return whether the bytes of a file may be removed: it was withdrawn or expired, and nothing requires it.

        Args:
            history: all versions of its record, oldest first.
            now: current time, in milliseconds.
        """
        return history[-1].released is not None and not self.keeps(history, now)

    # --- Changes ---

    def with_rule(self, rule: RetentionRule) -> ArchivePolicy:
        """Return the policy with a rule; it replaces the rule for the same files.

        Raises:
            UsageError: author or reason are missing.
        """
        _require_reason(rule)
        others = [other for other in self.retention if (other.what, other.where) != (rule.what, rule.where)]
        return replace(self, retention=(*others, rule))

    def without_rule(self, what: str | None, where: str | None) -> ArchivePolicy:
        """Return the policy without the rule for these files.

        Raises:
            NotFound: there is no such rule.
        """
        others = tuple(other for other in self.retention if (other.what, other.where) != (what, where))
        if len(others) == len(self.retention):
            raise NotFound("There is no such retention rule", hint="`odf archive retention list` shows all of them.")
        return replace(self, retention=others)

    def with_hold(self, hold: LegalHold) -> ArchivePolicy:
        """Return the policy with an additional hold.

        Raises:
            UsageError: author or reason are missing.
            AlreadyExists: a hold has that name.
        """
        _require_reason(hold)
        if any(other.name == hold.name for other in self.holds):
            raise AlreadyExists(f"The hold {hold.name!r} already exists", hint="Lift it first, or choose another name.")
        return replace(self, holds=(*self.holds, hold))

    def without_hold(self, name: str) -> ArchivePolicy:
        """Return the policy without a hold.

        Raises:
            NotFound: there is no such hold.
        """
        others = tuple(hold for hold in self.holds if hold.name != name)
        if len(others) == len(self.holds):
            known = ", ".join(hold.name for hold in self.holds) or "none"
            raise NotFound(f"There is no hold {name!r}; there is {known}")
        return replace(self, holds=others)


def policy_in(state: ChainState) -> ArchivePolicy:
    """Return the policy of an archive from the state of its chain.

    Raises:
        MalformedManifest: the document is damaged.
    """
    for item in _attachments(state):
        if item.path == PATH:
            try:
                (document,) = load_documents(item.content, PATH)
            except ValueError as error:
                raise MalformedManifest(f"{PATH} is not one document") from error
            return from_tree(ArchivePolicy, document.tree)
    return ArchivePolicy()


def attachments_with(state: ChainState, policy: ArchivePolicy) -> SetAttachments:
    """Return the event that records a policy; other attachments stay unchanged."""
    others = [item for item in _attachments(state) if item.path != PATH]
    return SetAttachments(AttachmentsEmbedded((*others, AttachmentEmbedded(PATH, dump(to_tree(policy))))))


def _attachments(state: ChainState) -> Iterator[AttachmentEmbedded]:
    if state.attachments is not None:
        yield from state.attachments.attachments.items


def _require_reason(change: RetentionRule | LegalHold) -> None:
    for name, text in (("--who", change.who), ("--why", change.why)):
        if not text.strip():
            raise UsageError(f"{name} is missing", hint="It is recorded, and cannot be added later.")
