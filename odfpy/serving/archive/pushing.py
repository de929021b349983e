"""Records pushed over HTTP: each is validated individually, then all valid ones are committed together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from odfpy.archive.errors import RecordRefused, WrongContent
from odfpy.archive.files import Content
from odfpy.archive.preparing import PreparedFile, draft_of, prepared
from odfpy.archive.pushing import NewFile, Pushed
from odfpy.archive.reports import Pusher, recorded_push
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.errors import ObjectNotFound, OdfError
from odfpy.serving.archive.models import NewRecordModel, tree_of
from odfpy.serving.archive.served import ServedArchive
from odfpy.serving.archive.uploads import object_name


class Pushing:
    """A push of records whose bytes were uploaded before."""

    def __init__(self, served: ServedArchive) -> None:
        self._served = served
        self._contents: dict[Multihash, Content] = {}

    def push(self, trees: Sequence[Any]) -> list[dict[str, Any]]:
        """Archive all valid records; call it from a thread.

        Args:
            trees: the records, as received.

        Returns:
            A result for each, in the form of `PushedModel`.

        Raises:
            OdfError: the archive cannot be written; nothing was archived.
        """
        results = recorded_push(self._served.archive, Pusher.SERVER, lambda: self._push(trees))
        return [self._tree(result) for result in results]

    def _push(self, trees: Sequence[Any]) -> list[Pushed]:
        files, outcomes = [], []
        with self._served.scratch() as scratch:
            for number, tree in enumerate(trees):
                new, outcome = self._looked_at(tree, number, scratch)
                files.append(new)
                outcomes.append(outcome)
            return self._served.archive.push_prepared(files, outcomes, scratch)

    def _looked_at(self, tree: Any, number: int, scratch: Path) -> tuple[NewFile, PreparedFile | OdfError]:
        new = NewFile(file=Path(f"record {number}"), what="", where="")
        try:
            new, size = new_file(tree, number)
            assert new.object is not None  # noqa: S101 - checked by `new_file`
            draft = draft_of(new, new.object.algorithm, Timestamp.now().millis, is_translated=False)
            content = self._content(new.object, str(new.file), scratch)
            if size is not None and size != content.size:
                raise WrongContent(f"{new.file}: it has {content.size} bytes, not {size}")
            return new, prepared(new, draft, content)
        except OdfError as error:
            return new, error

    def _content(self, name: Multihash, file: str, scratch: Path) -> Content:
        """Return the bytes of a file with their hash: the upload, or the copy that the archive has already."""
        known = self._contents.get(name)
        if known is None:
            uploads, store = self._served.uploads, self._served.archive.dataset.layout.data
            if self._served.has(name):
                path = scratch / str(name)  # this path does not exist: the file need not be moved into the store
                size, opened = store.size(name), lambda: store.open(name)
            elif uploads.has(name):
                path = uploads.path(name)
                size, opened = path.stat().st_size, lambda: path.open("rb")
            else:
                raise ObjectNotFound(
                    f"{file}: its bytes have not arrived yet", hint=f"Send {name} first, then the record."
                )
            known = self._contents[name] = Content(path, size, uploads.hash_of(name, opened), name, 0)
        return known

    def _tree(self, pushed: Pushed) -> dict[str, Any]:
        tree: dict[str, Any] = {"outcome": pushed.outcome.value}
        if pushed.record is not None:
            tree["record"] = tree_of(pushed.record, self._served.url(pushed.record.id))
        if pushed.error is not None:
            error = pushed.error
            reasons = list(error.reasons) if isinstance(error, RecordRefused) else []
            fault = {"code": error.code, "message": error.message, "hint": error.hint, "reasons": reasons}
            tree["error"] = fault
        return tree


def new_file(tree: Any, number: int) -> tuple[NewFile, int | None]:
    """Parse the file in a record, and the size that the record claims.

    Args:
        tree: the record, as received.
        number: its index, for messages.

    Raises:
        RecordRefused: it does not have the fields of a record.
    """
    try:
        model = NewRecordModel.model_validate(tree)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, problem['loc'])) or 'it'}: {problem['msg']}" for problem in error.errors()[:20]
        ]
        raise RecordRefused(f"record {number}", problems) from error
    name = object_name(model.object)
    if name is None:
        raise RecordRefused(f"record {number}", ["object is not a multihash, BLAKE3 or SHA3-256, in multibase"])
    new = NewFile(
        file=Path(model.path or f"record {number}"),
        what=model.what,
        where=model.where,
        work_id=model.work_id,
        start=model.start,
        end=model.end,
        path=model.path,
        id=model.id,
        hash=model.hash,
        object=name,
        create_time=model.create_time,
    )
    return new, model.size
