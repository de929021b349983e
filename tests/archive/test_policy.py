"""What keeps the bytes of files: the most specific rule, and every hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.archive.record import Status
from odfpy.archive.retention.policy import ArchivePolicy, LegalHold, RetentionRule, attachments_with, policy_in
from odfpy.chain.events import SetAttachments
from odfpy.chain.state import ChainState
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.attachments import AttachmentEmbedded, AttachmentsEmbedded
from odfpy.errors import AlreadyExists, InvalidValue, MalformedManifest, NotFound

from .test_record import RECORD

DAY = 86_400_000
THEN = Timestamp.parse("2024-03-01T00:00:00Z")
END = RECORD.end or 0
GONE = replace(RECORD, status=Status.WITHDRAWN, released=1)


def rule(keep: str, what: str | None = None, where: str | None = None) -> RetentionRule:
    return RetentionRule(keep=keep, what=what, where=where, who="ann", why="law", since=THEN)


def hold(name: str = "case", **about: object) -> LegalHold:
    return LegalHold(name=name, who="ann", why="court", since=THEN, **about)


def test_a_retention_ends_so_long_after_the_end_of_a_file() -> None:
    policy = ArchivePolicy((rule("1d"),))
    assert policy.has_expired([RECORD], END + DAY - 1) is None
    assert policy.has_expired([RECORD], END + DAY) == policy.retention[0]
    moment = replace(RECORD, end=None)
    assert policy.has_expired([moment], RECORD.start + DAY) is not None


def test_the_rule_about_the_fewest_files_decides() -> None:
    rules = [rule("1d"), rule("2d", where=RECORD.where), rule("3d", RECORD.what), rule("4d", RECORD.what, RECORD.where)]
    for count in range(1, 5):
        assert ArchivePolicy(tuple(rules[:count])).rule_for(RECORD) == rules[count - 1]
        assert ArchivePolicy(tuple(reversed(rules[:count]))).rule_for(RECORD) == rules[count - 1]
    assert ArchivePolicy((rule("1d", "other"), rule("1d", where="other"))).rule_for(RECORD) is None


def test_nothing_expires_without_a_rule_or_with_one_that_keeps_forever() -> None:
    assert ArchivePolicy().has_expired([RECORD], END + 10**9 * DAY) is None
    assert ArchivePolicy((rule("forever"),)).has_expired([RECORD], END + 10**9 * DAY) is None


def test_a_hold_keeps_what_would_have_expired() -> None:
    policy = ArchivePolicy((rule("1d"),), (hold(),))
    assert policy.has_expired([RECORD], END + 2 * DAY) is None
    assert policy.without_hold("case").has_expired([RECORD], END + 2 * DAY) is not None


@pytest.mark.parametrize(
    ("about", "is_held"),
    [
        ({}, True),
        ({"what": ("syslog", "nginx")}, True),
        ({"what": ("nginx",)}, False),
        ({"where": ("web-server_02",)}, True),
        ({"where": ("web1",)}, False),
        ({"ids": (RECORD.id,)}, True),
        ({"ids": ("another",)}, False),
        ({"work_id": "job"}, False),
        ({"start": Timestamp.from_millis(END)}, True),
        ({"start": Timestamp.from_millis(END + 1)}, False),
        ({"end": Timestamp.from_millis(RECORD.start)}, True),
        ({"end": Timestamp.from_millis(RECORD.start - 1)}, False),
        ({"what": ("syslog",), "where": ("web1",)}, False),
    ],
)
def test_a_hold_is_about_all_that_it_names(about: dict[str, object], *, is_held: bool) -> None:
    assert (ArchivePolicy(holds=(hold(**about),)).hold_on(RECORD) is not None) is is_held


def test_bytes_go_only_when_they_were_released_and_both_allow_it() -> None:
    late = END + 10 * DAY
    assert ArchivePolicy().allows_removal([RECORD, GONE], late)
    assert not ArchivePolicy().allows_removal([RECORD], late)
    assert not ArchivePolicy(holds=(hold(),)).allows_removal([RECORD, GONE], late)
    assert not ArchivePolicy((rule("20d"),)).allows_removal([RECORD, GONE], late)
    assert not ArchivePolicy((rule("forever"),)).allows_removal([RECORD, GONE], late)
    assert ArchivePolicy((rule("5d"),)).allows_removal([RECORD, GONE], late)
    assert not ArchivePolicy((rule("5d"),), (hold(),)).allows_removal([RECORD, GONE], late)


@pytest.mark.parametrize(
    ("before", "policy"),
    [
        ({"where": "web1"}, ArchivePolicy(holds=(hold(where=("web1",)),))),
        ({"what": "nginx"}, ArchivePolicy(holds=(hold(what=("nginx",)),))),
        ({"work_id": "job"}, ArchivePolicy(holds=(hold(work_id="job"),))),
        ({"end": END + DAY}, ArchivePolicy(holds=(hold(start=Timestamp.from_millis(END + 1)),))),
        ({"where": "web1"}, ArchivePolicy((rule("1d"), rule("forever", where="web1")))),
        ({"where": "web1"}, ArchivePolicy((rule("1d", RECORD.what, RECORD.where), rule("20d", RECORD.what)))),
        ({"end": END + 10 * DAY}, ArchivePolicy((rule("5d"),))),
    ],
)
def test_what_has_kept_a_file_before_it_was_corrected_keeps_it(
    before: dict[str, object], policy: ArchivePolicy
) -> None:
    late = END + 10 * DAY
    pushed = replace(RECORD, **before)
    assert policy.allows_removal([RECORD, GONE], late)
    assert not policy.allows_removal([pushed, RECORD, GONE], late)
    assert policy.has_expired([pushed, RECORD], late) is None


def test_a_rule_that_began_with_a_correction_keeps_a_file_longer_too() -> None:
    policy = ArchivePolicy((rule("1d"), rule("20d", where="web1")))
    history = [RECORD, replace(RECORD, where="web1")]
    assert policy.has_expired(history, END + 10 * DAY) is None
    assert policy.has_expired(history, END + 20 * DAY) == policy.retention[1]


def test_a_rule_replaces_the_one_about_the_same_files() -> None:
    policy = ArchivePolicy().with_rule(rule("1d", "a")).with_rule(rule("2d", "b")).with_rule(rule("3d", "a"))
    assert [one.keep for one in policy.retention] == ["2d", "3d"]
    assert policy.without_rule("a", None).retention == (rule("2d", "b"),)


def test_wrong_changes_are_refused() -> None:
    with pytest.raises(InvalidValue):
        rule("a while")
    with pytest.raises(AlreadyExists):
        ArchivePolicy().with_hold(hold()).with_hold(hold())
    with pytest.raises(NotFound):
        ArchivePolicy().without_hold("case")
    with pytest.raises(NotFound):
        ArchivePolicy().without_rule("a", None)


words = st.text("abc", min_size=1, max_size=3)
times = st.none() | st.integers(0, 2**40).map(Timestamp.from_millis)
policies = st.builds(
    ArchivePolicy,
    st.lists(st.builds(rule, st.sampled_from(["1d", "forever"]), st.none() | words, st.none() | words), max_size=3).map(
        tuple
    ),
    st.lists(
        st.builds(hold, words, what=st.lists(words).map(tuple), start=times, end=times, work_id=st.none() | words),
        max_size=3,
    ).map(tuple),
)


@given(policies)
def test_a_policy_comes_back_from_the_chain_and_leaves_other_attachments(policy: ArchivePolicy) -> None:
    readme = AttachmentEmbedded("README.md", "Logs")
    before = ChainState(attachments=SetAttachments(AttachmentsEmbedded((readme,))))
    after = ChainState(attachments=attachments_with(before, policy))
    assert policy_in(after) == policy
    assert readme in after.attachments.attachments.items
    again = ChainState(attachments=attachments_with(after, ArchivePolicy()))
    assert policy_in(again) == ArchivePolicy()
    assert len(again.attachments.attachments.items) == 2


def test_no_policy_is_one_that_keeps_nothing_in_particular() -> None:
    assert policy_in(ChainState()) == ArchivePolicy()


@pytest.mark.parametrize("text", ["", "a: [", "holds: 5", "retention: [{keep: 1d}]", "a\n---\nb", "other: 1"])
def test_a_damaged_policy_is_an_error_and_not_taken_for_none(text: str) -> None:
    damaged = AttachmentEmbedded("archive/policy.yaml", text)
    with pytest.raises(MalformedManifest):
        policy_in(ChainState(attachments=SetAttachments(AttachmentsEmbedded((damaged,)))))
