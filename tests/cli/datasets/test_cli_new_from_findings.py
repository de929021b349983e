"""`odf new --from`: what it finds in data, and what it leaves for people to decide."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.conftest import Odf
from support.ingest.inferable import WORKING
from support.ingest.new_from import folder

__all__ = ["folder"]


def found_in(odf: Odf, data: bytes, file: str = "a.csv") -> dict[str, Any]:
    """The findings for a file."""
    Path(file).write_bytes(data)
    found = odf("new", "x", "--from", file, "-f", "-", "-o", "json")
    assert found.code == 0, found.err
    result: dict[str, Any] = found.json
    return result


def column(*values: str, name: str = "c") -> bytes:
    """A file with an id and another column."""
    lines = [f"id,{name}", *(f"{number},{value}" for number, value in enumerate(values, 1))]
    return "\n".join(lines).encode() + b"\n"


@pytest.mark.parametrize(
    ("values", "name", "wanted"),
    [
        (["00123", "1"], "zip", "Option<String>"),
        (["+49123", "1"], "phone", "Option<String>"),
        (["1", "-2", ""], "n", "Option<Int64>"),
        (["3000000000"], "n", "Option<Int64>"),
        (["9223372036854775808"], "n", "Option<String>"),
        (["1", "2.5"], "n", "Option<Float64>"),
        (["1e5", "2"], "n", "Option<Float64>"),
        (["0.5", "0"], "n", "Option<Float64>"),
        (["12345678901234567.5"], "n", "Option<String>"),
        (["1.5", "10"], "price", "Option<Decimal(18, 2)>"),
        (["1.505"], "totalAmount", "Option<Decimal(18, 3)>"),
        (["1.00001"], "price", "Option<Float64>"),
        (["1.5e3"], "price", "Option<Float64>"),
        (["10", "20"], "price", "Option<Int64>"),
        (["true", "False"], "b", "Option<Bool>"),
        (["0", "1"], "b", "Option<Int64>"),
        (["yes", "no"], "b", "Option<String>"),
        (["NaN", "inf"], "n", "Option<String>"),
        (["2024-02-29"], "d", "Date"),
        (["2023-02-29"], "d", "Option<String>"),
        (["2024"], "d", "Option<Int64>"),
        (["20240229"], "d", "Option<Int64>"),
        (["2024-02-29T10:00:00+01:00", "2024-02-29"], "d", "Timestamp(Millisecond, UTC)"),
        (["29.02.2024", "01.02.2024"], "d", "Date"),
        (["01/02/2024", "03/04/2024"], "d", "Option<String>"),
        (["01/02/2024", "13/04/2024"], "d", "Date"),
        (["04/13/2024", "13/04/2024"], "d", "Option<String>"),
        (["29 Feb 2024"], "d", "Date"),
        (["29.02.2024 10:30"], "d", "Timestamp(Millisecond, UTC)"),
        (["1,5"], "n", "Option<Int64>"),
        (["", ""], "n", "Option<String>"),
    ],
)
def test_types_are_the_narrowest_that_lose_nothing(values: list[str], name: str, wanted: str, odf: Odf, folder: Path):
    data = column(*values, name=name)
    if values == ["1,5"]:
        data = b"id;n\n1;1\n"
    assert found_in(odf, data)["columns"][1]["type"] == wanted


@pytest.mark.parametrize(
    ("header", "wanted", "others"),
    [
        ("id,date,event_time", "event_time", ["date"]),
        ("id,updated_at,created_at", "created_at", ["updated_at"]),
        ("id,date,timestamp", "timestamp", ["date"]),
        ("id,birth_date,expiresAt", None, ["birth_date", "expiresAt"]),
        ("id,due_date,orderDate", "orderDate", ["due_date"]),
        ("id,a,b", "a", ["b"]),
    ],
)
def test_the_event_time_is_chosen_by_name(header: str, wanted: str | None, others: list[str], odf: Odf, folder: Path):
    found = found_in(odf, f"{header}\n1,2024-01-01,2024-01-02\n2,2024-01-01,2024-01-02\n".encode())
    assert found["eventTime"] == {"column": wanted, "others": others, "nulls": 0}
    named = None if wanted in (None, "event_time") else {"eventTimeColumn": wanted}
    assert found["vocabulary"] == named
    assert all(other in found["manifest"] for other in others)


STRATEGIES = {
    b"id,date,v\n1,2024-01-01,1\n2,2024-01-01,1\n": {"kind": "Ledger", "primaryKey": ["id"]},
    b"id,date,v\n1,2024-01-01,1\n1,2024-01-02,1\n": {"kind": "Ledger", "primaryKey": ["date", "id"]},
    b"isin,date,v\nA,2024-01-01,1\nB,2024-01-01,1\n": {"kind": "Ledger", "primaryKey": ["date", "isin"]},
    b"tradeId,date,v\nA,2024-01-01,1\nB,2024-01-01,1\n": {"kind": "Ledger", "primaryKey": ["tradeId"]},
    b"id,updated_at,v\n1,2024-01-01,1\n2,2024-01-01,1\n": {"kind": "Ledger", "primaryKey": ["updated_at", "id"]},
    b"date,city,v\n2024-01-01,a,1\n2024-01-01,b,1\n2024-01-02,a,1\n": {
        "kind": "Ledger",
        "primaryKey": ["date", "city"],
    },
    b"date,v\n2024-01-01,1.5\n2024-01-02,1.5\n": {"kind": "Ledger", "primaryKey": ["date"]},
    b"date,v\n2024-01-01,1.5\n2024-01-01,1.5\n": {"kind": "Append"},
    b"v,id\n5,1\n5,2\n": {"kind": "Snapshot", "primaryKey": ["id"]},
    b"v,id\n5,1\n5,\n": {"kind": "Append"},
    b"city,v\na,1\nb,1\n": {"kind": "Snapshot", "primaryKey": ["city"]},
    b"city,year,v\na,1,1.5\na,2,1.5\nb,1,1.5\n": {"kind": "Snapshot", "primaryKey": ["city", "year"]},
    b"a,b\n1,2\n1,2\n": {"kind": "Append"},
    b"a,b\n1,2\n": {"kind": "Append"},
    b"v\n1.5\n2.5\n": {"kind": "Append"},
}


@pytest.mark.parametrize("data", STRATEGIES)
def test_the_strategy_follows_from_keys_and_event_time(data: bytes, odf: Odf, folder: Path):
    found = found_in(odf, data)
    assert {key: value for key, value in found["merge"].items() if key != "reason"} == STRATEGIES[data]
    others = {"Append", "Ledger", "Snapshot", "UpsertStream", "ChangelogStream"} - {STRATEGIES[data]["kind"]}
    assert all(f"# kind: {kind}\n" in found["manifest"] for kind in others), "each can be had by its comment"
    assert {one["kind"] for one in found["others"]} == others


@pytest.mark.parametrize("kind", ["Append", "Ledger", "Snapshot", "UpsertStream"])
def test_the_other_strategies_in_the_comments_work(kind: str, odf: Odf, folder: Path):
    text = found_in(odf, WORKING["plain"][1])["manifest"]
    before, _, after = text.partition("      merge:\n")
    lines = after.splitlines()
    if f"        # kind: {kind}" in lines:
        at = lines.index(f"        # kind: {kind}")
        chosen = [line.replace("# ", "") for line in lines[at : at + 1 + (kind != "Append")]]
        Path("x.yaml").write_text(before + "      merge:\n" + "\n".join(chosen) + "\n")
    else:
        Path("x.yaml").write_text(text)
    assert odf("add", "x.yaml").code == 0
    assert odf("pull", "x").code == 0


def test_names_of_strangers_stay_in_their_comments(odf: Odf, folder: Path):
    name = "x\n      merge: {kind: Append}\u2028\u202e\x85x"
    found = found_in(odf, f'id,"{name}","{name}",date,"due\n# at"\n1,2,3,2024-01-01,2024-01-02\n'.encode())
    assert [one["name"] for one in found["columns"]][1] == name
    assert len(found["manifest"].splitlines()) == len(found["manifest"].split("\n")) - 1
    assert found["manifest"].count("\n      merge:") == 1


def test_a_line_for_excel_is_no_header(folder: Path, odf: Odf) -> None:
    Path("a.csv").write_bytes(b"sep=;\r\nid;c\r\n1;2\r\n")
    refused = odf("new", "x", "--from", "a.csv", "-f", "-")
    assert (refused.code, refused.out) == (1, "")
    assert "begins with 'sep=': it tells Excel the separator" in refused.err


def test_times_in_parquet_of_spark_are_as_written(folder: Path, odf: Odf) -> None:
    """Without end, as many say it with 9999-12-31."""
    table = pa.table({"id": [1], "until": pa.array([datetime(9999, 12, 31)], pa.timestamp("us"))})  # noqa: DTZ001
    pq.write_table(table, "spark.parquet", use_deprecated_int96_timestamps=True)
    found = found_in(odf, Path("spark.parquet").read_bytes(), "a.parquet")
    assert found["firstRows"][0]["until"] == "9999-12-31T00:00:00Z"


@pytest.mark.parametrize(
    ("lines", "escape", "names"),
    [
        ([r'1,"\\server\share"', r'2,"C:\dir\"', '3,"say ""hi"""'], "", [r"\\server\share", "C:\\dir\\", 'say "hi"']),
        ([r'1,"a\b"', r"2,c\\d"], "", [r"a\b", r"c\\d"]),
        ([r'1,"say \"hi\""', r'2,"a\\b"'], None, ['say "hi"', r"a\b"]),
        ([r"1,a\\b", '2,"c,d"'], None, [r"a\\b", "c,d"]),
    ],
    ids=["paths", "one backslash", "escaped quotes", "outside of quotes"],
)
def test_backslashes_that_escape_nothing_are_text(
    folder: Path, odf: Odf, lines: list[str], escape: str | None, names: list[str]
) -> None:
    """As Excel and most programs write them, without an escape character."""
    found = found_in(odf, "\n".join(["id,name", *lines, ""]).encode())
    assert [row["name"] for row in found["firstRows"]] == names
    assert ('escape: ""' in found["manifest"]) is (escape == "")
