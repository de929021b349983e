"""The choice of linked objects in a copy: a setting of the dataset, used by pulls and verifications."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.config import Config
from odfpy.data.amounts import count_of
from odfpy.data.link_filter import LinkFilter
from odfpy.data.schemas.object_links import link_columns
from odfpy.repository.transfer.linked import NO_FILES, LinkedResult, WantedFiles
from odfpy.settings.dataset_sections import CopySection

SETTING: Final = "copy.files"


def choice_of(folder: Path) -> LinkFilter:
    """Return the choice of linked objects of the dataset in a folder.

    Raises:
        InvalidValue, MalformedManifest: the setting is damaged.
    """
    return LinkFilter.parse(Config.of_dataset(folder).section(CopySection).files)


def save_choice(folder: Path, choice: LinkFilter) -> None:
    """Store the choice in the settings of the dataset in a folder, unless it is the default."""
    if choice_of(folder) != choice:
        Config.of_dataset(folder).set(SETTING, None if choice.is_whole else str(choice))


def files_to_fetch(folder: Path, asked: LinkFilter | None) -> WantedFiles:
    """Return the linked objects that a pull must fetch.

    Args:
        folder: folder of the dataset.
        asked: the choice of this request; None for the setting. A requested choice applies to the whole history.
    """
    return WantedFiles(choice_of(folder)) if asked is None else WantedFiles(asked, complete=True)


def files_to_send(folder: Path, state: ChainState, asked: LinkFilter | None) -> WantedFiles:
    """Return the linked objects that a push sends; a copy with some files only sends the ones that it has.

    Args:
        folder: folder of the dataset.
        state: the state of the chain; nothing is read for datasets without links.
        asked: the choice of this request; None for all objects.
    """
    if state.set_schema is None or not link_columns(state.set_schema.schema):
        return NO_FILES
    lacks = not choice_of(folder).is_whole
    return WantedFiles(asked or LinkFilter(), may_lack=lacks, complete=asked is not None)


def remarks_on(links: LinkedResult) -> list[str]:
    """Return remarks on transferred files for the user."""
    remarks = []
    if links.count:
        remarks.append(f"{count_of(links.count, 'file')} ({links.size} byte{'' if links.size == 1 else 's'})")
    if links.elsewhere:
        remarks.append(f"missing, although rows link to them: {count_of(links.elsewhere, 'file')}")
    return remarks
