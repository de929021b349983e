"""Every error has a code, which is its own for ever, and `odf help CODE` explains it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.conftest import dataset_folder
from support.engine.raised_errors import error_classes

from odfpy.codec.explain import TEXTS, explanations
from odfpy.errors import OdfError

if TYPE_CHECKING:
    from cli.conftest import Odf

DOCS = Path(__file__).parents[2] / "docs"


ALL = error_classes()


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_has_a_code_and_an_explanation(error: type[OdfError]) -> None:
    assert "code" in vars(error), 'give the class a code: class Name(Parent, code="E...")'
    assert re.fullmatch(r"E[1-9]\d\d", error.code)
    assert error.code in explanations(), f"explain it in {TEXTS.name}"
    assert f"`{error.__name__}`" in explanations()[error.code].text


def test_no_two_errors_share_a_code_and_none_is_explained_that_is_not_there() -> None:
    assert sorted(error.code for error in ALL) == list(explanations())


def test_explanations_are_short_and_say_what_to_try() -> None:
    for item in explanations().values():
        assert "**Try:**" in item.text
        assert len(item.text.splitlines()) < 10
        assert all(code in explanations() for code in re.findall(r"E\d{3}", item.text))


def test_codes_that_people_have_seen_stay_what_they_are() -> None:
    """Codes are in logs, scripts and questions of people: add new ones, never change or reuse one."""
    known = {"DatasetNotFound": "E112", "DatasetLocked": "E120", "MalformedManifest": "E202", "SchemaError": "E210",
             "HashMismatch": "E221", "WatermarkWentBack": "E305", "FetchError": "E401", "BadValue": "E402",
             "InvalidQuery": "E501", "EngineUnavailable": "E505", "DatasetsDiverged": "E601", "InternalError": "E999"}  # fmt: skip
    assert {error.__name__: error.code for error in ALL}.items() >= known.items()


def test_the_texts_are_those_of_the_documentation() -> None:
    assert TEXTS.samefile(DOCS / "errors.md")


# --- On the screen ---------------------------------------------------------------------------------------------------


def test_a_message_ends_with_its_code_and_help_explains_that(odf: Odf, workspace: Path) -> None:
    refused = odf("show", "com.example.nothing")
    first = refused.says.splitlines()[0]
    assert first.endswith(" (E112)")
    explained = odf("help", "E112")
    assert (explained.code, explained.err) == (0, "")
    assert explained.out.startswith("E112: there is no such dataset\n\nDatasetNotFound. ")
    assert "Try: odf list shows the names" in explained.out
    assert odf("help", "e112").out == explained.out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["list", "--nothing"], "E100"),
        (["version", "too", "many"], "E100"),
        (["lst"], "E100"),
        (["pull", "com.example.rates", "--set-watermark", "soon"], "E101"),
        (["pull", "com.example.rates", "--set-watermark", "1999-01-01"], "E305"),
        (["ingest", "com.example.rates", "nothing.csv"], "E110"),
        (["ingest", "com.example.rates", "bad.ndjson"], "E402"),
        (["pull", "nowhere/x"], "E113"),
        (["sql", "--engine", "datafusion", "-c", "selekt 1"], "E501"),
        (["sql", "--engine", "sparc", "-c", "select 1"], "E504"),
        (["add", "bad.ndjson"], "E202"),
    ],
)
def test_codes(words: list[str], code: str, odf: Odf, workspace: Path) -> None:
    (workspace / "bad.ndjson").write_text('{"event_time":"x","id":9,"name":"z"}\n')
    assert f"({code})" in odf(*words).says.splitlines()[0]


def test_programs_are_given_the_code_too(odf: Odf, workspace: Path) -> None:
    (workspace / ".odf" / "datasets").rename(workspace / "elsewhere")
    odf("init", "other")
    (result,) = odf("pull", str(workspace / "nowhere"), "-o", "json").json
    assert result["code"] == "E112"


def test_what_a_verification_finds_has_a_code_too(odf: Odf, workspace: Path) -> None:
    file = next((dataset_folder(workspace, "com.example.rates") / "data").iterdir())
    file.chmod(0o600)
    file.write_bytes(file.read_bytes().replace(b"PAR1", b"PAR2"))
    found = odf("verify", "com.example.rates", "--integrity")
    assert found.code == 1
    assert re.search(r"error: Damaged slice: its bytes have the hash \w+ \(E221\)\n", found.out)
    report = odf("verify", "com.example.rates", "--integrity", "-o", "json").json
    assert [finding["code"] for finding in report[0]["findings"]] == ["E221"]


def test_a_code_that_does_not_exist(odf: Odf) -> None:
    refused = odf("help", "E998")
    assert refused.code == 2
    assert "E998" in refused.says
    assert "Did you mean E999" in refused.err
