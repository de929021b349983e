"""Moving a dataset between this machine and another place, by the protocol that is spoken there."""

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
    """Bring a dataset up to that at a URL; see `transfer`.

    Args:
        url: address of the dataset.
        target: the dataset here.
        force: whether a history that has diverged is overwritten.
        expected_id: the id that the dataset must have, None for any.
        seen: the head that was seen there last, None for none.
        required: who must have signed the head, None for nobody.
        clock: the time here, of which blocks may not be far ahead; None for no check.
        files: the linked objects that are wanted.
        progress: is told of bytes that have arrived.
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
    from odfpy.repository.smart_transfer.client import pull_from_node  # loads what only nodes need

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
    """Bring the dataset at a URL up to this one; see `transfer`.

    Args:
        source: only read.
        url: where to.
        force: let what is there become the same as this, even when that drops blocks there.
        public: whether everybody may read the dataset, if it is new there; only nodes care.
        files: the linked objects that go along; none where rows link to none.
        progress: called with bytes done and bytes in all.
    """
    base = smart_base(url)
    if base is None:
        return transfer(source, open_dataset(url), force=force, is_ours=True, files=files, progress=progress)
    from odfpy.repository.smart_transfer.client import push_to_node
    from odfpy.repository.smart_transfer.messages import Visibility

    visibility = Visibility.PUBLIC if public else Visibility.PRIVATE
    return push_to_node(source, base, force=force, visibility=visibility, files=files, progress=progress)
