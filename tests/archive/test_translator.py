"""Patterns `EXTRACT~FORMAT`: words of a record out of a path, as datalake has them, whatever the pattern or the path."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfpy.archive.naming.translator import MAX_LENGTH, NoMatch, TranslationFailed, Translator
from odfpy.errors import UsageError

JOB = r".*job-(?P<job_id>[0-9]+).log$~job{job_id}"
JOB_LOG = "/var/log/jobs/job-1234.log"


@pytest.mark.parametrize(
    ("expression", "path", "word"),
    [
        (JOB, JOB_LOG, "job1234"),
        (r".*/(?P<server>.*)/job-[0-9]+.log$~{server}", "/var/log/jobs/web7/job-1.log", "web7"),
        (r"/(?P<a>[^/]+)/(?P<b>[^/]+)~{b}-{a}-{b}", "/one/two/three", "two-one-two"),
        (".*~always", "/whatever", "always"),
        (r".*(?P<n>\d+)~{n:0>4}", "/7", "0007"),
        (r".*/(?P<n>.*)~{{{n}}}", "/x", "{x}"),
        (r"(?i).*/(?P<n>LOG)~{n}", "/log", "log"),
        (r".*/(?P<yes>a)?(?P<no>b)?~{yes}-{no}", "/a", "a-"),
        (r"C:.*\\(?P<n>\w+)~{n}", r"C:\logs\web", "web"),
        (r".*/(?P<n>ü+)~{n}", "/üü", "üü"),
    ],
)
def test_a_pattern_makes_a_word_of_a_path(expression: str, path: str, word: str) -> None:
    assert Translator(expression).translate(path) == word


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        (r".*/(a|b)-(?P<n>\d)~{n}", "/b-1"),
        (r".*/[(](?P<n>\d)[)]~{n}", "/(1)"),
        (r".*/[](](?P<n>\d)~{n}", "/(1"),
        (r".*/[^](](?P<n>\d)~{n}", "/x1"),
        (r".*/\((?P<n>\d)\)~{n}", "/(1)"),
        (r".*/\Q(.\E(?P<n>\d)~{n}", "/(.1"),
        (r".*/[[:alpha:](](?P<n>\d)~{n}", "/(1"),
        (r".*/((x)|(?P<n>\d))~{n}", "/1"),
    ],
)
def test_groups_without_names_and_literal_brackets_are_told_apart(expression: str, path: str) -> None:
    assert Translator(expression).translate(path) == "1"


def test_a_pattern_is_matched_at_the_beginning_and_need_not_reach_the_end() -> None:
    translator = Translator("/var/(?P<n>[a-z]+)~{n}")
    assert translator.translate("/var/log/and/more") == "log"
    with pytest.raises(NoMatch, match="does not match"):
        translator.translate("/srv/var/log")


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("no-tilde", "0 times '~'"),
        ("here~there~", "2 times '~'"),
        (r".*job-(?P<job_id>[0-9]+)~job{job_id", "expected '}'"),
        (r".*job-(?P<job_id>[0-9]+)~jobjob_id}", "Single '}'"),
        (r".*job-([0-9]+)~job{job_id}", "no field {job_id}"),
        (r".*job-(?P<job_id>[0-9]+)~job{foo_id}", "no field {foo_id}"),
        (r".*job-(?P<job_id[0-9]+)~job{job_id}", "invalid named capture group"),
        (r".*job-(?P<job_id>[0-9]+~job{job_id}", r"missing \)"),
        (r"a)(?:b~x", r"unexpected \)"),
        ("(?P<a>x)(?P<a>y)~{a}", "two groups 'a'"),
        ("(?=a)(?P<a>x)~{a}", "invalid perl operator"),
        (r"(?P<a>x)(?P=a)~{a}", "invalid perl operator"),
        (r"(?P<a>x\Z)~{a}", "invalid escape"),
        ("(?P<a>x{1001})~{a}", "invalid repetition size"),
        ("\ud800~x", "not a regular expression"),
        ("x" * (MAX_LENGTH + 1) + "~x", "1001 characters"),
    ],
)
def test_a_wrong_pattern_is_told_before_there_is_a_path(expression: str, told: str) -> None:
    with pytest.raises(TranslationFailed, match=told):
        Translator(expression)


@pytest.mark.parametrize(
    "format_",
    [
        *("{a.__class__}", "{a.real}", "{a[0]}", "{a[key]}", "{a!r}", "{a!s}", "{}", "{0}", "{a:{a}}", "{a:>1000}"),
        *("{a!r:>1000000000}", "{a:>10000000000}", "{a.__init__.__globals__}", "{a:.9999}", "{ a}", "{a:%Y}", "{a:x}"),
    ],
)
def test_a_format_reaches_nothing_but_the_groups(format_: str) -> None:
    with pytest.raises(TranslationFailed):
        Translator(f"(?P<a>.*)~{format_}")


def test_only_an_absolute_path_is_translated() -> None:
    with pytest.raises(TranslationFailed, match="not absolute"):
        Translator(JOB).translate(JOB_LOG.removeprefix("/"))


def test_a_path_that_is_no_text_is_refused() -> None:
    with pytest.raises(TranslationFailed, match="not UTF-8"):
        Translator(JOB).translate("/\udcff")


@pytest.mark.parametrize("extract", ["(?P<a>(a+)+)$", "(?P<a>(a|aa)+)$", "(?P<a>(.*)*)!", "(?P<a>(a|a|b?)*c)"])
def test_a_pattern_that_would_never_end_elsewhere_does(extract: str) -> None:
    begun = time.process_time()
    with pytest.raises(NoMatch):
        Translator(f"/{extract}~{{a}}").translate("/" + "a" * 4000 + "-")
    assert time.process_time() - begun < 30  # with backtracking it takes longer than there are stars


@settings(max_examples=200)
@given(
    st.text(alphabet="/ab1-.", max_size=20), st.sampled_from(["a+", "[^/]*", "a|b1", ".*?b", r"(a|b)+\d?", "a{2,3}"])
)
def test_what_both_understand_is_what_python_finds(rest: str, part: str) -> None:
    """Datalake has Python's expressions; where RE2 has the same syntax, it has the same meaning."""
    path, extract = f"/{rest}", f"/(x|(?P<word>{part}))"
    found = re.match(extract, path)
    if found is None:
        with pytest.raises(NoMatch):
            Translator(f"{extract}~{{word}}").translate(path)
    else:
        assert Translator(f"{extract}~{{word}}").translate(path) == (found["word"] or "")


@settings(max_examples=300)
@given(st.text(max_size=40), st.text(max_size=20))
def test_no_pattern_and_no_path_breaks_it(expression: str, path: str) -> None:
    try:
        word = Translator(expression).translate(f"/{path}")
    except UsageError:
        return
    assert isinstance(word, str)
