"""Actions of sources on the machine that runs a pull, described for approval by the user."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from odfpy.chain.events import SetPollingSource, Source
from odfpy.chain.sources import FetchContainer, FetchEthereumLogs, FetchFilesGlob, FetchMqtt, FetchStep, FetchUrl
from odfpy.coordinator.storage.approvals import Approvals
from odfpy.coordinator.storage.results import DatasetHandle
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.ingest.prepare import commands_of
from odfpy.ingest.templates import variables_of, without_secrets


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a source.

    Attributes:
        text: the action, as a sentence without its subject: `runs the command ...`.
        reaches_out: whether it runs a program, reads files outside of the workspace, or discloses a variable.
    """

    text: str
    reaches_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSource:
    """A source of a dataset, with its actions.

    Attributes:
        handle: handle of the dataset.
        name: name of a push source; None for a polling source.
        actions: actions of the source on this machine.
        is_approved: whether it is approved.
    """

    handle: DatasetHandle
    name: str | None
    actions: tuple[Action, ...]
    is_approved: bool


def known_sources(dataset: StoredDataset) -> Iterator[KnownSource]:
    """Yield the current sources of a dataset."""
    for source in dataset.state.sources:
        yield KnownSource(
            handle=dataset.handle,
            name=None if isinstance(source, SetPollingSource) else source.source_name,
            actions=tuple(actions_of(source, dataset.workspace_folder.root)),
            is_approved=Approvals(dataset.workspace_folder).has(dataset.handle.id, source),
        )


def actions_of(source: Source, root: Path) -> Iterator[Action]:
    """Yield the actions of a source.

    Args:
        source: the source.
        root: folder of the workspace, which relative paths refer to.
    """
    if isinstance(source, SetPollingSource):
        yield from _fetching(source.fetch, root)
        for command in commands_of(source.prepare):
            yield Action(f"runs the command {command}, in a sandbox if the system allows it", reaches_out=True)
    else:
        yield Action("takes data from `odf ingest`", reaches_out=False)
    if source.preprocess is not None:
        yield Action(f"runs a query over each file, in {source.preprocess.engine}", reaches_out=False)


def _fetching(fetch: FetchStep, root: Path) -> Iterator[Action]:
    match fetch:
        case FetchUrl():
            yield from _of_url(fetch.url, root)
            texts = [fetch.url, *(header.value for header in fetch.headers or ())]
            yield from _settings(texts, urlsplit(without_secrets(fetch.url)).netloc or "its place")
        case FetchFilesGlob():
            yield _of_files(fetch.path, root)
            yield from _settings([fetch.path], "a path")
        case FetchContainer():
            words = shlex.join([*(fetch.command or ()), *(fetch.args or ())])
            yield Action(f"runs the image {fetch.image}{f' with {words}' if words else ''}", reaches_out=True)
            named = [variable.name for variable in fetch.env or () if variable.value is None]
            texts = [fetch.image, words, *(variable.value or "" for variable in fetch.env or ())]
            yield from _settings([*texts, *(f"${{{{ env.{name} }}}}" for name in named)], "the image")
        case FetchMqtt():
            yield Action(f"listens to the broker {without_secrets(fetch.host)}, port {fetch.port}", reaches_out=False)
            yield from _settings([fetch.host, fetch.username or "", fetch.password or ""], without_secrets(fetch.host))
        case FetchEthereumLogs():
            url = fetch.node_url or "the configured node"
            yield Action(f"asks {without_secrets(url)} for logs", reaches_out=False)
            yield from _settings([fetch.node_url or ""], urlsplit(without_secrets(url)).netloc or "the node")


def _of_url(url: str, root: Path) -> Iterator[Action]:
    shown = without_secrets(url)
    if shown.lower().startswith("file:"):
        yield _of_file(urlsplit(shown).path, root)
    else:
        yield Action(f"fetches {shown}", reaches_out=False)


def _of_files(pattern: str, root: Path) -> Action:
    """Return the action of reading files by a pattern; the text before the first wildcard determines their location."""
    plain = pattern.split("*", 1)[0].split("?", 1)[0].split("[", 1)[0]
    leads_up = ".." in PurePosixPath(pattern[len(plain) :]).parts
    return _reading(pattern, is_inside=not leads_up and _is_inside(plain, root) and "${{" not in pattern)


def _of_file(path: str, root: Path) -> Action:
    """Return the action of reading the file of a URL: its path has no wildcards, and may encode `..` as %2e%2e."""
    decoded = unquote(path)
    return _reading(path, is_inside=_is_inside(decoded, root) and "${{" not in decoded)


def _is_inside(path: str, root: Path) -> bool:
    return "\0" not in path and (root / path).resolve().is_relative_to(root.resolve())


def _reading(shown: str, *, is_inside: bool) -> Action:
    where = "in the workspace" if is_inside else "outside of the workspace"
    return Action(f"reads the files {shown}, {where}", reaches_out=not is_inside)


def _settings(texts: list[str], to: str) -> Iterator[Action]:
    names = sorted({name for text in texts for name in variables_of(text)})
    if names:
        yield Action(f"gives the environment variable {', '.join(names)} to {to}", reaches_out=True)
