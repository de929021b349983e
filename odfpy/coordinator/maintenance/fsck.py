"""Checks of a dataset's files beyond the chain of the head.

1. other references: their blocks exist and are valid, and so are all previous blocks, slices and checkpoints
2. files in the object folders that are not named by a hash
3. unreachable objects: they are harmless, so they are only counted; damaged ones are reported
4. name, aliases and settings of the dataset: they are readable
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from odfpy.chain.block import HashedBlock
from odfpy.chain.new_blocks import validate
from odfpy.chain.signatures import path_of
from odfpy.chain.stores.ref_store import HEAD
from odfpy.codec.yaml import load_documents
from odfpy.coordinator.maintenance.damage import damage_of, unreadable_as_finding
from odfpy.coordinator.maintenance.last_verification import last_verification
from odfpy.coordinator.maintenance.reachable import UnusedPath, foreign, reachable_blocks, unreferenced_objects
from odfpy.coordinator.maintenance.report import Finding, LostHistory, Severity, VerifyReport
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.last_failure import last_failure
from odfpy.coordinator.storage.signers import Signers
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import MalformedData, ObjectNotFound, OdfError
from odfpy.files import read_regular
from odfpy.repository.objects import ObjectKind, ObjectOfBlock, objects_of_blocks
from odfpy.repository.registry import Aliases
from odfpy.repository.seen_heads import SeenHeads

_REFERENCE, _FILE = "reference", "file"
_REPAIR: Final = "`odf verify --repair` fetches it from a repository that has the dataset."
_ODD: Final = "The dataset does not need it; move it out of this folder."
_ROT: Final = "The dataset does not need it; `odf gc` removes it."


def with_files(dataset: StoredDataset, report: VerifyReport) -> VerifyReport:
    """Add findings about all other files to the report on the chain of the head."""
    dataset = dataset.on(None)  # its head, even if a block or branch was requested
    useless: list[UnusedPath] = []
    findings: list[Finding] = []
    following: tuple[LostHistory, ...] = ()
    with unreadable_as_finding(dataset, findings):
        useless += _unreferenced(dataset)
        following = _following(dataset, report.head, useless)
        for check_findings in (_references(dataset), _foreign(dataset), _rotten(dataset, useless), _local(dataset)):
            findings += check_findings
    return replace(
        report,
        findings=(*report.findings, *findings),
        unreferenced=len(useless),
        unreferenced_bytes=sum(item.size for item in useless),
        following=following,
    )


# --- 1. Other references ---------------------------------------------------------------------------------------------


def _references(dataset: StoredDataset) -> Iterator[Finding]:
    names = [name for name in dataset.layout.refs.names() if name != HEAD]
    known: set[Multihash] = set()
    with suppress(OdfError):  # errors in the chain of the head are already reported
        known.update(hashed.hash for hashed in (dataset.chain.iter_blocks() if names else ()))
    for name in names:
        yield from _reference(dataset, name, known)


def _reference(dataset: StoredDataset, name: str, known: set[Multihash]) -> Iterator[Finding]:
    file = dataset.layout.refs.describe(name)
    new = []
    try:
        for hashed in dataset.chain.iter_blocks(dataset.layout.refs.get(name)):
            if hashed.hash in known:
                break
            new.append(hashed)
        if new:  # most tags are in the history of the head
            validate(new[::-1], dataset.chain.state(hashed.hash) if hashed.hash in known else None)
    except OdfError as error:
        yield _finding(_REFERENCE, f"{name}: {error.message}", type(error), file, error.hint or _REPAIR)
        return
    known.update(new_block.hash for new_block in new)
    for item in objects_of_blocks(new):
        yield from _object(dataset, name, item, new)
    signers = Signers(dataset)
    for new_block in new:
        forged = signers.get(new_block).error
        if forged is not None:
            beside = str(dataset.folder / path_of(new_block.hash))
            yield _finding("signature", forged.message, type(forged), beside, forged.hint)


def _object(dataset: StoredDataset, name: str, item: ObjectOfBlock, blocks: list[HashedBlock]) -> Iterator[Finding]:
    store = item.kind.store(dataset.layout)
    what = "slice" if item.kind is ObjectKind.DATA_SLICE else "checkpoint"
    damage = damage_of(store, item.name, what, item.size)
    if damage is not None:
        is_cache = item.kind is ObjectKind.CHECKPOINT and damage.cause is ObjectNotFound
        finding = _finding(what, f"{damage.message}, of {name}", damage.cause, store.describe(item.name), _REPAIR)
        (block,) = (candidate for candidate in blocks if candidate.hash == item.block)
        yield replace(
            finding,
            severity=Severity.WARNING if is_cache else Severity.ERROR,
            block=block.hash,
            sequence_number=block.block.sequence_number,
        )


# --- 2. and 3. Other objects -----------------------------------------------------------------------------------------


def _foreign(dataset: StoredDataset) -> Iterator[Finding]:
    try:
        for path in foreign(dataset.folder):
            finding = _finding(_FILE, "Among the objects, but not named by a hash", OdfError, str(path), _ODD)
            yield replace(finding, severity=Severity.WARNING)
    except OdfError as error:
        yield _finding(_FILE, error.message, type(error), str(dataset.folder), error.hint)


def _unreferenced(dataset: StoredDataset) -> Iterator[UnusedPath]:
    try:
        yield from unreferenced_objects(dataset.folder, reachable_blocks(dataset.layout))
    except OdfError:  # missing or damaged objects have their own finding; without them, the unused objects are unknown
        return


def _following(dataset: StoredDataset, head: Multihash | None, useless: list[UnusedPath]) -> tuple[LostHistory, ...]:
    """Return the chains of blocks that continue from the head, the most recently written first.

    A compaction retains the time of the last block; among chains with the same time, the file's time decides.
    """
    if head is None:
        return ()
    after: dict[Multihash | None, list[HashedBlock]] = {}
    stored: dict[Multihash, float] = {}
    for item in useless:
        if item.name is not None and item.path.parent.name == "blocks":
            with suppress(OdfError):
                following = dataset.chain.block(item.name)
                after.setdefault(following.block.prev_block_hash, []).append(following)
                with suppress(OSError):
                    stored[following.hash] = item.path.stat().st_mtime
    ends: list[LostHistory] = []
    reached, num_blocks = after.get(head, []), 1
    while reached:
        ends += [
            LostHistory(block.hash, num_blocks, block.block.system_time) for block in reached if block.hash not in after
        ]
        reached, num_blocks = [more for block in reached for more in after.get(block.hash, ())], num_blocks + 1
    return tuple(
        sorted(ends, key=lambda lost: (lost.written, stored.get(lost.head, 0.0), str(lost.head)), reverse=True)
    )


def _rotten(dataset: StoredDataset, useless: list[UnusedPath]) -> Iterator[Finding]:
    layout = dataset.layout
    stores = {"blocks": layout.blocks, "data": layout.data, "checkpoints": layout.checkpoints}
    for item in useless:
        store = stores.get(item.path.parent.name)
        if store is None or item.name is None:
            continue
        damage = damage_of(store, item.name, "unreferenced object")
        if damage is not None and damage.cause is not ObjectNotFound:  # it may have been removed meanwhile
            finding = _finding(_FILE, damage.message, damage.cause, str(item.path), _ROT)
            yield replace(finding, severity=Severity.WARNING)


# --- 4. Local files --------------------------------------------------------------------------------------------------


def _local(dataset: StoredDataset) -> Iterator[Finding]:
    folder = dataset.folder / "info"
    readers: dict[str, Callable[[Path], object]] = {
        "aliases.yaml": lambda file: Aliases(file).list("pull"),
        "config.yaml": lambda _: Config.of_dataset(dataset.folder),
        "failure.yaml": lambda _: last_failure(dataset),
        "verification.yaml": lambda _: last_verification(dataset),
        "remotes.yaml": lambda file: SeenHeads(file).get("https://example.com"),
    }
    for file in sorted(folder.glob("*.yaml")):
        try:
            readers.get(file.name, _other)(file)
        except UnicodeDecodeError:
            yield _finding(_FILE, f"{file}: no text", MalformedData, str(file), None)
        except OSError as error:
            yield _finding(_FILE, f"Cannot read {file}: {error.strerror}", OdfError, str(file), None)
        except OdfError as error:
            yield _finding(_FILE, error.message, type(error), str(file), error.hint)


def _other(file: Path) -> None:
    load_documents(read_regular(file).decode(), str(file))


def _finding(check: str, message: str, cause: type[OdfError], file: str, hint: str | None) -> Finding:
    return Finding(severity=Severity.ERROR, check=check, message=message, file=file, hint=hint, code=cause.code)
