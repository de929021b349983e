"""Parsers of untrusted bytes, each as a function that returns a value or raises an expected error.

Any other exception is a finding, and so is exceeding the limits of time or memory.
"""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.chain.encoding import decode_block, encode_block, load_snapshots
from odfpy.chain.references import ReferenceName
from odfpy.chain.signatures import decode as decode_signatures
from odfpy.codec.yaml import load_documents
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.ddl import parse_ddl
from odfpy.data.schemas.raw_arrow import read_raw_arrow
from odfpy.data.slices.footer import touch_columns
from odfpy.data.slices.parquet_io import open_parquet
from odfpy.data.slices.slice import iter_slice, slice_stats
from odfpy.dataset.names import DatasetPattern, parse_ref, parse_remote_ref
from odfpy.errors import IntegrityError, OdfError
from odfpy.http.url import parse_url
from odfpy.ingest.archive import ZipArchive
from odfpy.query.dialects import DIALECTS, dialect_named
from odfpy.query.references import find_projections
from odfpy.query.wire.verification import CommittedAnswer
from odfpy.repository.smart_transfer import messages
from odfpy.repository.smart_transfer.archive import ArchiveLimits, pack, unpack
from odfpy.serving.flight.messages import message, unwrap, wrap
from odfpy.serving.flight.tickets import Ticket

GOLDEN: Final = Path(__file__).parents[2] / "golden"
CORPUS: Final = Path(__file__).parents[2] / "security" / "corpus"

_SMART: Final = (
    messages.PullRequest, messages.PullAccepted, messages.BlocksRequest, messages.BlocksReply, messages.ObjectsRequest,
    messages.ObjectsReply, messages.PushRequest, messages.PushAccepted, messages.PushBlocks, messages.BlocksAccepted,
    messages.PushObjects, messages.UploadsAccepted, messages.Ping, messages.Progress, messages.Complete,
    messages.Confirmed,
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """Something under attack.

    Attributes:
        parse: parses the bytes; it may raise `OdfError` and exceptions that a server converts to responses.
        seeds: typical inputs.
        most_bytes: maximum size of an input.
    """

    parse: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    most_bytes: int = 1 << 14

    def tried(self, data: bytes) -> bool:
        """Return whether the bytes were accepted; False if they were rejected properly.

        Raises:
            Exception: a finding.
        """
        try:
            self.parse(data)
        except (OdfError, fl.FlightError):
            return False
        return True


def corpus(name: str) -> list[bytes]:
    """Return the initial inputs: typical ones of a target, and earlier findings."""
    return [*TARGETS[name].seeds(), *(path.read_bytes() for path in sorted((CORPUS / name).glob("*")))]


# --- Blocks, manifests, schemas --------------------------------------------------------------------------------------


def _block(data: bytes) -> None:
    block = decode_block(data)
    assert decode_block(encode_block(block)) == block, "what was read can be written"


def _blocks() -> list[bytes]:
    return [path.read_bytes() for path in sorted(GOLDEN.glob("kamu/*/blocks/*"))]


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _manifests() -> list[bytes]:
    return [path.read_bytes() for path in sorted(GOLDEN.glob("kamu/manifests/*.yaml"))]


def _raw_schemas() -> list[bytes]:
    nested = pa.schema([("a", pa.list_(pa.struct([("b", pa.decimal128(9, 2))]))), ("c", pa.map_("str", "i4"))])
    return [_without_message(one) for one in (nested, pa.schema([("t", pa.timestamp("ms", "UTC"))]))]


def _without_message(schema: pa.Schema) -> bytes:
    """Return the FlatBuffer of a schema: the header of the message that Arrow writes, made its root."""
    data = schema.serialize().to_pybytes()[8:]
    (root,) = struct.unpack_from("<I", data)
    vtable = root - struct.unpack_from("<i", data, root)[0]
    header = root + struct.unpack_from("<H", data, vtable + 8)[0]
    return struct.pack("<II", 8 + header + struct.unpack_from("<I", data, header)[0], 0) + data


def _ddl(data: bytes) -> None:
    parse_ddl(_text(data).splitlines())


# --- Transfers -------------------------------------------------------------------------------------------------------


def _smart(data: bytes) -> None:
    kind = _SMART[data[0] % len(_SMART)] if data else _SMART[0]
    messages.decode(kind, _text(data[1:]))


def _smart_messages() -> list[bytes]:
    (batch,) = _batches()
    plan = messages.TransferPlan(1, 2, 3, 4, 5)
    samples = [
        messages.PullRequest(None, None, force_update_if_diverged=False),
        messages.PullAccepted(plan),
        messages.BlocksReply(messages.BlocksBatch(1, "application/tar+gzip", "raw", batch)),
    ]
    return [bytes([_SMART.index(type(one))]) + messages.encode(one).encode() for one in samples]


def _archive(data: bytes) -> None:
    unpack(messages.BlocksBatch(1, "application/tar+gzip", "raw", data), ArchiveLimits())


def _batches() -> list[bytes]:
    block = _blocks()[0]
    return [pack([(Multihash.of(block), block)]).payload]


def _side_file(data: bytes) -> None:
    for kind in ("BlockSignatures", "HeadSignatures"):
        try:
            decode_signatures(data, kind, "there")
        except OdfError:
            continue


def _signature_files() -> list[bytes]:
    signed = {
        "datasetId": "did:odf:fed01" + "0" * 64,
        "block": "f1620" + "0" * 64,
        "number": 3,
        "signatures": [],
    }
    kinds = ("BlockSignatures", "HeadSignatures")
    return [json.dumps({"kind": kind, "version": 1, "content": signed}).encode() for kind in kinds]


def _names(data: bytes) -> None:
    text = _text(data)
    for parse in (
        parse_ref,
        parse_remote_ref,
        DatasetPattern,
        ReferenceName.parse,
        lambda url: parse_url(url, OdfError),
    ):
        try:
            parse(text)
        except OdfError:
            continue


# --- Queries and servers ---------------------------------------------------------------------------------------------


def _sql(data: bytes) -> None:
    name, _, text = _text(data).partition("\n")
    dialect = dialect_named(name)
    find_projections(text, dialect)
    dialect.tree(text)


def _queries() -> list[bytes]:
    texts = (
        "select a, count(*) from t where b > 1 group by a order by 2 desc limit 3",
        "with x as (select * from odf_as_at('d', timestamp '2024-01-01')) select * from x join y using (k)",
        "select * from `acme.com/a` timestamp as of '2024-01-01' t where t.a in (1, 2) or not exists (select 1)",
    )
    return [f"{name}\n{text}".encode() for name in DIALECTS for text in texts]


def _answers() -> list[bytes]:
    recorded = [
        json.loads((GOLDEN / "rest" / f"{name}.json").read_bytes()) for name in ("verify-ok", "verify-bad-input")
    ]
    return [json.dumps(one["request"]["body"]).encode() for one in recorded]


def _flight(data: bytes) -> None:
    command = unwrap(data)
    if command.DESCRIPTOR.name == "TicketStatementQuery":
        Ticket.parse(command.statement_handle)


def _commands() -> list[bytes]:
    ticket = {"name": "a", "query": "select 1", "dialect": "spark", "pins": {}, "skip": 1, "limit": 2}
    return [
        wrap(message("CommandStatementQuery", query="select 1")),
        wrap(message("CommandGetTables", table_name_filter_pattern="%a_%", include_schema=True)),
        wrap(message("TicketStatementQuery", statement_handle=json.dumps(ticket).encode())),
    ]


# --- Files -----------------------------------------------------------------------------------------------------------


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="attack-"))


def _slice(data: bytes) -> None:
    path = _folder() / "slice"
    path.write_bytes(data)
    _require_readable(path)
    slice_stats(path)
    for _ in iter_slice(path):
        pass


def _footer(data: bytes) -> None:
    """Parse the footer only, as a recipient does first."""
    path = _folder() / "footer"
    path.write_bytes(b"PAR1" + bytes(100) + data + len(data).to_bytes(4, "little") + b"PAR1")
    _require_readable(path)
    with open_parquet(path) as file:
        file.schema_arrow  # noqa: B018
    touch_columns(file.metadata)


def _require_readable(path: Path) -> None:
    """Read the footer in a separate process first, as a recipient does: there it may break the reader."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are threads here, which the child does not need
        child = os.fork()
    if not child:
        for number in (signal.SIGABRT, signal.SIGSEGV):  # those of the attack write reports
            signal.signal(number, signal.SIG_DFL)
        with suppress(BaseException), open_parquet(path) as file:
            touch_columns(file.metadata)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise IntegrityError("its footer breaks the reader")


def _slices() -> list[bytes]:
    return [path.read_bytes() for path in sorted(GOLDEN.glob("kamu/*/data/*")) if path.stat().st_size < 1 << 14]


def _footers() -> list[bytes]:
    return [data[-8 - int.from_bytes(data[-8:-4], "little") : -8] for data in _slices()]


def _zip(data: bytes) -> None:
    archive = ZipArchive(io.BytesIO(data), "there")
    for name in archive.names:
        archive.find(name)


def _zips() -> list[bytes]:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/b.csv", "1,2")
    return [file.getvalue()]


TARGETS: Final[dict[str, Target]] = {
    "block": Target(_block, _blocks),
    "manifest": Target(lambda data: load_snapshots(_text(data), "there"), _manifests),
    "yaml": Target(lambda data: load_documents(_text(data), "there"), _manifests),
    "raw-schema": Target(read_raw_arrow, _raw_schemas),
    "ddl": Target(_ddl, lambda: [b"a BIGINT\nb STRING NOT NULL", b"c STRUCT<d: ARRAY<DECIMAL(9, 2)>>"]),
    "smart-message": Target(_smart, _smart_messages),
    "smart-archive": Target(_archive, _batches),
    "signatures": Target(_side_file, _signature_files),
    "names": Target(_names, lambda: [b"acme.com/a.b", b"did:odf:fed01", b"%.a", b"https://a:b@c:1/d?e", b"tag/x"]),
    "sql": Target(_sql, _queries, 1 << 12),
    "proof": Target(CommittedAnswer.load, _answers),
    "flight": Target(_flight, _commands),
    "slice": Target(_slice, _slices),
    "footer": Target(_footer, _footers),
    "zip": Target(_zip, _zips),
}
