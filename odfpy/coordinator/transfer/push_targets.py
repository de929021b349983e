"""Checks of push targets: each dataset has its own folder, and no dataset may be inside of another one."""

from __future__ import annotations

from urllib.parse import urlsplit

from odfpy.chain.stores.ref_store import HEAD
from odfpy.errors import UsageError
from odfpy.http.url import without_user
from odfpy.repository.locations.index import has_index
from odfpy.repository.locations.listing import holds_datasets
from odfpy.repository.locations.open import is_writable, open_dataset, smart_base


def check_push_target(url: str, name: str) -> None:
    """Check that a dataset may be pushed to a folder or bucket, with no other dataset above or below it.

    Args:
        url: URL of the target.
        name: local name of the dataset, for the hint.

    Raises:
        UsageError: the folder is a repository, or its parent is a dataset; or the URL is that of a node, without the
            name of a dataset.
    """
    if smart_base(url) is not None and not urlsplit(url).path.strip("/"):
        raise UsageError(
            f"{without_user(url)} is the URL of a node, and names no dataset",
            hint=f"End it with a slash, or add the name: --to {without_user(url)}/{name}",
        )
    _require_repository(url.rpartition("/")[0])
    if is_writable(url) and not _is_dataset(url) and _is_repository(url):
        raise UsageError(
            f"{url} is a repository with datasets in it",
            hint=f"Push to a dataset in it: --to {url}/{name}, or, with a slash at the end, --to {url}/",
        )


def _require_repository(url: str) -> None:
    is_place = "://" in url.rstrip("/")  # nothing is above the root folder or a bucket
    if not is_place or not is_writable(url) or not _is_dataset(url):
        return
    hint = f"Push to the folder that it is in: --to {url.rpartition('/')[0]}/"
    if _is_repository(url):
        hint = (
            "There are others in it all the same: earlier releases let a push without a slash at the end mix its files"
            " with them. Remove what is of that dataset alone, the folders blocks, checkpoints, data, info and refs in"
            f" {url}, and push it again with --to {url}/"
        )
    raise UsageError(f"{url} is a dataset, not a repository", hint=hint)


def _is_dataset(url: str) -> bool:
    return open_dataset(url).refs.get(HEAD) is not None


def _is_repository(url: str) -> bool:
    return has_index(url) or holds_datasets(url)
