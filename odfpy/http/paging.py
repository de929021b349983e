"""Lists that a server returns in pages, by `limit` and `offset`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from odfpy.errors import OdfError

PAGE_ITEMS = 1000
MAX_DATASETS = 1_000_000

_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")


def read_all_datasets(
    server: str, read_page: Callable[[int], list[tuple[_K, _T]]], failed: Callable[..., OdfError]
) -> dict[_K, _T]:
    """Read all pages of a list of datasets.

    Datasets that are added or removed meanwhile shift others to another page: a dataset on two pages counts once.

    Args:
        server: URL of the server, for messages.
        read_page: returns names and datasets from an offset on: `PAGE_ITEMS`, or fewer on the last page.
        failed: creates the error from a message and a `hint`.

    Raises:
        OdfError: the error of `failed`, if the server repeats a page or its list has no end.
    """
    datasets: dict[_K, _T] = {}
    offset = 0
    while True:
        page = read_page(offset)
        known = len(datasets)
        datasets.update(page)
        offset += len(page)
        if len(page) < PAGE_ITEMS:
            return datasets
        if len(datasets) == known:
            raise failed(f"{server} lists the same datasets repeatedly", hint="A cache in between may ignore `offset`.")
        if len(datasets) > MAX_DATASETS:
            raise failed(
                f"{server} lists more than {MAX_DATASETS} datasets",
                hint="No node has that many: name the dataset that you need.",
            )
