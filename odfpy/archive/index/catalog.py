"""The list of an index's segments, oldest first, and the block of the chain that it is valid for."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from zlib import crc32

from odfpy.archive.index.checked_file import FileInfo, IndexDamaged, damage_found
from odfpy.archive.index.segment import SegmentInfo
from odfpy.archive.index.segment_writer import PREFIX
from odfpy.files import TEMPORARY, replaced_atomically

FORMAT: Final = 1
"""Version of the file format."""

FILE: Final = "segments"


@dataclass(frozen=True, slots=True)
class Catalog:
    """The list of segments, stored as a file that is replaced atomically.

    Attributes:
        seed: seed of the fingerprints.
        head: the block up to which all rows are indexed, None for an empty index.
        segments: segments, oldest first.
    """

    seed: int
    head: str | None = None
    segments: tuple[SegmentInfo, ...] = ()

    @classmethod
    def empty(cls) -> Catalog:
        """Return an empty index."""
        return cls(secrets.randbits(64))

    @classmethod
    def read(cls, folder: Path) -> Catalog:
        """Read the list in a folder.

        Raises:
            IndexDamaged: the list is missing, or has an unknown format.
        """
        with damage_found():
            text, checksum, rest = (folder / FILE).read_bytes().rsplit(b"\n", 2)
            if rest or f"{crc32(text):08x}".encode() != checksum:
                raise IndexDamaged(f"{folder / FILE} is damaged")
            tree = json.loads(text)
            if tree["format"] != FORMAT:
                raise IndexDamaged(f"{folder / FILE} is of another release")
            segments = [SegmentInfo(**{**entry, "file": FileInfo(**entry["file"])}) for entry in tree["segments"]]
            return cls(tree["seed"], tree["head"], tuple(segments))

    def write(self, folder: Path) -> None:
        """Replace the existing list.

        Raises:
            OSError: the list cannot be written.
        """
        segments = [asdict(segment) for segment in self.segments]
        text = json.dumps({"format": FORMAT, "seed": self.seed, "head": self.head, "segments": segments}).encode()
        with replaced_atomically(folder / FILE) as temporary:
            temporary.write_bytes(text + f"\n{crc32(text):08x}\n".encode())

    def sweep(self, folder: Path) -> None:
        """Remove files that do not belong to the index; requires the lock."""
        names = {segment.file.name for segment in self.segments}
        for path in folder.iterdir():
            if path.name.startswith((PREFIX, TEMPORARY)) and path.name not in names:
                path.unlink(missing_ok=True)
