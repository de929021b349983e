"""Extensions of the Smart Transfer Protocol by odfpy, over plain HTTP: signatures, branches and tags.

    GET <base>                 a summary of the dataset; `takes` lists the extensions that the node supports
    PUT <base>/info            signatures, revocations of keys: `{"files": {<path>: <text>}}`
    PUT <base>/refs/<name>     a branch or tag, conditional by `If-Match` or `If-None-Match`

Nodes of other implementations have no `takes`, and receive no such requests.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from odfpy.chain import revocations
from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.signatures import (
    BLOCK_SIGNATURES,
    HEAD_PATH,
    HEAD_SIGNATURES,
    MAX_SIZE,
    MalformedSignature,
    SignatureReport,
    SignedBlock,
    decode,
    encode,
    has_signatures,
    path_of,
    read_all_signatures,
    read_head_signatures,
)
from odfpy.chain.stores.ref_store import check_name, lost_race
from odfpy.chain.stores.side_files import LocalSideFiles, SideFiles
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.errors import InvalidValue, TransferError
from odfpy.http.client import HttpClient, HttpResponse
from odfpy.repository.credentials import authorization
from odfpy.repository.locations.http import MAX_SIDE_FILES, SIDE_FILES, HttpRefStore, http_dataset
from odfpy.repository.peer_errors import AccessRefused

TAKES_SIGNATURES = "signatures"
TAKES_REFERENCES = "references"
TAKES_REVOCATIONS = "revocations"

_MAX_SUMMARY = 64 * 1024
_OK, _MOVED = 200, 412
_REFUSED = (401, 403)


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """A node's summary of a dataset.

    Attributes:
        dataset_id: id of the dataset.
        takes: supported extensions of the protocol.
    """

    dataset_id: DatasetId
    takes: frozenset[str]


def summary_of(base: str) -> NodeSummary | None:
    """Return the node's summary of a dataset at an http or https URL; None if the server is not an odfpy node.

    Raises:
        TransferError: the server is unreachable.
    """
    client = HttpClient(TransferError, authorize=authorization)
    with client.get(base, {"Accept": "application/json"}, max_size=_MAX_SUMMARY) as answer:
        if answer.status != _OK:
            return None
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidValue):
            tree = json.loads(answer.readall())
            takes = frozenset(word for word in tree["takes"] if isinstance(word, str))
            return NodeSummary(DatasetId.parse(tree["id"]), takes)
    return None  # an HTML page


def node_dataset(base: str) -> DatasetLayout:
    """Return the dataset at the http or https URL of an odfpy node, read-only except for branches and tags."""
    client = HttpClient(TransferError, authorize=authorization)
    return replace(http_dataset(base, client), refs=NodeRefStore(f"{base.rstrip('/')}/refs", client))


class NodeRefStore(HttpRefStore):
    """References of a dataset on an odfpy node; branches and tags can be moved to existing blocks."""

    def compare_and_swap(self, name: str, expected: Multihash | None, new: Multihash) -> None:
        condition = {"If-None-Match": "*"} if expected is None else {"If-Match": f'"{expected}"'}
        url = f"{self._base}/{check_name(name)}?block={new}"
        with _put(self._client, url, b"", condition) as answer:
            if answer.status == _MOVED:
                raise lost_race(self.describe(name), expected, self.get(name))
            _require_ok(answer)


# --- Signatures ------------------------------------------------------------------------------------------------------


def upload_signatures(source: DatasetLayout, head: Multihash, base: str, *, is_head: bool) -> SignatureReport | None:
    """Upload signatures of pushed blocks to a node, if it supports them.

    Signatures are sent oldest first, and that of the head last. So the node may lack signatures of blocks after its
    last signed head; for a branch or tag, it lacks none if it has those of the last block.

    Args:
        source: the pushed dataset.
        head: hash of its head.
        base: the http or https URL of the dataset on the node.
        is_head: whether the block is now the node's head, and not that of a branch or tag.

    Returns:
        The signers of the blocks whose signatures the node lacked; None if it lacked none, or does not support them.

    Raises:
        ForgedSignature, MalformedSignature: a local signature is invalid; the message names its file.
        TransferError: the node rejects the signatures.
    """
    if source.side is None or not has_signatures(source.side):
        return None
    node = summary_of(base)
    if node is None or TAKES_SIGNATURES not in node.takes:
        return None
    client = HttpClient(TransferError, authorize=authorization)
    there = http_dataset(base, client)
    assert there.side is not None  # noqa: S101 - locations over HTTP support side files
    if not is_head and there.side.read(path_of(head), MAX_SIZE) is not None:
        return None
    blocks = _after(source, head, _signed_head(there.side))
    _give_revocations(client, source, node, base)
    if not blocks:
        return None
    found: list[SignedBlock | None] = []
    for start in range(0, len(blocks), MAX_SIDE_FILES):
        some = read_all_signatures(source.side, node.dataset_id, blocks[start : start + MAX_SIDE_FILES])
        _upload(
            client, base, {path_of(one.block_hash): encode(one, BLOCK_SIGNATURES) for one in some if one is not None}
        )
        found += some
    signed = read_head_signatures(source.side, node.dataset_id, blocks[-1]) if is_head else None
    if signed is not None:
        _upload(client, base, {HEAD_PATH: encode(signed, HEAD_SIGNATURES)})
    return SignatureReport.of(found)


def _give_revocations(client: HttpClient, source: DatasetLayout, node: NodeSummary, base: str) -> None:
    """Upload revocations and expiries of keys; must be done before the signatures, which the node rejects otherwise."""
    if TAKES_REVOCATIONS not in node.takes or not isinstance(source.side, LocalSideFiles):
        return
    names = [f"{revocations.FOLDER}/{name}" for name in source.side.names(revocations.FOLDER)]
    keys = [key for key in map(revocations.key_of, names) if key is not None]
    files: dict[str, bytes] = {}
    for key in keys:
        said = revocations.honoured_in(source.side, node.dataset_id, [key])
        files |= {revocations.path_of(key): revocations.encode(said)} if said else {}
    _upload(client, base, files)


def _signed_head(node: SideFiles) -> Multihash | None:
    """Return the block of the node's head signature."""
    data = node.read(HEAD_PATH, MAX_SIZE)
    with suppress(MalformedSignature):
        return None if data is None else decode(data, HEAD_SIGNATURES, node.describe(HEAD_PATH)).block_hash
    return None


def _after(source: DatasetLayout, head: Multihash, known: Multihash | None) -> Sequence[HashedBlock]:
    """Return a block and its ancestors back to another block, oldest first; all if the other block is no ancestor."""
    found = []
    for hashed in source.chain.iter_blocks(head):
        if hashed.hash == known:
            break
        found.append(hashed)
    return found[::-1]


def _upload(client: HttpClient, base: str, files: Mapping[str, bytes]) -> None:
    if not files:
        return
    body = json.dumps({"files": {path: data.decode() for path, data in files.items()}}).encode()
    with _put(client, f"{base.rstrip('/')}/{SIDE_FILES}", body, {"Content-Type": "application/json"}) as answer:
        _require_ok(answer)


# --- Requests --------------------------------------------------------------------------------------------------------


def _put(client: HttpClient, url: str, body: bytes, headers: Mapping[str, str]) -> HttpResponse:
    token = authorization(url)
    return client.put(
        url, io.BytesIO(body), len(body), {**headers, **({"Authorization": token} if token is not None else {})}
    )


def _require_ok(answer: HttpResponse) -> None:
    if answer.status == _OK:
        return
    said = _refusal_text(answer)
    if answer.status in _REFUSED:
        raise AccessRefused(f"{answer.shown}: {said}", hint="Check the scope of the token.")
    raise TransferError(f"{answer.shown}: the node refuses: {said}", hint="Run the command again.")


def _refusal_text(answer: HttpResponse) -> str:
    """Return the reason that a node gives for rejecting a request."""
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        detail = json.loads(answer.readall())["detail"]
        if isinstance(detail, str) and detail.isprintable():
            return detail[:500]
    return f"status {answer.status}"
