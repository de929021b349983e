"""Text in other encodings, in blocks, and with nothing left open or lying about."""

from __future__ import annotations

import gc
import gzip
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.ingest.reading import Reader

from odfpy.chain.read_steps import ReadCsv, ReadJson, ReadNdJson, ReadStep
from odfpy.errors import BadValue, InvalidValue
from odfpy.ingest.read import encodings


def open_below(folder: Path) -> list[str]:
    """Return the files below a folder that this process has open, deleted ones too; others' threads open other files."""
    gc.collect()
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(str(descriptor.readlink()))
    return [link for link in links if link.startswith(str(folder))]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "_BLOCK", 3)


@pytest.mark.parametrize(
    ("encoding", "codec"),
    [
        (None, "utf-8"),
        ("utf8", "utf-8-sig"),
        ("UTF-8-SIG", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-16", "utf-16-le"),
        ("UTF-16LE", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", "utf-32"),
        ("windows-1250", "cp1250"),
        ("ISO-8859-2", "latin2"),
        ("gb18030", "gb18030"),
    ],
)
@pytest.mark.parametrize(
    ("step", "text"),
    [
        (ReadCsv(header=True), 'a\n"ž\n"\nx\n'),
        (ReadNdJson(), '{"a":"ž\\n"}\n{"a":"x"}\n'),
        (ReadJson(), '[{"a":"ž\\n"},\n{"a":"x"}]'),
    ],
)
def test_every_text_format_has_every_encoding(
    read_input: Reader, small_blocks: None, encoding: str | None, codec: str, step: ReadStep, text: str
):
    step = type(step)(encoding=encoding, **({"header": True} if isinstance(step, ReadCsv) else {}))
    assert read_input(step, text.encode(codec)).to_pydict() == {"a": ["ž\n", "x"]}


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (b"a\nb\n\x81\n", "cp1252", "input, line 3: byte 0x81 is not cp1252"),
        (b"\x81\n", "cp1252", "input, line 1: byte 0x81 is not cp1252"),
        ("a\nb".encode("utf-16") + b"\0", "utf-16", "input, line 2: byte 0x00 is not utf-16"),
        ("ab\n".encode("utf-16-le") + b"\x00\xd8x\0", "utf-16-le", "input, line 2: byte 0x00 is not utf-16-le"),
        (b"\\ud800", "unicode_escape", "input, line 1: the text from here on is not unicode-escape"),
    ],
)
def test_bytes_that_are_not_in_the_encoding(
    read_input: Reader, small_blocks: None, content: bytes, encoding: str, message: str
):
    with pytest.raises(BadValue) as caught:
        read_input(ReadCsv(encoding=encoding), content)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("content", "said", "hint"),
    [
        (gzip.compress(b"a,b\n1,2\n"), "; the file looks like gzip", "{kind: Decompress, format: Gzip}"),
        (b"PK\x03\x04\x14\0\0\0\x08\0\xfe", "; the file looks like zip", "{kind: Decompress, format: Zip}"),
        (b"\x28\xb5\x2f\xfd\x04\0", "; the file looks like zstd", "{kind: Pipe, command: [zstd, -dc]}"),
        ("a,b\n".encode("utf-16"), "; the file begins with the mark of utf-16", "`encoding: utf-16`"),
        ("a,b\n".encode("utf-32"), "; the file begins with the mark of utf-32", "`encoding: utf-32`"),
        (b"a,\xe9\n", "", "for example `encoding: windows-1252`"),
    ],
    ids=["gzip", "zip", "zstd", "utf-16", "utf-32", "latin-1"],
)
@pytest.mark.parametrize("step", [ReadCsv(header=True), ReadNdJson(), ReadJson()], ids=lambda step: type(step).__name__)
def test_what_looks_like_something_else_is_told(
    read_input: Reader, step: ReadStep, content: bytes, said: str, hint: str
):
    with pytest.raises(BadValue) as caught:
        read_input(step, content)
    assert caught.value.message.endswith(f" is not utf-8{said}")
    assert hint in (caught.value.hint or "")


def test_what_is_packed_is_told_in_other_encodings_too(read_input: Reader):
    with pytest.raises(BadValue, match=r"is not ascii; the file looks like gzip$"):
        read_input(ReadCsv(encoding="ascii"), gzip.compress(b"a,b\n"))


@pytest.mark.parametrize("encoding", ["klingon", "base64", "rot13", "hex", "idna", "punycode", "undefined", "\0", ""])
def test_encoding_that_there_is_not(read_input: Reader, encoding: str):
    if encoding:
        with pytest.raises(InvalidValue, match="There is no encoding"):
            read_input(ReadCsv(encoding=encoding), "a\n")
    else:
        assert read_input(ReadCsv(encoding=encoding), "ž\n").num_rows == 1


def test_nothing_stays_open_or_is_left(read_input: Reader, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    read_input(ReadCsv(encoding="latin-1"), b"\xe9,1\n" * 10)
    with pytest.raises(BadValue):
        read_input(ReadCsv(encoding="cp1252"), b"\x81")
    assert not list(folder.iterdir())
    assert open_below(tmp_path) == []


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5), min_size=1, max_size=5
    ),
    codec=st.sampled_from(["utf-16", "utf-16-be", "utf-32", "gb18030", "utf-7"]),
    block=st.integers(1, 20),
)
def test_blocks_make_no_difference(read_input: Reader, lines: list[str], codec: str, block: int):
    content = ("x" + "\n".join(lines)).encode(codec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encodings, "_BLOCK", block)
        table = read_input(ReadCsv(separator="\x1f", quote="", encoding=codec), content)
    assert "\n".join(table.column(0).to_pylist()) == "x" + "\n".join(lines)
