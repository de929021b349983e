"""Files that are embedded in an event (ODF specification, "SetAttachments")."""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeAlias

from odfpy.data.scalars import SingleMemberUnion
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class AttachmentEmbedded:
    """A small text file.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#attachmentembedded

    Attributes:
        path: path of the file, relative to the dataset.
        content: text of the file.
    """

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class AttachmentsEmbedded:
    """Files that are embedded in the event itself.

    https://github.com/open-data-fabric/open-data-fabric/blob/master/open-data-fabric.md#attachmentsembedded

    Attributes:
        items: the files.
    """

    KIND: ClassVar[str] = "Embedded"

    items: tuple[AttachmentEmbedded, ...]


Attachments: TypeAlias = Annotated[AttachmentsEmbedded, SingleMemberUnion()]
