"""The kind of a file is told from its bytes, never from what its name claims."""

from __future__ import annotations

import codecs

import pytest

from odfpy.archive.preview.kind import FileKind, detect_kind, text_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(30)


@pytest.mark.parametrize(
    ("head", "path", "kind"),
    [
        (b"", "/a.png", FileKind.EMPTY),
        (b"one line\n", "/var/log/syslog", FileKind.TEXT),
        (b"a,b\n1,2\n", "/a.CSV", FileKind.DELIMITED),
        (b"a\tb\n1\t2\n", "/a.tsv.gz", FileKind.DELIMITED),
        (b"a,b\n1,2\n", "/a.csv.txt", FileKind.TEXT),
        (b"PAR1....", "/a.txt", FileKind.PARQUET),
        (PNG, "/a.html", FileKind.PICTURE),
        (b"\xff\xd8\xff\xe0", "/a", FileKind.PICTURE),
        (b"GIF89a", "/a", FileKind.PICTURE),
        (b"RIFF\0\0\0\0WEBPVP8 ", "/a", FileKind.PICTURE),
        (b"<html><script>", "/a.png", FileKind.TEXT),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "/a.txt", FileKind.DRAWING),
        (b"<?xml version='1.0'?>\n<!-- x --><svg>", "/a", FileKind.DRAWING),
        (b"<html><svg></svg></html>", "/a.svg", FileKind.TEXT),
        (b"\0\1\2\3", "/a.csv", FileKind.BYTES),
        (bytes(range(128, 256)), "/a.txt", FileKind.BYTES),
        (b"\x1b[31mred\x1b[0m, as logs have it\n", "/a", FileKind.TEXT),
    ],
)
def test_a_kind_is_told(head: bytes, path: str, kind: FileKind) -> None:
    assert detect_kind(head, path).kind is kind


def test_many_comments_take_no_time() -> None:
    assert detect_kind(b"<!-- x -->\n" * 300 + b"<html>", "/a").kind is FileKind.TEXT
    assert detect_kind(b"<!-- x -->" * 300 + b"<svg>", "/a").kind is FileKind.DRAWING
    assert detect_kind(b"<!-- <svg> --><p>", "/a").kind is FileKind.TEXT


def test_a_text_may_be_cut_within_a_letter_and_have_some_strange_bytes() -> None:
    told = detect_kind("zwölf Grüße 🦊".encode()[:-2], "/a")
    assert told.kind is FileKind.TEXT
    assert detect_kind(b"caf\xe9 and more letters than strange bytes", "/a").kind is FileKind.TEXT
    assert text_of("🦊".encode()[:2], "utf-8") == ""


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_known_by_its_mark(encoding: str) -> None:
    mark = codecs.BOM_UTF16_LE if encoding.endswith("le") else codecs.BOM_UTF16_BE
    data = mark + "Grüße\n".encode(encoding)
    told = detect_kind(data, "/a.txt")
    assert told.kind is FileKind.TEXT
    assert text_of(data, told.encoding or "") == "Grüße\n"
    assert detect_kind("Grüße\n".encode(encoding), "/a.txt").kind is FileKind.BYTES
