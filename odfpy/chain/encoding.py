"""Encoding of metadata blocks and manifests (ODF specification, "Metadata Format").

A block is a FlatBuffer inside a `Manifest` FlatBuffer; its hash is SHA3-256 over the outer one. Documents for users are
YAML: `MetadataBlock` and `DatasetSnapshot` manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from odfpy.chain.block import DatasetSnapshot, HashedBlock, MetadataBlock
from odfpy.codec import flatbuffers_reader
from odfpy.codec.tree import Path, TreeError, format_path, from_tree, to_tree
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import I32, I64
from odfpy.errors import MalformedBlock, MalformedManifest, UnsupportedVersion
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.codec.yaml_trees import Document

ODF_METADATA_BLOCK = 0x400000
"""Multicodec of metadata blocks."""

BLOCK_VERSION = 3
"""Version in which blocks are written."""

READABLE_BLOCK_VERSIONS = (2, 3)

_SMALL = 4096
"""Maximum bytes of a block whose decoded form is cached; most have a tenth of that."""

Addition: TypeAlias = Callable[[DatasetSnapshot, Any, Path], DatasetSnapshot]
"""Function that adds a further part of a document to its snapshot, given the part and its path in the document."""

MAX_BLOCK_SIZE = 64 * 1024 * 1024
"""Maximum bytes of a block; blocks contain descriptions, never data, so a larger one is an attack or an accident."""


@dataclass(frozen=True, slots=True)
class _Manifest:
    kind: I64
    version: I32
    content: bytes


def encode_block(block: MetadataBlock) -> bytes:
    """Encode a new block. Received blocks keep their original bytes, and are not encoded again."""
    from odfpy.codec import flatbuffers_writer  # only needed for writing

    content = flatbuffers_writer.write(block)
    return flatbuffers_writer.write(_Manifest(ODF_METADATA_BLOCK, BLOCK_VERSION, content))


def decode_block(data: bytes) -> MetadataBlock:
    """Decode a block.

    Raises:
        MalformedBlock: the bytes are not a block.
        UnsupportedVersion: the block has a version that this release cannot read.
    """
    if len(data) > MAX_BLOCK_SIZE:
        raise MalformedBlock(f"A block of {len(data)} bytes is larger than the limit of {MAX_BLOCK_SIZE}")
    return _decode_again(data) if len(data) <= _SMALL else _decode(data)


def _decode(data: bytes) -> MetadataBlock:
    manifest = flatbuffers_reader.read(_Manifest, data)
    if manifest.kind != ODF_METADATA_BLOCK:
        raise MalformedBlock(f"Not a metadata block: the manifest is of kind 0x{manifest.kind & (2**64 - 1):x}")
    if manifest.version not in READABLE_BLOCK_VERSIONS:
        raise UnsupportedVersion(
            f"The block has version {manifest.version}; versions {READABLE_BLOCK_VERSIONS} can be read",
            hint="A newer release of odfpy may be able to read it.",
        )
    return flatbuffers_reader.read(MetadataBlock, manifest.content)


_decode_again = lru_cache(maxsize=256)(_decode)
"""Cache of the most recently decoded blocks: a command reads those of a dataset several times, and each time checks
that the bytes exist and are unchanged."""


def hash_block(block: MetadataBlock) -> tuple[HashedBlock, bytes]:
    """Return a new block with its hash, and its encoded bytes."""
    data = encode_block(block)
    return HashedBlock(Multihash.of(data), block), data


def block_document(hashed: HashedBlock) -> dict[str, Any]:
    """Return a block as the tree of a manifest document, as `odf log -o yaml` prints it."""
    return {"kind": "MetadataBlock", "version": BLOCK_VERSION, "content": to_tree(hashed.block)}


def snapshot_document(snapshot: DatasetSnapshot) -> dict[str, Any]:
    """Return a snapshot as the tree of a manifest document."""
    return {"kind": "DatasetSnapshot", "version": 1, "content": to_tree(snapshot, DatasetSnapshot)}


def dump_snapshot(snapshot: DatasetSnapshot) -> str:
    """Return a snapshot as YAML."""
    from odfpy.codec.yaml import dump

    return dump(snapshot_document(snapshot))


def load_snapshots(
    text: str,
    source: str,
    check: Callable[[DatasetSnapshot], None] | None = None,
    beside: Mapping[str, Addition] = MappingProxyType({}),
) -> list[DatasetSnapshot]:
    """Return all DatasetSnapshot manifests of a YAML text.

    Args:
        text: one or several YAML documents.
        source: origin of the text, for messages.
        check: checks each snapshot; a `TreeError` from it is reported with its position.
        beside: keys that are permitted beside `content`, each with a function that adds its content to the snapshot.

    Raises:
        MalformedManifest: the text is invalid; the message names source, line, column and path.
    """
    from odfpy.codec.yaml import load_documents

    documents = load_documents(text, source)
    if not documents:
        raise MalformedManifest(f"{source}: no manifest in it", hint="`odf new NAME` writes a template.")
    return [_load_snapshot(document, source, check, beside) for document in documents]


def _load_snapshot(
    document: Document,
    source: str,
    check: Callable[[DatasetSnapshot], None] | None,
    beside: Mapping[str, Addition],
) -> DatasetSnapshot:
    try:
        content = _manifest_content(document.tree, "DatasetSnapshot", 1, also=beside)
        snapshot: DatasetSnapshot = from_tree(DatasetSnapshot, content, ("content",))
        if check is not None:
            check(snapshot)
        for key, add in beside.items():
            if key in document.tree:
                snapshot = add(snapshot, document.tree[key], (key,))
    except TreeError as error:
        line, column = document.place_of(error.path)
        where = f"{source}, line {line}, column {column}" if error.path else f"{source}, line {line}"
        path = f" at `{format_path(error.path)}`" if error.path else ""
        raise MalformedManifest(f"{where}: {error.problem}{path}", hint=error.hint) from error
    return snapshot


def _manifest_content(tree: Any, kind: str, version: int, *, also: Iterable[str]) -> Any:
    if not isinstance(tree, dict):
        raise TreeError((), "a manifest is a mapping with `kind`, `version` and `content`")
    _refuse_unknown(tree, ("kind", "version", "content", *also))
    if str(tree.get("kind", "")).lower() != kind.lower():
        raise TreeError(("kind",), f"expected `kind: {kind}`, found {tree.get('kind')!r}")
    if tree.get("version") != version or isinstance(tree["version"], bool):
        raise TreeError(("version",), f"expected `version: {version}`, found {tree.get('version')!r}")
    if "content" not in tree:
        raise TreeError((), "`content` is missing")
    return tree["content"]


def _refuse_unknown(tree: dict[str, Any], known: Iterable[str]) -> None:
    for key in tree:
        if key not in known:
            raise TreeError((key,), "unknown key in a manifest", hint=f"Known keys: {', '.join(known)}")
