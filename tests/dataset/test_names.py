"""Names, aliases, references and patterns, as the grammar of the specification has them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chains.values import aliases, ids, names
from support.processes.limits import run_limited

from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import (
    AccountName,
    DatasetAlias,
    DatasetName,
    DatasetPattern,
    DatasetRef,
    RemoteRef,
    RemoteUrl,
    RepositoryName,
    did_you_mean_dataset,
    is_pattern,
    is_url,
    parse_ref,
    parse_remote_ref,
)
from odfpy.errors import InvalidValue

ID = DatasetId(bytes(range(32)))

GOOD_NAMES = [
    "a",
    "A1",
    "2024",
    "local.id-only",
    "net.example.com",
    "com.naturalearthdata.admin0-10m",
    "a-b-c.d-e.f",
    "a" * 200,
]

BAD_NAMES = [
    "", " ", ".", "-", "..", "../x", "..\\x", "/", "/etc/passwd", "a/", "/a", "./a", "a/..", "~", "~root", ".invalid", "invalid.",
    "-invalid", "invalid-", "invalid--id", "invalid..id", "invalid.-id", "invalid-.id", "in^valid", "invalid_id", "in valid",
    " a", "a ", "a\n", "\na", "a\x00", "\x00", "a\x00b", "a\tb", "a:b", "a%b", "a*b", "a?b", "a\\b", "C:\\x", "a'b", 'a"b', "$a",
    "é", "naïve", "名前", "\N{CYRILLIC SMALL LETTER A}", "\N{FULLWIDTH DIGIT ONE}", "²", "ﬁ", "a\u200bb", "a\u202eb", "\ufeffa", "\ud800", "a" * 201, "a." * 50_000 + "a", "-" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("text", GOOD_NAMES)
@pytest.mark.parametrize("kind", [DatasetName, AccountName, RepositoryName])
def test_names(kind: type, text: str):
    assert str(kind(text)) == text


@pytest.mark.parametrize("text", BAD_NAMES, ids=lambda text: ascii(text[:16]))
@pytest.mark.parametrize("kind", [DatasetName, AccountName, RepositoryName])
def test_what_is_no_name_is_refused(kind: type, text: str):
    with pytest.raises(InvalidValue) as caught:
        kind(text)
    assert len(caught.value.message) < 500, "a long name does not flood the screen"


@given(names)
def test_names_are_compared_without_regard_to_case(text: str):
    assert DatasetName(text) == DatasetName(text.upper())
    assert hash(DatasetName(text)) == hash(DatasetName(text.upper()))
    assert not DatasetName(text) < DatasetName(text.upper())
    assert str(DatasetName(text)) == text, "but written as they were given"


def test_names_have_an_order_with_and_without_an_account():
    in_order = ["a", "alice/a", "Bob/a", "b", "alice/B"]
    assert [str(one) for one in sorted(map(DatasetAlias.parse, reversed(in_order)))] == in_order
    assert DatasetAlias.parse("a") < DatasetAlias.parse("alice/a") >= DatasetAlias.parse("ALICE/A")


def test_names_of_different_kinds_are_different():
    assert DatasetName("a") != AccountName("a")
    assert DatasetName("a") != "a"


@given(st.text(st.sampled_from("aB1.-/%:\x00 "), max_size=12))
def test_the_grammar_is_subdomains_joined_by_dots(text: str):
    subdomain = "[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*"
    if re.fullmatch(rf"{subdomain}(\.{subdomain})*", text):
        DatasetName(text)
    else:
        with pytest.raises(InvalidValue):
            DatasetName(text)


# --- Aliases and references ------------------------------------------------------------------------------------------


def alias(name: str, account: str | None = None) -> DatasetAlias:
    return DatasetAlias(DatasetName(name), AccountName(account) if account else None)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("local.id", alias("local.id")),
        ("user-name/local.id", alias("local.id", "user-name")),
        ("aCCouNt/net.ExaMplE.coM", alias("net.example.com", "account")),
        (str(ID), ID),
        ("did:odf:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
         DatasetId.parse("did:odf:fed012e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6")),
    ],
)  # fmt: skip
def test_references(text: str, parsed: DatasetRef):
    assert parse_ref(text) == parsed
    assert parse_ref(str(parsed)) == parsed


@given(aliases | ids)
def test_references_both_ways(ref: DatasetRef):
    assert parse_ref(str(ref)) == ref


@pytest.mark.parametrize("text", ["", "/", "a/", "/a", "a//b", "repo/user/name", "user/.bad", ".bad/name", "../name", "a/../b",
                                  "bad_alias", "did:odf:", "did:odf:zzz", "did:key:z6Mk", "did:odf:f00", "DID:ODF:f00", "a/b\x00"])  # fmt: skip
def test_what_is_no_reference_is_refused(text: str):
    with pytest.raises(InvalidValue):
        parse_ref(text)


def test_account_and_name_together_make_the_alias():
    assert parse_ref("account1/net.example.com") != parse_ref("account/net.example.com")
    assert parse_ref("net.example.com") != parse_ref("account/net.example.com")
    assert len({parse_ref("a/b"), parse_ref("A/B"), parse_ref("b")}) == 2


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("repo.name/local.id", RemoteRef(RepositoryName("repo.name"), alias("local.id"))),
        ("repo.name/user-name/local.id", RemoteRef(RepositoryName("repo.name"), alias("local.id", "user-name"))),
        (f"repo/{ID}", RemoteRef(RepositoryName("repo"), ID)),
        (str(ID), RemoteRef(None, ID)),
        ("https://opendata.ca/odf/census-2016-population/", RemoteUrl("https://opendata.ca/odf/census-2016-population/")),
        ("ipfs://bafkreie3hfshd4ikinnbio3kewo2hvj6doh5jp3p23iwk2evgo2un5g7km/",
         RemoteUrl("ipfs://bafkreie3hfshd4ikinnbio3kewo2hvj6doh5jp3p23iwk2evgo2un5g7km/")),
        ("odf+https://node.example.com/a/b", RemoteUrl("odf+https://node.example.com/a/b")),
        ("file:///data/my%20datasets/x y", RemoteUrl("file:///data/my%20datasets/x y")),
    ],
)  # fmt: skip
def test_remote_references(text: str, parsed: RemoteRef | RemoteUrl):
    assert parse_remote_ref(text) == parsed
    assert str(parsed) == text


@pytest.mark.parametrize("text", ["", "name", "repo/", "/name", "repo/.bad", ".bad/name", "repo/user/.bad", "repo/.bad/name", ".bad/user/name",
                                  "a/b/c/d", "../x", "foo:bar", "://x", "https://", "https://a\nb", "https://a\x00", "+a://b", "repo/did:odf:f00"])  # fmt: skip
def test_what_is_no_remote_reference_is_refused(text: str):
    with pytest.raises(InvalidValue):
        parse_remote_ref(text)


@given(st.builds(RemoteRef, names.map(RepositoryName), aliases | ids))
def test_remote_references_both_ways(ref: RemoteRef):
    assert parse_remote_ref(str(ref)) == ref


# --- Patterns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["%", "%%", "%a%%", "net.example.%", "net.e%.com", "net-%.com", "net%net", "%.example.com", "%e", "%-e", "net%.ex%.com",
     "%.ex%.com", "%.ex%.c%", "%-net.ex-%.c-%", "a%.%b", "a-%-%b", "alice/%", "alice/net.%"],
)  # fmt: skip
def test_patterns(text: str):
    assert str(DatasetPattern(text)) == text
    assert is_pattern(text)


@pytest.mark.parametrize(
    "text",
    ["", "a", "net.example.%-", "net.exa^mple.%", "&net%.exa%mple.net", f"{ID}%", ".%", "-%", "a..%", "a--%", "%..a", "%a-", "%.",
     "/%", "%/a", "a/b/%", "../%", "al%/%", "%\n", "\x00%", "% ", "é%", "%" * 201],
)  # fmt: skip
def test_what_is_no_pattern_is_refused(text: str):
    with pytest.raises(InvalidValue):
        DatasetPattern(text)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("%", "net.example.com", True),
        ("net.example.%", "net.example.com", True),
        ("net.example.%", "net.example", False),
        ("nEt.eXample%", "net.example.com", True),
        ("%odf%", "net.example.odf", True),
        ("%odf%", "net.example.com", False),
        ("net%com", "net.example.com", True),
        ("net%com", "net.example.comm", False),
        ("net%com", "xnet.example.com", False),
        ("net%net", "net", False),
        ("net%net", "netnet", True),
        ("a%b%a", "aba", True),
        ("a%b%a", "ab", False),
        ("%.a%.b", "x.a.b", True),
        ("%.a%.b", "x.b.a", False),
        ("%a%a%a%", "aa", False),
        ("%a%a%a%", "aaa", True),
        ("net.e%.com", "netxexample.com", False),
        ("alice/%", "alice/net.example", True),
        ("ALICE/net%", "alice/net.example", True),
        ("alice/%", "bob/net.example", False),
        ("alice/%", "net.example", False),
        ("%", "alice/net.example", True),
    ],
)
def test_matching(pattern: str, name: str, fits: bool):
    assert DatasetPattern(pattern).matches(DatasetAlias.parse(name)) is fits


@given(st.from_regex(r"[ab]{0,3}(%[ab]{0,3}){1,4}", fullmatch=True), st.from_regex(r"[ab]{1,10}", fullmatch=True))
def test_matching_is_that_of_regular_expressions(pattern: str, name: str):
    expected = re.fullmatch(pattern.replace("%", ".*"), name) is not None
    assert DatasetPattern(pattern).matches(DatasetName(name)) is expected


def test_matching_takes_no_exponential_time():
    assert run_limited(_match_hard, megabytes=100, seconds=5) is False


def _match_hard() -> bool:
    return DatasetPattern("%a" * 99 + "%b").matches(DatasetName("a" * 200))


def test_reading_patterns_takes_no_exponential_time():
    with pytest.raises(InvalidValue):
        run_limited(DatasetPattern, "a-a.a" * 39 + "_", megabytes=100, seconds=5)
    with pytest.raises(InvalidValue):
        run_limited(DatasetPattern, "%a-" * 60 + "-", megabytes=100, seconds=5)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("org.nycflights.flight", "org.nycflights.flights"),
        ("flights", "org.nycflights.flights"),
        ("com.example.flihgts", "org.nycflights.flights"),
        ("alice/flights", "org.nycflights.flights"),
        ("com.exmaple.rates", "com.example.rates"),
        ("rates", "com.example.rates or alice/rates"),
        ("zzz", None),
        ("hourly", "com.example.weather-by-hour.hourly-means"),
        ("by-hour", "com.example.weather-by-hour.hourly-means"),
        ("x" * 100_000, None),
    ],
)
def test_misspelt_names_and_parts_of_names_find_what_was_meant(written: str, meant: str | None):
    known = ["org.nycflights.flights", "com.example.rates", "alice/rates", "com.example.weather-by-hour.hourly-means"]
    assert did_you_mean_dataset(written, known) == (f"Did you mean {meant}?" if meant else None)


def test_escapes_in_urls_are_no_wildcards():
    assert is_url("https://example.com/a%20b")
    assert not is_pattern("https://example.com/a%20b")
    assert not is_pattern("name")
