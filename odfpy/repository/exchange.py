"""Transfer of a dataset between this machine and a remote, by the protocol of the remote."""

from __future__ import annotations

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.required_signers import RequiredSigners
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.repository.objects import BytesProgress
from odfpy.repository.places.open import open_dataset, smart_base
from odfpy.repository.transfer.linked import ALL_FILES, WantedFiles
from odfpy.repository.transfer.simple import TransferResult, transfer


def fetch_dataset(
    url: str,
    target: DatasetLayout,
    *,
    force: bool = False,
    expected_id: DatasetId | None = None,
    seen: Multihash | None = None,
    required: RequiredSigners | None = None,
    clock: Timestamp | None = None,
    files: WantedFiles = ALL_FILES,
    progress: BytesProgress | None = None,
) -> TransferResult:
    """Update a dataset from the one at a URL; see `transfer`.

    Args:
        url: URL of the dataset.
        target: the local dataset.
        force: whether to overwrite a diverged history.
        expected_id: required id of the dataset, None for any.
        seen: the remote's head when last seen, None if never.
        required: signers required for the head, None for none.
        clock: current time; blocks must not be far ahead of it; None for no check.
        files: which linked objects to transfer.
        progress: called with the number of bytes received.
    """
    base = smart_base(url)
    if base is None:
        return transfer(
            open_dataset(url),
            target,
            force=force,
            expected_id=expected_id,
            seen=seen,
            required=required,
            clock=clock,
            files=files,
            progress=progress,
        )
    from odfpy.repository.smart_transfer.client import pull_from_node  # only imports it for nodes

    return pull_from_node(
        base,
        target,
        force=force,
        expected_id=expected_id,
        seen=seen,
        required=required,
        clock=clock,
        files=files,
        progress=progress,
    )


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
        files: which linked objects to transfer; none where rows link to none.
        progress: called with the transferred and the total number of bytes.
    """
    base = smart_base(url)
    if base is None:
        return transfer(source, open_dataset(url), force=force, is_ours=True, files=files, progress=progress)
    from odfpy.repository.smart_transfer.client import push_to_node
    from odfpy.repository.smart_transfer.messages import Visibility

    visibility = Visibility.PUBLIC if public else Visibility.PRIVATE
    return push_to_node(source, base, force=force, visibility=visibility, files=files, progress=progress)
