"""The format of a sample, inferred from its first bytes and its name, and the offset at which to cut it."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from odfpy.chain.read_steps import (
    ReadCsv,
    ReadEsriShapefile,
    ReadGeoJson,
    ReadJson,
    ReadNdGeoJson,
    ReadNdJson,
    ReadParquet,
    ReadStep,
)
from odfpy.errors import IngestError, OdfError
from odfpy.ingest.inference.delimited import dialect_of
from odfpy.ingest.inference.sample import SAMPLE_BYTES, Sample
from odfpy.ingest.read.csv_text import Dialect, cut_at_record
from odfpy.ingest.read.files import TextFile, cut_at_line
from odfpy.ingest.read.geo.geojson_features import Collection
from odfpy.ingest.read.json_array import JsonArray, cut_at_item

_MARKS: Final = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_FALLBACK: Final = ("windows-1252", "latin-1")
_OTHERS: Final = (
    (b"%PDF", "a PDF document"),
    (b"PK\x05\x06", "an empty archive"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\xd0\xcf\x11\xe0", "a workbook or document of an older office program"),
    (b"ARROW1", "an Arrow or Feather file"),
    (b"Obj\x01", "an Avro file"),
    (b"ORC", "an ORC file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"(\xb5/\xfd", "a Zstandard file"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"<?xml", "XML"),
    (b"<!doctype", "a web page"),
    (b"<html", "a web page"),
)
_KNOWN: Final = "Known are CSV, JSON, NDJSON, GeoJSON, Parquet and zipped shapefiles, also packed with zip or gzip."
_DELIMITED: Final = (".csv", ".tsv", ".tab", ".psv")
_TOKEN: Final = re.compile(r'("(?:[^"\\]|\\.)*")(?:\s*:)?|[\[\]{}]')
_OBJECT: Final = re.compile(r"\s*\{")


@dataclass(frozen=True, slots=True)
class FoundFormat:
    """The read step for a sample.

    Attributes:
        read: the read step, still without a schema.
        sample: the sample, cut to whole records.
        remarks: uncertainties.
    """

    read: ReadStep
    sample: Sample
    remarks: tuple[str, ...] = ()


def find_format(sample: Sample, scratch: Path) -> FoundFormat:
    """Infer the read step for a sample.

    Args:
        sample: the unpacked sample.
        scratch: folder for the beginning of a sample that is too large.

    Raises:
        IngestError: the sample is empty, or its format is not supported.
    """
    head = sample.head(SAMPLE_BYTES + 1)
    if not head.strip(b"\0 \t\r\n\xef\xbb\xbf"):
        raise IngestError(f"{sample.name} is empty, so nothing can be inferred")
    if head.startswith(b"PAR1"):
        return FoundFormat(ReadParquet(), sample)
    if head.startswith(b"PK\x03\x04"):
        return FoundFormat(ReadEsriShapefile(), sample)
    for magic, what in _OTHERS:
        if head.lstrip(b"\xef\xbb\xbf \t\r\n")[: len(magic)].lower() == magic.lower():
            raise IngestError(f"{sample.name} is {what}, which odf cannot read", hint=_KNOWN)
    return _text_format(sample, head, scratch)


def _text_format(sample: Sample, head: bytes, scratch: Path) -> FoundFormat:
    is_whole = sample.is_whole and len(head) <= SAMPLE_BYTES
    encoding, remarks = _encoding(head, sample.name, is_whole=is_whole)
    text = _as_utf8(head[:SAMPLE_BYTES], encoding, is_whole=is_whole)
    step = _step_for(text, sample, is_whole=is_whole)
    if encoding is not None and isinstance(step, ReadCsv | ReadJson | ReadNdJson):
        step = replace(step, encoding=encoding)
    if is_whole:
        return FoundFormat(step, sample, remarks)
    target = scratch / "sample"
    target.write_bytes(text)
    cut = _cut(step, text, target, sample.name)
    if not cut:
        raise IngestError(
            f"{sample.name} has no whole record in its first {SAMPLE_BYTES >> 20} MiB",
            hint="Write the manifest manually: `odf new NAME` writes a template.",
        )
    target.write_bytes(cut if encoding is None else cut.decode().encode(encoding))
    return FoundFormat(step, replace(sample, path=target, is_whole=False), remarks)


# --- Encoding --------------------------------------------------------------------------------------------------------


def _encoding(head: bytes, name: str, *, is_whole: bool) -> tuple[str | None, tuple[str, ...]]:
    """Return the encoding to name in the read step, None for UTF-8, and remarks.

    Raises:
        IngestError: the sample is not text.
    """
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, ()
    if b"\0" in head:
        raise IngestError(f"{name} is neither text nor another format that odf knows", hint=_KNOWN)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=is_whole)
    except UnicodeDecodeError as error:
        line = head[: error.start].count(b"\n") + 1
        guess = next(one for one in _FALLBACK if _is_text_in(head, one))
        return guess, (f"line {line} is not UTF-8; {guess} is a guess, so look at letters with accents below",)
    return None, ()


def _is_text_in(head: bytes, encoding: str) -> bool:
    try:
        head.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _as_utf8(head: bytes, encoding: str | None, *, is_whole: bool) -> bytes:
    decoder = codecs.getincrementaldecoder(encoding or "utf-8")("replace" if encoding else "strict")
    return decoder.decode(head, final=is_whole).removeprefix("\ufeff").encode()


# --- Which format ----------------------------------------------------------------------------------------------------


def _step_for(text: bytes, sample: Sample, *, is_whole: bool) -> ReadStep:
    name = sample.name.lower().removesuffix(".gz").removesuffix(".zip")
    start = text.lstrip()[:1]
    if start in (b"[", b"{") and not name.endswith(_DELIMITED):
        step = _json_step(text, sample.name, is_whole=is_whole)
        if step is not None:
            return step
    return dialect_of(text if is_whole else text[: cut_at_line(text) or len(text)])


def _json_step(text: bytes, name: str, *, is_whole: bool) -> ReadStep | None:
    """Return the read step of a JSON document, or None if the text is not JSON.

    Raises:
        IngestError: the document has no objects that could be rows.
    """
    document = text.decode()
    first = document.lstrip()
    at = len(document) - len(first)
    if first.startswith("["):
        if re.match(r"\[\s*[\]{]", first):
            return ReadJson()
        _refuse_other_items(document, name)
        return None
    try:
        value, end = json.JSONDecoder().raw_decode(document, at)
    except (ValueError, RecursionError):
        return _step_of_beginning(text, is_whole=is_whole)
    if value.get("type") == "FeatureCollection":
        return ReadGeoJson()
    if value.get("type") == "Feature" and "geometry" in value:
        return ReadNdGeoJson()
    if document[end:].strip():
        return ReadNdJson()
    keys = _way_to_rows(value)
    return ReadNdJson() if keys is None else ReadJson(sub_path=keys)


def _refuse_other_items(document: str, name: str) -> None:
    """Reject an array of items other than objects; text that is not JSON may be CSV."""
    try:
        json.loads(document)
    except (ValueError, RecursionError):
        return
    raise IngestError(
        f"{name} is a JSON array, but not of objects, which rows are made of",
        hint="Let a `Pipe` step make objects of its items, for example with jq.",
    )


def _step_of_beginning(text: bytes, *, is_whole: bool) -> ReadStep | None:
    """Return the read step for a document whose first value is truncated or broken."""
    if is_whole:
        return ReadNdJson() if text.lstrip()[1:].lstrip()[:1] in (b'"', b"}") else None
    if re.search(rb'"type"\s*:\s*"FeatureCollection"', text[:4096]):
        return ReadGeoJson()
    keys = _way_to_first_rows(text.decode())
    return None if keys is None else ReadJson(sub_path=keys)


def _way_to_first_rows(document: str) -> str | None:
    """Return the keys, joined by dots, of the path to the first array of objects in a truncated object."""
    keys: list[str] = []  # of the enclosing objects
    arrays = 0
    last = ""
    for token in _TOKEN.finditer(document):
        mark = token[0].strip()
        if mark == "[" and not arrays and _OBJECT.match(document, token.end()):
            way = [*keys[1:], last]
            return ".".join(way) if all(key and "." not in key for key in way) else None
        if mark == "{" and not arrays:
            keys.append(last)
        elif mark == "}" and not arrays:
            keys = keys[:-1]
        elif mark in ("[", "]"):
            arrays += 1 if mark == "[" else -1
        elif mark.endswith(":"):
            last = json.loads(token[1])
    return None


def _way_to_rows(document: dict[str, Any]) -> str | None:
    """Return the keys, joined by dots, of the path to the longest array of objects, at most two levels deep."""
    places: list[tuple[int, str]] = []
    for key, value in document.items():
        inside = {f"{key}.{one}": two for one, two in value.items()} if isinstance(value, dict) else {}
        for path, items in {key: value, **inside}.items():
            if isinstance(items, list) and items and all(isinstance(item, dict) for item in items):
                places.append((len(items), path))
    usable = [(count, path) for count, path in places if all(part and "." not in part for part in path.split("."))]
    return max(usable, key=lambda place: place[0])[1] if usable else None


# --- Where to cut ----------------------------------------------------------------------------------------------------


def _cut(step: ReadStep, text: bytes, path: Path, name: str) -> bytes:
    """Return the complete records at the beginning of a text, as a file of the same format; nothing if there are none.

    Args:
        step: the read step.
        text: the text, as UTF-8.
        path: path of a file with the same text.
        name: name of the file in messages.
    """
    if isinstance(step, ReadCsv):
        return text[: cut_at_record(text, Dialect.of(step))]
    if isinstance(step, ReadNdJson | ReadNdGeoJson):
        return text[: cut_at_line(text)]
    file = TextFile(path, name)
    keys = [] if not isinstance(step, ReadJson) or step.sub_path is None else step.sub_path.split(".")
    try:
        array = Collection.of(file) if isinstance(step, ReadGeoJson) else JsonArray.of(file, keys)
    except OdfError:
        return b""
    if array is None:
        return b""
    end = cut_at_item(text[array.start :])
    closing = b"]}" if isinstance(step, ReadGeoJson) else b"]" + b"}" * len(keys)
    return text[: array.start + end] + closing if end else b""
