"""Transfer of a dataset to or from a remote, by the protocol of the remote."""

from __future__ import annotations

from odfpy.chain.layout import DatasetLayout
from odfpy.repository.locations.open import open_dataset, smart_base
from odfpy.repository.objects import BytesProgress
from odfpy.repository.transfer.linked import ALL_FILES, WantedFiles
from odfpy.repository.transfer.options import DEFAULTS, TransferOptions
from odfpy.repository.transfer.simple import TransferResult, transfer


def fetch_dataset(
    url: str,
    target: DatasetLayout,
    options: TransferOptions = DEFAULTS,
    *,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Update a dataset from the one at a URL; see `transfer`.

    Args:
        url: URL of the dataset.
        target: the local dataset.
        options: requirements on the source, and content to copy.
        progress: called with the number of bytes received.
    """
    base = smart_base(url)
    if base is None:
        return transfer(open_dataset(url), target, options, progress=progress)
    from odfpy.repository.smart_transfer.client import pull_from_node  # only imported for nodes

    return pull_from_node(base, target, options, progress=progress)


def send_dataset(
    source: DatasetLayout,
    url: str,
    *,
    force: bool = False,
    public: bool = False,
    files: WantedFiles = ALL_FILES,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Update the dataset at a URL from this one; see `transfer`.

    Args:
        source: the local dataset, only read.
        url: URL of the dataset.
        force: whether to overwrite the remote history, even if that drops blocks there.
        public: visibility of the dataset if it is new there; only used by nodes.
        files: linked objects to transfer; none if rows have no links.
        progress: called with the transferred and the total number of bytes.
    """
    base = smart_base(url)
    if base is None:
        options = TransferOptions(force=force, files=files)
        return transfer(source, open_dataset(url), options, is_ours=True, progress=progress)
    from odfpy.repository.smart_transfer.client import push_to_node
    from odfpy.repository.smart_transfer.messages import Visibility

    visibility = Visibility.PUBLIC if public else Visibility.PRIVATE
    return push_to_node(source, base, force=force, visibility=visibility, files=files, progress=progress)
