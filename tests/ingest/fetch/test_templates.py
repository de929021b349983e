"""Templates: alternatives in order, missing variables named, secrets never shown."""

from __future__ import annotations

import pytest

from odfpy.errors import FetchError, InvalidValue
from odfpy.ingest.templates import expand, without_secrets

ENVIRONMENT = {"A": "1", "EMPTY": "", "B-2": "x", "NESTED": "${{ env.A }}"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain", "plain"),
        ("${{ env.A }}", "1"),
        ("${{env.A}}/${{env.B-2}}", "1/x"),
        ("${{ env.NONE || 'default' }}", "default"),
        ("${{ env.NONE || env.A || 'default' }}", "1"),
        ("${{ env.NONE || -1.5 }}", "-1.5"),
        ("${{ env.NONE || '' }}", ""),
        ("${{ env.NONE || 'a || b' }}", "a || b"),
        ("${{ env.EMPTY || 'default' }}", ""),
        ("${{ 'text' }}", "text"),
        ("${{ env.NESTED }}", "${{ env.A }}"),
        ("${ env.A }", "${ env.A }"),
    ],
)
def test_template_is_expanded(text: str, wanted: str):
    assert expand(text, ENVIRONMENT) == wanted


@pytest.mark.parametrize(
    ("text", "names"), [("${{ env.KEY }}", "KEY"), ("a ${{ env.A }} ${{ env.KEY || env.OTHER }}", "KEY or OTHER")]
)
def test_missing_variable_is_named(text: str, names: str):
    with pytest.raises(FetchError, match=f"^The environment variable {names} is not set") as caught:
        expand(text, ENVIRONMENT)
    assert "${{ env.KEY || '...' }}" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text", ["${{ }}", "${{ A }}", "${{ env.A | 1 }}", "${{ 'a }}", "${{ env.NONE || }}", "${{ env.$ }}"]
)
def test_what_is_no_template_is_refused(text: str):
    with pytest.raises(InvalidValue):
        expand(text, ENVIRONMENT)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org/a.csv", "https://example.org/a.csv"),
        ("https://user:pass@example.org/a.csv?key=secret#x", "https://example.org/a.csv?..."),
        (
            "https://example.org/${{ env.KEY || 'none' }}/a?k=${{ env.KEY }}",
            "https://example.org/${{ env.KEY || 'none' }}/a?...",
        ),
        ("https://${{ env.USER }}:${{ env.PASS }}@example.org/", "https://example.org/"),
        ("${{ env.URL }}", "${{ env.URL }}"),
        ("file:in/a.csv", "file:in/a.csv"),
    ],
)
def test_urls_are_shown_without_secrets(url: str, shown: str):
    assert without_secrets(url) == shown
