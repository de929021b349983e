"""Lists of the datasets in repositories: below a folder, in a bucket, or on a node.

    <repository>/<name>/refs/head              a dataset
    <repository>/<account>/<name>/refs/head    a dataset of an account

Nodes (`odf serve`) provide a list. Static file servers cannot list their content: for these, the index is read, which
pushes maintain (`odfpy.repository.locations.index`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, ExecuteTransform, Seed, SetInfo
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import AccountName, DatasetAlias, DatasetName, matches_search
from odfpy.errors import InvalidValue, NotFound, OdfError, TransferError
from odfpy.repository.divergence import read_block
from odfpy.repository.locations.index import read_index
from odfpy.repository.locations.open import in_bucket, normalize_url, open_dataset, smart_base
from odfpy.repository.objects import run_all
from odfpy.values import dataclass

_MAX_BLOCKS = 1000
_MAX_FOLDERS = 10
_OF_DATASETS = ("blocks", "checkpoints", "data", "info", "refs")
_MAX_PAGE_SIZE = 16 << 20


class NotListable(TransferError, code="E613"):
    """The datasets of a location can be read, but not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedDataset:
    """Summary of a dataset in a repository.

    Attributes:
        alias: name of the dataset in the repository.
        url: URL of the dataset.
        kind: root or derivative, None if the complete history would have to be read.
        head: hash of the last block.
        num_blocks: number of blocks.
        num_records: number of rows.
        watermark: watermark of the dataset.
        description: description of the dataset, if a text is searched for and the last blocks contain it.
        keywords: keywords, under the same condition.
        problem: the error if the dataset cannot be read, so that only the name is known.
        id: id of the dataset, if it is in an index.
    """

    alias: DatasetAlias
    url: str
    kind: str | None = None
    head: str | None = None
    num_blocks: int | None = None
    num_records: int | None = None
    watermark: str | None = None
    description: str | None = None
    keywords: tuple[str, ...] = ()
    problem: OdfError | None = None
    id: DatasetId | None = None


def list_datasets(url: str, text: str = "") -> list[ListedDataset]:
    """Return the datasets of a repository, sorted by name.

    Args:
        url: path or URL of the repository.
        text: words that must all occur in name, description or keywords, case-insensitive.

    Raises:
        NotListable: the repository cannot be listed.
        NotFound, TransferError: the repository does not exist, or cannot be reached or read.
    """
    url = normalize_url(url)
    if urlsplit(url).scheme in ("http", "https") or smart_base(url):
        try:
            return _on_node(url, text)
        except NotListable:
            index = read_index(smart_base(url) or url)
            if index is None:
                raise
        ids: dict[DatasetAlias, DatasetId | None] = {entry.name: entry.id for entry in index.values()}
    else:
        ids = dict.fromkeys(_in_bucket(url) if in_bucket(url) else _in_folder(url))
    there = sorted(ids)
    found: list[ListedDataset | None] = [None] * len(there)

    def look(at: int) -> None:
        seen = _look(there[at], f"{url}/{there[at]}", with_info=bool(text))
        found[at] = None if seen is None else replace(seen, id=ids[there[at]])

    run_all([partial(look, at) for at in range(len(there))])
    return [
        item for item in found if item is not None and matches_search(text, item.alias, item.description, item.keywords)
    ]


def holds_datasets(url: str) -> bool:
    """Return whether there is a dataset in a folder, or in one of the first folders of a bucket.

    Raises:
        TransferError: a bucket is unreachable.
    """
    from odfpy.repository.bucket.errors import StoreRefuses

    url = normalize_url(url)
    if not in_bucket(url):
        with suppress(NotFound, TransferError):
            return any(True for _ in _in_folder(url))
        return False
    with suppress(StoreRefuses):  # write permission does not imply list permission
        return _begins_with_dataset(url)
    return False


def _look(alias: DatasetAlias, url: str, *, with_info: bool) -> ListedDataset | None:
    """Summarize a dataset from the end of its history; None if it does not exist yet."""
    try:
        layout = open_dataset(url)
        head = layout.refs.get(HEAD)
        if head is None:
            return None
        last = read_block(layout.blocks, head).hashed
        event, info = _latest(layout, last, with_info=with_info)
    except OdfError as error:
        return ListedDataset(alias=alias, url=url, problem=error)
    kind, num_records, watermark = None, 0, None
    if isinstance(event, (AddData, ExecuteTransform)):
        kind = "Root" if isinstance(event, AddData) else "Derivative"
        end = event.new_data.offset_interval.end if event.new_data else event.prev_offset
        num_records, watermark = (0 if end is None else end + 1), event.new_watermark
    elif isinstance(event, Seed):
        kind = event.dataset_kind.value
    return ListedDataset(
        alias=alias,
        url=url,
        kind=kind,
        head=str(head),
        num_blocks=last.block.sequence_number + 1,
        num_records=num_records,
        watermark=None if watermark is None else str(watermark),
        description=info.description if info else None,
        keywords=(info.keywords or ()) if info else (),
    )


def _latest(layout: DatasetLayout, last: HashedBlock, *, with_info: bool) -> tuple[Any, SetInfo | None]:
    """Return the last data event, or the seed if there is none, and the last description of the dataset.

    These events may be at the beginning of a long history: only a limited number of blocks is searched.
    """
    data: Any = None
    info: SetInfo | None = None
    for count, hashed in enumerate(_back_from(layout, last), 1):
        event = hashed.block.event
        if data is None and isinstance(event, (AddData, ExecuteTransform, Seed)):
            data = event
        if info is None and isinstance(event, SetInfo):
            info = event
        if data is not None and (info is not None or not with_info or count >= _MAX_BLOCKS):
            break
    return data, info


def _back_from(layout: DatasetLayout, last: HashedBlock) -> Iterator[HashedBlock]:
    """Yield a block and its ancestors, at most as many as its sequence number allows, even if links are wrong."""
    here = last
    for _ in range(last.block.sequence_number + 1):
        yield here
        previous: Multihash | None = here.block.prev_block_hash
        if previous is None:
            return
        here = read_block(layout.blocks, previous).hashed


def _in_folder(url: str) -> Iterator[DatasetAlias]:
    folder = Path(unquote(urlsplit(url).path))
    try:
        for name in _folders(folder):
            if (folder / name / "refs" / HEAD).is_file():
                yield from _aliases([name])
            elif _is_name(name):
                inner = [
                    known for known in _folders(folder / name) if (folder / name / known / "refs" / HEAD).is_file()
                ]
                yield from _aliases(inner, name)
    except FileNotFoundError:
        raise NotFound(f"There is no folder {folder}", hint="The first push creates a repository.") from None
    except OSError as error:
        raise TransferError(f"Cannot read {error.filename or folder}: {error.strerror}") from error


def _folders(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir())


def _in_bucket(url: str) -> list[DatasetAlias]:
    from odfpy.repository.bucket.location import open_bucket, parse_bucket_url

    place = parse_bucket_url(url)
    bucket = open_bucket(place)
    found: list[DatasetAlias] = []

    def look(name: str) -> None:
        inside = bucket.list(f"{place.folder}{name}/").folders
        if "refs" in inside:
            found.extend(_aliases([name]))
            return
        for inner in inside:
            if _is_name(inner) and "refs" in bucket.list(f"{place.folder}{name}/{inner}/").folders:
                found.extend(_aliases([inner], name))

    run_all([partial(look, name) for name in bucket.list(place.folder).folders if _is_name(name)])
    return found


def _begins_with_dataset(url: str) -> bool:
    from odfpy.repository.bucket.location import open_bucket, parse_bucket_url

    place = parse_bucket_url(url)
    bucket = open_bucket(place)
    names = [name for name in bucket.list(place.folder).folders if _is_name(name) and name not in _OF_DATASETS]
    return any("refs" in bucket.list(f"{place.folder}{name}/").folders for name in names[:_MAX_FOLDERS])


def _is_name(text: str) -> bool:
    return bool(list(_aliases([text])))


def _aliases(names: Iterable[str], account: str | None = None) -> Iterator[DatasetAlias]:
    """Yield the valid dataset names among names."""
    for name in names:
        try:
            yield DatasetAlias(DatasetName(name), AccountName(account) if account else None)
        except InvalidValue:
            continue


def _on_node(url: str, text: str) -> list[ListedDataset]:
    import json

    from odfpy.http.client import HttpClient
    from odfpy.http.paging import PAGE_ITEMS, read_all_datasets
    from odfpy.http.url import without_user
    from odfpy.repository.credentials import advice, authorization

    base = smart_base(url) or url
    server = without_user(base)
    client = HttpClient(TransferError, authorize=authorization)

    def read_page(offset: int) -> list[tuple[DatasetAlias, ListedDataset]]:
        query = urlencode({"search": text, "limit": PAGE_ITEMS, "offset": offset})
        with client.get(f"{base}/datasets?{query}", max_size=_MAX_PAGE_SIZE) as answer:
            if answer.status in (401, 403):
                raise TransferError(f"{server}: the server answers with status {answer.status}", hint=advice(base))
            if answer.status != 200:
                raise NotListable(
                    f"{server} cannot list its datasets (status {answer.status})",
                    hint="Plain web servers can if `odf push` has written an index; nodes, folders and buckets can.",
                )
            try:
                page = [_from_node(item, url) for item in _list(json.loads(answer.readall()))]
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError, InvalidValue) as error:
                raise NotListable(
                    f"{server} cannot list its datasets: the list is not valid",
                    hint="Check that it is a node (`odf serve`).",
                ) from error
        return [(dataset.alias, dataset) for dataset in page]

    return list(read_all_datasets(server, read_page, NotListable).values())


def _list(tree: Any) -> list[Any]:
    if not isinstance(tree, list):
        raise TypeError(type(tree).__name__)
    return tree


def _from_node(item: dict[str, Any], url: str) -> ListedDataset:
    alias = DatasetAlias.parse(str(item["name"]))
    watermark, description, keywords = item["watermark"], item.get("description"), item.get("keywords")
    return ListedDataset(
        alias=alias,
        url=f"{url}/{alias}",
        kind=str(item["kind"]),
        head=str(Multihash.parse(str(item["head"]))),
        num_blocks=int(item["numBlocks"]),
        num_records=int(item["numRecords"]),
        watermark=None if watermark is None else str(watermark),
        description=str(description) if description is not None else None,
        keywords=tuple(map(str, keywords)) if isinstance(keywords, list) else (),
    )
