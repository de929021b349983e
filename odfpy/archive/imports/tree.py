"""Import of a folder tree, whose paths contain the metadata of its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odfpy.archive.archive import Archive
from odfpy.archive.errors import NotAFile, RecordRefused
from odfpy.archive.files import MTIME, mtime_of
from odfpy.archive.imports.outcome import Batches, Imported, ImportLimits, ImportOutcome, PushedBatch
from odfpy.archive.naming.translator import NoMatch, Translator
from odfpy.archive.pushing import NewFile
from odfpy.archive.record import reasons_against_path, reasons_against_times, reasons_against_words
from odfpy.archive.times import parse_time
from odfpy.errors import NotFound, OdfError, UsageError

_TILDE: Final = "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRules:
    """Rules for the metadata of a tree's files. Each is a text, or a translator pattern for the absolute path of a
    file.

    Attributes:
        what: kind of the files.
        where: origin of the files.
        start: a time, or `mtime` for the modification time.
        end: likewise; None for files of a single moment.
        work_id: job of the files.
    """

    what: str
    where: str
    start: str
    end: str | None = None
    work_id: str | None = None


def import_tree(
    archive: Archive,
    folder: Path,
    rules: TreeRules,
    *,
    limits: ImportLimits | None = None,
    on_push: Callable[[PushedBatch], None] = lambda _: None,
) -> Iterator[Imported]:
    """Import the files in a folder and its subfolders; yields the outcome of each, sorted by path.

    Symbolic links are not followed: they may lead anywhere. Files whose paths do not match are skipped.

    Args:
        archive: the target archive.
        folder: the tree.
        rules: rules for the metadata.
        limits: settings of the import.
        on_push: called with each commit.

    Raises:
        NotFound: there is no such folder.
        UsageError: a rule is invalid.
        OdfError: the archive cannot be written; what was pushed before is kept.
    """
    if not folder.is_dir():
        raise NotFound(f"No such folder: {folder}")
    words = _Words(rules)
    chosen = limits or ImportLimits()
    batches = Batches(archive, chosen, on_push, remove=False)
    for path in _walk(folder.absolute()):
        if isinstance(path, Imported):
            yield path
            continue
        try:
            size = path.stat().st_size
            yield from batches.add(str(path), words.new_file(path), size)
        except NoMatch as error:
            yield Imported(str(path), ImportOutcome.SKIPPED, error=error)
        except OSError as error:
            yield Imported(str(path), ImportOutcome.REFUSED, error=OdfError(f"Cannot read {path}: {error.strerror}"))
        except UsageError as error:
            yield Imported(str(path), ImportOutcome.REFUSED, error=error)
    yield from batches.push()


class _Words:
    """The parsed rules."""

    def __init__(self, rules: TreeRules) -> None:
        texts = {"what": rules.what, "where": rules.where, "work_id": rules.work_id}
        self._words = {name: _translator(text) for name, text in texts.items()}
        self._times = {"start": _time_of(rules.start), "end": _time_of(rules.end)}
        # Without a pattern, a value and its errors are the same for all files.
        fixed = {name: word if isinstance(word, str) or word is None else "x" for name, word in self._words.items()}
        reasons = list(reasons_against_words(**fixed))
        if reasons:
            raise RecordRefused("The import", reasons)

    def new_file(self, path: Path) -> NewFile:
        """Return a file with its metadata.

        Raises:
            NoMatch: the path does not match.
            UsageError: the metadata breaks rules.
        """
        text = str(path)
        words = {name: _word(word, text) for name, word in self._words.items()}
        times = {name: _time(time, path) for name, time in self._times.items()}
        reasons = [*reasons_against_words(**words), *reasons_against_times(**times), *reasons_against_path(text)]
        if reasons:
            raise RecordRefused(text, reasons)
        return NewFile(file=path, path=text, **words, **times)  # type: ignore[arg-type]  # they were validated


def _translator(text: str | None) -> Translator | str | None:
    return Translator(text) if text is not None and _TILDE in text else text


def _word(word: Translator | str | None, path: str) -> str | None:
    return word.translate(path) if isinstance(word, Translator) else word


def _time_of(text: str | None) -> Translator | str | int | None:
    """Parse a rule for times: a pattern, `mtime`, or a time that is the same for all files."""
    if text is None or text == MTIME:
        return text
    return Translator(text) if _TILDE in text else parse_time(text)


def _time(time: Translator | str | int | None, path: Path) -> int | None:
    if isinstance(time, Translator):
        return parse_time(time.translate(str(path)))
    return mtime_of(path) if isinstance(time, str) else time


def _walk(folder: Path) -> Iterator[Path | Imported]:
    """Yield the regular files of a folder and its subfolders; everything else as skipped."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        refusal = OdfError(f"Cannot read {folder}: {error.strerror}")
        yield Imported(str(folder), ImportOutcome.REFUSED, error=refusal)
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        else:
            kind = "symbolic link" if entry.is_symlink() else "pipe, socket or device"
            refusal = NotAFile(f"{entry.path} is a {kind}", hint="Push it by its name, if it leads to a file.")
            yield Imported(entry.path, ImportOutcome.SKIPPED, error=refusal)
