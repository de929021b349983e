"""Checks of rows that are about to be committed: that the objects they link to exist, and counts of them.

A row with a link may only be committed with its object, which is either in the dataset already or added by the same
commit. A row that records the removal of the bytes needs no object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from odfpy.chain.events import AddData, MetadataEvent, SetDataSchema
from odfpy.chain.link_summary import LinkedObjects
from odfpy.chain.links.linked_objects import UNKNOWN, LinkedRows, linked_rows
from odfpy.chain.state import ChainState
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.data.hash_set import name_of
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.object_links import check_links, link_columns
from odfpy.data.schemas.schema import DataSchema
from odfpy.errors import IngestError, ObjectNotFound
from odfpy.values import dataclass

_PUT: Final = (
    "Add the file to the dataset before its row, or together with it: `odf archive push`, or in a program"
    " `commit_events` with `objects`."
)
_TEXT: Final = "A link is the hash of the file's bytes: f1e20 and 64 hex digits of BLAKE3, or f1620 and 64 of SHA3-256."


class LinkRefused(IngestError, code="E415"):
    """A row links to an object that is missing in the dataset, or does not match the row."""


@dataclass(frozen=True)
class LinkCheck:
    """The objects that rows may link to.

    Attributes:
        store: store of the objects in the dataset.
        coming: files that are committed with the rows, by the names of the objects.
    """

    store: ObjectStore
    coming: Mapping[Multihash, Path]

    def checked(
        self, state: ChainState, events: Sequence[MetadataEvent], written: Mapping[Multihash, Path]
    ) -> list[MetadataEvent]:
        """Return the events of a commit, each with the number of objects that its rows link to.

        Args:
            state: state of the chain that the events follow.
            events: the events, oldest first.
            written: files of the slices in the events. Those of a schema without links are not opened.

        Raises:
            LinkRefused: a linked object does not exist, or has another size; the message names the row.
            SchemaError: the attributes of a column do not define a valid link.
        """
        schema = None if state.set_schema is None else state.set_schema.schema
        done: list[MetadataEvent] = []
        for event in events:
            if isinstance(event, SetDataSchema):
                schema = event.schema
            if isinstance(event, AddData) and event.new_data is not None:
                path = written.get(event.new_data.physical_hash)
                links = (
                    None
                    if schema is None or path is None
                    else self._links(schema, state, path, event.new_data.offset_interval.start)
                )
                if links is not None:
                    done.append(replace(event, extra=links.beside(event.extra)))
                    continue
            done.append(event)
        return done

    def _links(self, schema: DataSchema, state: ChainState, path: Path, first: int) -> LinkedObjects | None:
        check_links(schema)
        columns = link_columns(schema)
        if not columns:
            return None
        links = LinkedObjects()
        for rows in linked_rows(path, columns, state.vocab):
            links += self._counted(rows, first + rows.first)
        return links

    def _counted(self, rows: LinkedRows, first: int) -> LinkedObjects:
        """Check the links of rows, the first of which has the given offset, and return their number and size."""
        import numpy as np

        is_new = rows.is_new
        for at, text in rows.others.items():
            if is_new[at]:
                raise _refused(rows, first + at, f"is not the hash of an object: {text[:80]!r}", _TEXT)
        linking = np.flatnonzero(is_new & rows.is_link)
        names, places = np.unique(rows.names[linking], return_inverse=True)
        sizes = np.fromiter((self._size(name_of(name)) for name in names.tolist()), np.int64, len(names))[places]
        stated_sizes = rows.sizes[linking]
        for place in np.flatnonzero((sizes == UNKNOWN) & ~rows.removed[linking]):
            problem = f"links to {name_of(names[places[place]])}, which is not in the dataset"
            raise _refused(rows, first + int(linking[place]), problem, _PUT)
        for place in np.flatnonzero((sizes != UNKNOWN) & (stated_sizes != UNKNOWN) & (sizes != stated_sizes)):
            problem = (
                f"links to {name_of(names[places[place]])} of {sizes[place]} bytes, but its column"
                f" {rows.column.size!r} says {stated_sizes[place]}"
            )
            raise _refused(rows, first + int(linking[place]), problem, "The size is that of the file's bytes.")
        known = np.where(sizes != UNKNOWN, sizes, np.maximum(stated_sizes, 0))
        return LinkedObjects(len(linking), int(known.sum()))

    def _size(self, name: Multihash) -> int:
        """Return the size of an object that exists or will be added, `UNKNOWN` for others."""
        path = self.coming.get(name)
        try:
            return self.store.size(name) if path is None else path.stat().st_size
        except (ObjectNotFound, FileNotFoundError):
            return UNKNOWN


def _refused(rows: LinkedRows, offset: int, problem: str, hint: str) -> LinkRefused:
    return LinkRefused(f"Row {offset}, column {rows.column.name!r}: {problem}", hint=hint)
