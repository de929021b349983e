"""Read DatasetSnapshot manifests from files, folders, URLs and standard input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import unquote, urlsplit

from odfpy.chain.block import DatasetSnapshot
from odfpy.chain.encoding import dump_snapshot, load_snapshots
from odfpy.chain.events import AddPushSource, SetPollingSource, SetVocab
from odfpy.chain.state import ChainState
from odfpy.codec.tree import Path as TreePath
from odfpy.codec.tree import TreeError
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import InvalidValue, MalformedManifest, NotFound, OdfError, UsageError, did_you_mean

if TYPE_CHECKING:
    from odfpy.ingest.source_checks import SourceFault

MAX_MANIFEST_SIZE: Final = 16 << 20
"""Maximum size of one source of manifests in bytes; manifests may include documentation."""

_SUFFIXES: Final = (".yaml", ".yml")
_STDIN: Final = "standard input"
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/|[^/\\])")
_MARK: Final = b"DatasetSnapshot"


def load(
    sources: Sequence[Path | str], *, recursive: bool = False, stdin: BinaryIO | None = None
) -> list[DatasetSnapshot]:
    """Read all manifests in files, URLs (http, https, file) and, with `recursive`, folders; `-` is standard input.

    In a folder, YAML files that declare a DatasetSnapshot are read; hidden files and folders are skipped.

    Args:
        sources: files, URLs, folders and `-`.
        recursive: whether folders are searched.
        stdin: the stream to read for `-`.

    Raises:
        MalformedManifest: a manifest is invalid, or can never work; the message names source, line and path.
        NotFound: a file or URL does not exist.
        OdfError: a source cannot be read, or is too large.
        UsageError: a folder without `recursive`, or an unsupported URL.
    """
    snapshots: list[DatasetSnapshot] = []
    for source in sources:
        text = str(source)
        if text == "-":
            snapshots += _parsed(_limited(stdin, _STDIN) if stdin else b"", _STDIN)
        elif isinstance(source, str) and (scheme := _SCHEME.match(text)) and not Path(text).exists():
            snapshots += _from_url(text, scheme[1].lower())
        else:
            for file in _files(Path(source), recursive=recursive):
                snapshots += _parsed(_read(file), str(file))
    return snapshots


def snapshot_of(name: DatasetAlias, state: ChainState) -> DatasetSnapshot:
    """Return a manifest that would create such a dataset, with all current metadata that manifests can express.

    Args:
        name: the name in the manifest.
        state: the state of the dataset's chain.
    """
    events = (state.set_vocab, *state.sources, state.set_transform, state.info, state.license, state.attachments)
    return DatasetSnapshot(name, state.kind, tuple(event for event in events if event is not None))


def changes_of_manifest(name: DatasetAlias, before: ChainState, after: ChainState) -> tuple[str, ...]:
    """Return a diff between the manifests of two states of a dataset, with context lines.

    Args:
        name: name of the dataset.
        before: the earlier state.
        after: the later state.
    """
    old, new = (dump_snapshot(snapshot_of(name, state)).splitlines() for state in (before, after))
    return tuple(unified_diff(old, new, lineterm="", n=2))[2:]  # without the file names


def is_from_elsewhere(source: str) -> bool:
    """Return whether a manifest is read over the network, and therefore untrusted."""
    scheme = _SCHEME.match(source)
    return scheme is not None and scheme[1].lower() != "file" and not Path(source).exists()


def _parsed(data: bytes, source: str) -> list[DatasetSnapshot]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise MalformedManifest(f"{source}, line {line}: not UTF-8") from error
    return load_snapshots(text, source, check_feasible, {"schedule": _with_schedule})


def _with_schedule(snapshot: DatasetSnapshot, tree: Any, path: TreePath) -> DatasetSnapshot:
    from odfpy.coordinator.schedules.scheduled_snapshot import with_schedule  # few manifests have one

    return with_schedule(snapshot, tree, path)


def check_feasible(snapshot: DatasetSnapshot) -> None:
    """Check that a manifest has no combination of settings that fails for any data.

    Raises:
        TreeError: the manifest has one; the message has its path.
    """
    for fault in _impossible(snapshot):
        path = ("content", "metadata", *fault.path)
        raise TreeError(path, fault.error.message, hint=fault.error.hint) from fault.error


def _impossible(snapshot: DatasetSnapshot) -> Iterator[SourceFault]:
    from odfpy.ingest.source_checks import SourceFault, check_source, check_vocabulary

    vocabulary = next((event.vocabulary for event in snapshot.metadata if isinstance(event, SetVocab)), None)
    pushed: set[str] = set()
    for number, event in enumerate(snapshot.metadata):
        faults: Iterable[SourceFault] = ()
        match event:
            case SetVocab():
                faults = check_vocabulary(event.vocabulary)
            case AddPushSource(source_name=name) if name in pushed:
                hint = "The second would replace the first. Give each a different name."
                error = InvalidValue(f"another push source has the name {name!r}", hint=hint)
                faults = [SourceFault(("sourceName",), error)]
            case SetPollingSource() | AddPushSource():
                faults = check_source(event, vocabulary or DEFAULT_VOCABULARY)
        if isinstance(event, AddPushSource):
            pushed.add(event.source_name)
        yield from (SourceFault((number, *fault.path), fault.error) for fault in faults)


# --- Files -----------------------------------------------------------------------------------------------------------


def _files(path: Path, *, recursive: bool) -> list[Path]:
    if not path.is_dir():
        return [path]
    if not recursive:
        raise UsageError(f"{path} is a folder", hint="Add all manifests in it with --recursive.")
    files = (file for file in sorted(path.rglob("*")) if file.suffix in _SUFFIXES and file.is_file())
    visible = (file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts))
    manifests = [file for file in visible if _MARK in _read(file)]
    if not manifests:
        raise NotFound(f"No manifests (*.yaml with `kind: DatasetSnapshot`) in {path}")
    return manifests


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return _limited(stream, str(file))
    except FileNotFoundError:
        with suppress(OSError):
            others = [path.name for path in file.parent.iterdir() if path.suffix in _SUFFIXES]
            raise NotFound(f"No such file: {file}", hint=did_you_mean(file.name, others)) from None
        raise NotFound(f"No such file: {file}") from None
    except OSError as error:
        raise OdfError(f"Cannot read {file}: {error.strerror}") from error


def _limited(stream: BinaryIO, source: str) -> bytes:
    data = stream.read(MAX_MANIFEST_SIZE + 1)
    if len(data) > MAX_MANIFEST_SIZE:
        raise OdfError(
            f"{source} has more than {MAX_MANIFEST_SIZE >> 20} MiB, too much for a manifest",
            hint="To ingest data, use `odf ingest`.",
        )
    return data


# --- URLs ------------------------------------------------------------------------------------------------------------


def _from_url(url: str, scheme: str) -> list[DatasetSnapshot]:
    if scheme == "file":
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise UsageError(f"{url} names a file on another machine", hint="Write file:///folder/name.yaml.")
        path = Path(unquote(parts.path))
        return _parsed(_read(path), str(path))
    if scheme not in ("http", "https"):
        raise UsageError(
            f"Manifests cannot be read from {scheme}: URLs, such as {_without_secrets(url)}",
            hint="Use http, https or file, or pass the manifest on standard input: `... | odf add -`.",
        )
    return _download(url)


def _download(url: str) -> list[DatasetSnapshot]:
    from odfpy.http.client import HttpClient

    shown = _without_secrets(url)
    client = HttpClient(OdfError)
    try:
        with client.get(url, max_size=MAX_MANIFEST_SIZE, label=shown) as answer:
            if answer.status in (404, 410):
                raise NotFound(f"There is no manifest at {shown}", hint="Open the URL in a browser to check it.")
            if answer.status != 200:
                raise OdfError(f"Cannot read {shown}: the server answers with status {answer.status}")
            kind = answer.headers.get_content_type()
            data = answer.read()
    finally:
        client.close()
    if kind == "text/html":
        raise MalformedManifest(f"{shown} is a web page, not a manifest", hint="Use the address of the file itself.")
    return _parsed(data, shown)


def _without_secrets(url: str) -> str:
    from odfpy.ingest.templates import without_secrets

    return without_secrets(url)
