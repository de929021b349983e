"""`odf new --from`: whatever the data, the manifest works and gives the rows that were shown, or is refused in words."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Odf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.ingest.inferable import REFUSED, WORKING
from support.ingest.new_from import comes_as_shown, folder, inside

__all__ = ["folder"]


@pytest.mark.slow_after(30)
@pytest.mark.parametrize("sample", WORKING)
def test_the_manifest_gives_the_rows_that_were_shown(sample: str, odf: Odf, folder: Path):
    file, data = WORKING[sample]
    (folder / file).write_bytes(data)
    comes_as_shown(odf, file)


@pytest.mark.parametrize("sample", REFUSED)
def test_what_gives_no_dataset_is_refused_in_words(sample: str, odf: Odf, folder: Path):
    file, data, words = REFUSED[sample]
    (folder / file).write_bytes(data)
    before = sorted(folder.iterdir())
    refused = odf("new", "x", "--from", file)
    assert refused.code in (1, 2)
    assert words in refused.says
    assert refused.out == ""
    assert sorted(folder.iterdir()) == before


# --- Everything that CSV can be --------------------------------------------------------------------------------------

CELLS = st.one_of(
    st.sampled_from(["", "0", "1", "-5", "007", "1.5", "1e5", "NaN", "true", "2024-01-01", "31.12.2024", "01/02/2024"]),
    st.sampled_from(["2024-01-01T10:00:00Z", "2024-01-01 10:00", "NA", "12:30", '"', "'", "\\", "a,b", "a;b", " x "]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6),
)


@settings(max_examples=examples(12, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_table_comes_as_shown_or_is_refused(
    data: st.DataObject, odf: Odf, tmp_path_factory: pytest.TempPathFactory
):
    width = data.draw(st.integers(1, 4))
    rows = data.draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=6))
    separator = data.draw(st.sampled_from(",;\t|"))
    sink = io.StringIO()
    csv.writer(sink, delimiter=separator, lineterminator=data.draw(st.sampled_from(["\n", "\r\n"]))).writerows(rows)
    with inside(tmp_path_factory.mktemp("any")):
        comes_as_shown_or_is_refused(odf, "a.csv", sink.getvalue())


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**64), 2**64),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(["", "2024-01-01", "2024-01-01T10:00:00+02:00", "31.12.2024", "007", "x"]),
        st.text(max_size=4),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)
NAMES = st.sampled_from(["id", "event_time", "date", "op", "offset", "a b", "a.b", "ä", "", "ID"])


@settings(max_examples=examples(10, 40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    records=st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=4),
    file=st.sampled_from(["a.json", "a.ndjson"]),
)
def test_any_json_comes_as_shown_or_is_refused(
    records: list[dict[str, Any]], file: str, odf: Odf, tmp_path_factory: pytest.TempPathFactory
):
    text = json.dumps(records) if file == "a.json" else "\n".join(map(json.dumps, records))
    with inside(tmp_path_factory.mktemp("any")):
        comes_as_shown_or_is_refused(odf, file, text)


def comes_as_shown_or_is_refused(odf: Odf, file: str, text: str) -> None:
    """Check one of the two, in a new workspace in the current folder."""
    assert odf("init").code == 0
    Path(file).write_text(text, encoding="utf-8", newline="")
    found = odf("new", "x", "--from", file, "-o", "json")
    if found.code:
        assert found.code in (1, 2)
        assert found.says
        assert not Path("x.yaml").exists()
    else:
        Path("x.yaml").unlink()
        comes_as_shown(odf, file)
