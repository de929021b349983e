"""`odf new --from`: infer a manifest from data, and preview the first rows of its dataset."""

from __future__ import annotations

import glob
import os
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import SetPollingSource, SetVocab
from odfpy.chain.sources import FetchFilesGlob, FetchUrl, SourceOrdering
from odfpy.coordinator.inferred_manifest import findings_tree, manifest_text
from odfpy.coordinator.ingest.fetch_limits import fetch_limits
from odfpy.coordinator.manifests import check_feasible
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.workspace_folder import WorkspaceFolder
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import FetchError, InvalidValue, NotFound, UsageError, WorkspaceNotFound
from odfpy.http.url import split_url, without_user

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?=/|[^/\\])")
_SECRET: Final = re.compile(r"(?:^|[&_-])(?:key|apikey|token|secret|password|pwd|sig|signature)=", re.IGNORECASE)
_KNOWN: Final = (
    ".csv", ".tsv", ".json", ".ndjson", ".jsonl", ".geojson", ".geojsonl", ".parquet", ".txt", ".gz", ".zip",
)  # fmt: skip
_SUFFIXES: Final = frozenset({*_KNOWN, ".tab", ".psv", ".pq", ".shp", ".gzip"})


@dataclass(frozen=True, slots=True)
class InferredManifest:
    """An inferred manifest.

    Attributes:
        name: name of the dataset.
        text: the manifest, with comments.
        rows: the first rows as the dataset would have them, with system columns.
        findings: the findings, for programs.
    """

    name: str
    text: str
    rows: pa.Table
    findings: dict[str, Any]


def infer_manifest(place: str, name: str | None, folder: Path) -> InferredManifest:
    """Examine data, and write the manifest of a dataset that ingests it.

    Only scratch files are written. A workspace is not required; inside of one, its settings apply, and file paths in it
    are relative to its root.

    Args:
        place: a file, a folder, a pattern of files, or a URL.
        name: name of the dataset, None to derive it from the place.
        folder: the folder in which the search for a workspace begins.

    Raises:
        IngestError: the data is missing, or cannot be fetched or read; the message says where.
        UsageError: the place is invalid, or no name can be derived from it.
        NotFound: the file does not exist.
    """
    from odfpy.ingest.fetch import FetchContext
    from odfpy.ingest.inference.infer import first_rows, infer

    root, is_workspace = _root(folder)
    step = _fetch_step(place, root, is_workspace=is_workspace)
    alias = name or name_for(place)
    DatasetAlias.parse(alias)
    limits = fetch_limits(Config.load(root))
    now = Timestamp.now()
    with tempfile.TemporaryDirectory(prefix="odf-new-") as scratch:
        context = FetchContext(
            now=now,
            root=root,
            scratch=Path(scratch),
            environment=os.environ,
            max_bytes=limits.max_bytes,
            timeout=limits.timeout,
            retries=limits.retries,
            options=limits.sources,
        )
        findings = infer(step, context, limits.unpack)
        findings = replace(findings, remarks=(*findings.remarks, *_remarks_on_secrets(step)))
        text = manifest_text(alias, findings)
        # Parse the written manifest and produce the rows with it, so that the preview shows its effect.
        (snapshot,) = load_snapshots(text, "the inferred manifest", check_feasible)
        source = next(event for event in snapshot.metadata if isinstance(event, SetPollingSource))
        named = next((event for event in snapshot.metadata if isinstance(event, SetVocab)), None)
        vocabulary = named.vocabulary if named else DEFAULT_VOCABULARY
        rows = first_rows(source, vocabulary, findings, now, Path(scratch))
    shown = rows.drop_columns([vocabulary.system_time_column]) if rows.num_columns else rows
    return InferredManifest(alias, text, shown, findings_tree(findings))


def name_for(source: str) -> str:
    """Derive the name of a dataset from its source: the name of the file or folder, without suffixes of the format.

    Raises:
        UsageError: the name is not a valid dataset name, or the source is not a valid URL.
    """
    path = unquote(split_url(source).path) if _is_url(source) else source
    parts = [part for part in PurePosixPath(os.path.normpath(path)).parts if not glob.has_magic(part)]
    stem = parts[-1] if parts and parts[-1] not in ("/", "..", ".") else Path.cwd().name
    while (suffix := PurePosixPath(stem).suffix) and suffix.lower() in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    try:
        DatasetAlias.parse(stem)
    except InvalidValue as error:
        raise UsageError(
            f"{stem!r} is not a name of a dataset",
            hint=f"Give one: `odf new NAME --from {without_user(source)}`. {error.hint or ''}".strip(),
        ) from error
    return stem


def _remarks_on_secrets(step: FetchUrl | FetchFilesGlob) -> tuple[str, ...]:
    """Return remarks on a URL that may contain secrets."""
    url = urlsplit(step.url if isinstance(step, FetchUrl) else "")
    if "${{" in url.geturl() or not (url.password or _SECRET.search(url.query)):
        return ()
    return ("the URL may contain a secret; write ${{ env.NAME }} instead, and set that variable",)


def _root(folder: Path) -> tuple[Path, bool]:
    """Return the folder that relative paths refer to, and whether it is the root of a workspace."""
    try:
        return WorkspaceFolder.find(folder).root, True
    except WorkspaceNotFound:
        return folder.resolve(), False


def _is_url(source: str) -> bool:
    return _SCHEME.match(source) is not None and not os.path.exists(source)  # noqa: PTH110 - works for any name


def _fetch_step(source: str, root: Path, *, is_workspace: bool) -> FetchUrl | FetchFilesGlob:
    """Return the fetch step for a source, with paths that do not depend on the current folder.

    Raises:
        NotFound: the file does not exist.
        FetchError: its name is not UTF-8.
        UsageError: the source is invalid.
    """
    from odfpy.ingest.read.json_columns import is_encodable

    if not source:
        raise UsageError("--from must be a file, a folder or a URL, not an empty string")
    if _is_url(source):
        return FetchUrl(_whole_file_url(source, root, is_workspace=is_workspace))
    path = Path(os.path.abspath(source))  # noqa: PTH100 - keeps `..` and links as typed
    if not is_encodable(str(path)):  # the chain and manifests are UTF-8
        raise FetchError(f"File name {source!a} is not UTF-8", hint="Rename the file.")
    if os.path.isfile(path):  # noqa: PTH113 - also handles names that are too long, and unreadable folders
        return FetchUrl("file:" + quote(_from_root(path, root, is_workspace=is_workspace)))
    if os.path.isdir(path):  # noqa: PTH112
        pattern = glob.escape(_from_root(path, root, is_workspace=is_workspace)) + "/" + _pattern_in(path)
        return FetchFilesGlob(pattern.removeprefix("./"), order=SourceOrdering.BY_NAME)
    if glob.has_magic(source):
        base = "" if Path(source).is_absolute() else glob.escape(str(Path.cwd())) + "/"
        pattern = _from_root(Path(base + source), root, is_workspace=is_workspace, start=glob.escape(str(root)))
        return FetchFilesGlob(pattern, order=SourceOrdering.BY_NAME)
    raise NotFound(
        f"There is no file {source}", hint="--from takes a file, a folder, a pattern such as 'in/*.csv', or a URL."
    )


def _whole_file_url(url: str, root: Path, *, is_workspace: bool) -> str:
    """Return a `file:` URL with its path relative to the workspace, or absolute without one."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() != "file":
        return url
    if rest.startswith("/") or is_workspace:
        return f"file:{rest}"
    return "file:" + quote(str(root / unquote(rest)))


def _from_root(path: Path, root: Path, *, is_workspace: bool, start: str | None = None) -> str:
    """Return a path relative to the workspace's root if the path is inside of it, else the absolute path."""
    if is_workspace:
        for candidate in (path, path.resolve()):
            if candidate.is_relative_to(start or root):
                return candidate.relative_to(start or root).as_posix()
    return path.as_posix()


def _pattern_in(folder: Path) -> str:
    """Return a pattern for the data files of a folder: all files with its most frequent suffix.

    Raises:
        NotFound: no file has a known suffix.
        UsageError: the folder cannot be read.
    """
    try:
        names = [path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    except OSError as error:
        raise UsageError(f"Cannot read the folder {folder}: {error.strerror}") from error
    endings = Counter("".join(_endings(name)) for name in sorted(names))
    endings.pop("", None)
    if not endings:
        raise NotFound(f"No file in {folder} has a known file extension", hint=f"Known are {', '.join(_KNOWN)}.")
    return f"*{endings.most_common(1)[0][0]}"


def _endings(name: str) -> list[str]:
    """Return the suffixes of a name that identify a format, such as `.csv` and `.gz`."""
    suffixes: list[str] = []
    while (suffix := PurePosixPath(name).suffix) and suffix.lower() in _SUFFIXES:
        suffixes.insert(0, suffix)
        name = name.removesuffix(suffix)
    return suffixes
