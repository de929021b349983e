"""Files for inferring manifests: some give datasets, others are rejected."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import io
import os
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

PEOPLE = b"id,name,born,height\n1,Ada,1815-12-10,1.6\n2,Grace,1906-12-09,1.7\n"


def parquet(table: pa.Table, row_group_size: int | None = None) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=row_group_size)
    return sink.getvalue()


def zipped(**files: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "."), data)
    return sink.getvalue()


UTC = dt.timezone.utc
MOMENT = dt.datetime(2024, 3, 1, 12, 0, 0, 123456, UTC)

ALL_TYPES = pa.table(
    {
        "b": pa.array([True, None]),
        "i8": pa.array([1, -2], pa.int8()),
        "u64": pa.array([1, 2**64 - 1], pa.uint64()),
        "f16": pa.array([1.5, None], pa.float16()),
        "f32": pa.array([1.1, float("nan")], pa.float32()),
        "f64": pa.array([1.1, float("inf")]),
        "dec": pa.array([decimal.Decimal("1.10"), None], pa.decimal128(20, 2)),
        "wide": pa.array([decimal.Decimal("1.10"), None], pa.decimal256(50, 2)),
        "text": pa.array(["a", "b\n"], pa.large_string()),
        "word": pa.array(["x", "x"]).dictionary_encode(),
        "bytes": pa.array([b"\x00", b"\xff"]),
        "fixed": pa.array([b"12", b"34"], pa.binary(2)),
        "day": pa.array([dt.date(2024, 1, 1), None]),
        "at": pa.array([MOMENT, MOMENT], pa.timestamp("us", "UTC")),
        "local": pa.array([MOMENT.replace(tzinfo=None), None], pa.timestamp("ns")),
        "clock": pa.array([dt.time(1, 2, 3), None], pa.time64("us")),
        "list": pa.array([[1, None], None], pa.list_(pa.int32())),
        "struct": pa.array([{"a": 1, "b": None}, None], pa.struct([("a", pa.int64()), ("b", pa.string())])),
        "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        "took": pa.array([dt.timedelta(1), None], pa.duration("us")),
        "items": pa.array([[{"a": 1}], None], pa.list_(pa.struct([("a", pa.int64())]))),
        "nothing": pa.nulls(2),
    }
)

WORKING: dict[str, tuple[str, bytes]] = {
    "plain": ("people.csv", PEOPLE),
    "quotes": ("q.csv", b'id,text\n1,"a, ""b"""\n2,"two\nlines"\n'),
    "semicolons and decimal commas": ("s.csv", b"id;price\n1;1,50\n2;2,75\n"),
    "tabs": ("t.tsv", b"id\tname\n1\ta\n2\tb\n"),
    "bars": ("b.txt", b"id|name\n1|a\n2|b\n"),
    "single quotes": ("q.csv", b"id,name\n1,'a,b'\n2,'c'\n"),
    "no header": ("n.csv", b"1,a,2024-01-01\n2,b,2024-01-02\n"),
    "byte order mark": ("bom.csv", b"\xef\xbb\xbfid,name\n1,\xc3\xa9\n2,b\n"),
    "latin-1": ("l.csv", b"id,name\n1,\xe9t\xe9\n2,b\n"),
    "bytes that windows-1252 lacks": ("l.csv", b"id,name\n1,\xe9\x81\n2,b\n"),
    "utf-16": ("u.csv", "id,name\n1,é\n2,b\n".encode("utf-16")),
    "carriage returns": ("c.csv", b"id,name\r1,a\r2,b\r"),
    "CRLF": ("c.csv", b"id,name\r\n1,a\r\n2,b\r\n"),
    "no line end": ("c.csv", b"id,name\n1,a"),
    "one column": ("one.csv", b"word\nalpha\nbeta\n"),
    "one column of numbers": ("one.csv", b"1\n2\n3\n"),
    "one column with commas": ("one.csv", b"text\nhello; world\nhello\n"),
    "one row": ("row.csv", b"a,b\n1,2\n"),
    "a header alone": ("header.csv", b"id,name\n"),
    "a single word": ("word.csv", b"word"),
    "columns of nulls": ("nulls.csv", b"id,nothing,name\n1,,a\n2,,b\n"),
    "rows of nulls": ("nulls.csv", b"a,b\n,\n,\n"),
    "duplicate names": ("d.csv", b"a,b,a,a\n1,2,3,4\n5,6,7,8\n"),
    "names missing": ("d.csv", b",b,\n1,2,3\n5,6,7\n"),
    "odd names": (
        "o.csv",
        b'first name,a.b,"c,d","e""f",#g,yes,\xc3\xa4,"two\nlines",: x,- y,{z\n1,2,3,4,5,6,7,8,9,10,11\n',
    ),
    "names that differ in case": ("o.csv", b"id,ID,Id\n1,2,3\n4,5,6\n"),
    "names of system columns": ("s.csv", b"offset,op,system_time,name\n1,a,2024-01-01,x\n2,b,2024-01-02,y\n"),
    "operations": ("s.csv", b"op,event_time,id\n0,2024-01-01,1\n1,2024-01-02,2\n"),
    "an event_time that is none": ("s.csv", b"event_time,id,day\nsoon,1,2024-01-01\nlater,2,2024-01-02\n"),
    "an event_time that is none, and no other": ("s.csv", b"event_time,id\nsoon,1\nlater,2\n"),
    "event times with gaps": ("g.csv", b"event_time,id\n2024-01-01T00:00:00Z,1\n,2\n2024-01-02T10:00:00Z,3\n"),
    "unordered times": ("t.csv", b"at,v\n2024-01-03,1\n2024-01-01,2\n2024-01-02,3\n"),
    "leading zeros": ("z.csv", b"zip,n\n00123,1\n99999,2\n"),
    "phone numbers": ("z.csv", b"phone,n\n+49123,1\n+1555,2\n"),
    "large integers": ("big.csv", b"id,n\n9223372036854775807,1\n9223372036854775808,2\n"),
    "long fractions": ("big.csv", b"id,n\n1,12345678901234567890.5\n2,1.5\n"),
    "not a number": ("nan.csv", b"id,n\n1,NaN\n2,1.5\n"),
    "markers of null": ("na.csv", b"id,n\n1,NA\n2,1.5\n3,7\n"),
    "markers and empty values": ("na.csv", b"id,n,m\n1,NA,\n2,1.5,x\n3,7,y\n"),
    "truth values": ("t.csv", b"id,ok\n1,true\n2,FALSE\n"),
    "German days": ("d.csv", b"id,tag\n1,31.12.2024\n2,01.02.2024\n"),
    "ambiguous days": ("d.csv", b"id,day\n1,01/02/2024\n2,03/04/2024\n"),
    "ambiguous days that another column settles": (
        "d.csv",
        b"id,day,till\n1,01/02/2024,31/12/2024\n2,03/04/2024,02/01/2024\n",
    ),
    "clock times": ("d.csv", b"id,at\n1,2024-01-31 12:00\n2,2024-02-01 13:15\n"),
    "American times": ("d.csv", b"id,at\n1,12/31/2024 11:59 PM\n2,01/01/2024 01:15 AM\n"),
    "money": ("m.csv", b"id,price,total_amount\n1,1.5,10\n2,2.125,7.25\n"),
    "times with nanoseconds": ("d.csv", b"at,v\n2024-01-01T00:00:00.123456789Z,1\n2024-01-01T00:00:00.123456788Z,2\n"),
    "years as names": ("y.csv", b"country,2019,2020,2021\nNO,1,2,3\nSE,4,5,6\n"),
    "quotes in the middle": ("i.csv", b'id,size\n1,5" pipe\n2,6" pipe\n'),
    "an opening quote": ("i.csv", b'id,size\n1,"5 pipe\n2,6 pipe\n'),
    "backslashes": ("w.csv", b'id,path\n1,C:\\x\n2,"a\\"b"\n'),
    "blank lines": ("b.csv", b"\n\nid,name\n\n1,a\n\n2,b\n\n"),
    "duplicate rows": ("dup.csv", b"a,b\n1,2\n1,2\n"),
    "rates": ("r.csv", b"date,currency,rate\n2024-01-01,EUR,1\n2024-01-01,USD,2\n2024-01-02,EUR,1\n"),
    "three together": (
        "r.csv",
        b"date,a,b,v\n2024-01-01,x,p,1\n2024-01-01,x,q,1\n2024-01-01,y,p,1\n2024-01-02,x,p,1\n",
    ),
    "json": ("a.json", b'[{"id": 1, "at": "2024-01-01T00:00:00Z"}, {"id": 2, "at": null}]'),
    "json below a key": ("a.json", b'{"meta": {"n": 2}, "data": {"rows": [{"id": 1}, {"id": 2}]}}'),
    "one json object": ("a.json", b'{\n "id": 1,\n "tags": ["a"]\n}'),
    "an empty array": ("a.json", b'{"rows": [{"id": 1, "list": []}]}'),
    "ndjson": ("a.ndjson", b'{"id":1,"o":{"a":{"b":[1,2]}},"x":"00"}\n{"id":2,"o":{"a":null},"y":1.5}\n'),
    "ndjson of everything": (
        "a.jsonl",
        (
            b'{"id":1,"mixed":1,"many":[{"a":1}],"empty":{},"big":9223372036854775808,"n":null,"ok":"2024-01-01"}\n'
            b'{"id":2,"mixed":"x","many":[],"empty":{},"big":1,"n":null,"a b":false,"ok":"2024-01-02"}\n'
        ),
    ),
    "German days in json": ("a.json", b'[{"id": 1, "am": "31.12.2024"}, {"id": 2, "am": "01.02.2024"}]'),
    "geojson": (
        "places.geojson",
        (
            b'{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"id":1,"on":"2024-01-01"},'
            b'"geometry":{"type":"Point","coordinates":[1,2]}},{"type":"Feature","properties":{"id":2},'
            b'"geometry":null}]}'
        ),
    ),
    "features a line": (
        "places.ndgeojson",
        (
            b'{"type":"Feature","properties":{"id":1},"geometry":{"type":"Point","coordinates":[1,2]}}\n'
            b'{"type":"Feature","properties":{"id":2},"geometry":null}\n'
        ),
    ),
    "parquet": ("all.parquet", parquet(ALL_TYPES)),
    "parquet without rows": ("none.parquet", parquet(ALL_TYPES.slice(0, 0))),
    "parquet by another name": ("data.bin", parquet(pa.table({"id": [1, 2]}))),
    "gzip": ("people.csv.gz", gzip.compress(PEOPLE)),
    "zip": ("people.zip", zipped(people__csv=PEOPLE)),
    "a name with spaces": ("my people ä#%41?.csv", PEOPLE),
}


REFUSED: dict[str, tuple[str, bytes, str]] = {
    "nothing": ("a.csv", b"", "a.csv is empty"),
    "blanks": ("a.csv", b" \n\t\r\n", "a.csv is empty"),
    "zeros": ("a.csv", b"\0" * 100, "a.csv is empty"),
    "a binary file": ("a.csv", b"a,b\n\x00\x01\x02", "is neither text"),
    "uneven lines": ("a.csv", b"a,b\n1,2\n1,2,3\n", "a.csv, line 3"),
    "a title above": ("a.csv", b"My table\na,b\n1,2\n", "a.csv, line 2"),
    "a quote that never closes": ("a.csv", b'a,b\n1,2\n"x,3\n4,5,"\n', "a.csv, line"),
    "an array of numbers": ("a.json", b"[1, 2]", "is a JSON array, but not of objects"),
    "broken json": ("a.json", b'[{"id": 1}, {"id": }]', "a.json, line 1"),
    "an empty json array": ("a.json", b"[]", "a.json has no columns"),
    "only an empty object": ("a.json", b'{"a": {}}', "a.json has no columns"),
    "a broken line of json": ("a.ndjson", b'{"id": 1}\n{"id"\n', "a.ndjson, line 2"),
    "a web page": ("a.csv", b"<!DOCTYPE html><html></html>", "is a web page"),
    "a workbook": ("a.xlsx", zipped(**{"[Content_Types]__xml": b"", "xl/a": b""}), "workbook of a spreadsheet"),
    "a PDF": ("a.pdf", b"%PDF-1.4", "is a PDF document"),
    "an archive of two files": ("a.zip", zipped(a__csv=PEOPLE, b__csv=PEOPLE), "archive of 2 files: a.csv, b.csv"),
    "an empty archive": ("a.zip", zipped(), "is an empty archive"),
    "half a gzip file": ("a.csv.gz", gzip.compress(os.urandom(5000))[:2000], "a.csv.gz"),
    "half a parquet file": ("a.parquet", parquet(ALL_TYPES)[:500], "is not a readable Parquet file"),
    "nothing but what no slice holds": ("a.parquet", parquet(ALL_TYPES.select(["map", "took"])), "has no columns"),
    "a broken shapefile": ("a.zip", zipped(a__shp=b"x"), "a.zip"),
    "half a feature": ("a.geojson", b'{"type": "FeatureCollection", "features": [{"type": "Feature"}]}', "a.geojson"),
}
