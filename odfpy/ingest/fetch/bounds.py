"""Bounds on what sources may access, set by the operator: variables, hosts, folders and images.

They apply to every source, including approved ones, and are checked before anything is accessed. A pattern is a text
with `*`, `?` and `[...]`, as in file names.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from odfpy.chain.sources import FetchContainer, FetchEthereumLogs, FetchFilesGlob, FetchMqtt, FetchStep, FetchUrl
from odfpy.errors import FetchError
from odfpy.ingest.templates import variables_of
from odfpy.values import dataclass

Patterns: TypeAlias = "tuple[str, ...] | None"
"""Patterns of permitted values; None for any."""


class SourceOutOfBounds(FetchError, code="E431"):
    """A source would access something that the settings of the workspace do not allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBounds:
    """The bounds on what sources may access.

    Attributes:
        variables: patterns for environment variables.
        hosts: patterns for names or addresses of servers, optionally with a port; also buckets of object stores.
        folders: folders whose files may be read, besides those of the workspace.
        images: patterns for container images.
    """

    variables: Patterns = None
    hosts: Patterns = None
    folders: tuple[Path, ...] | None = None
    images: Patterns = None

    def require_variables(self, step: FetchStep) -> None:
        """Check that a step uses only allowed variables.

        Raises:
            SourceOutOfBounds: the step uses another variable.
        """
        for name in sorted({name for text in _texts_of(step) for name in variables_of(text)}):
            _require(name, self.variables, f"the environment variable {name}", "sources.variables", name)

    def require_host(self, url: str) -> None:
        """Check that the server of a URL may be contacted; raises as `require_variables`."""
        if self.hosts is None:
            return
        parts = urlsplit(url if "://" in url else f"//{url}")
        host = (parts.hostname or "").rstrip(".")
        names = [host] if parts.port is None else [host, f"{host}:{parts.port}"]
        _require(host, self.hosts, f"the host {host}", "sources.hosts", *names)

    def require_image(self, image: str, shown: str) -> None:
        """Check that an image may be run; raises as `require_variables`."""
        _require(shown, self.images, f"the image {shown}", "sources.images", image)

    def require_file(self, path: Path, root: Path) -> None:
        """Check that a file or folder may be read, with links resolved; `root` is the workspace. Raises as above."""
        if self.folders is None:
            return
        place = path.resolve()
        if not any(place.is_relative_to(folder.resolve()) for folder in (root, *self.folders)):
            raise _refused(f"the file {path}", "sources.folders", str(place.parent))


def _texts_of(step: FetchStep) -> Iterable[str]:
    """Return the texts of a step that may contain templates."""
    match step:
        case FetchUrl():
            return [step.url, *(header.value for header in step.headers or ())]
        case FetchFilesGlob():
            return [step.path]
        case FetchContainer():
            named = [f"${{{{ env.{variable.name} }}}}" for variable in step.env or () if variable.value is None]
            given = [variable.value for variable in step.env or () if variable.value is not None]
            return [step.image, *(step.command or ()), *(step.args or ()), *given, *named]
        case FetchMqtt():
            return [step.host, step.username or "", step.password or ""]
        case FetchEthereumLogs():
            return [step.node_url or ""]


def _require(value: str, patterns: Patterns, what: str, setting: str, *names: str) -> None:
    if patterns is None:
        return
    lower = setting == "sources.hosts"
    if not any(fnmatchcase(name, pattern.lower() if lower else pattern) for name in names for pattern in patterns):
        raise _refused(what, setting, value)


def _refused(what: str, setting: str, value: str) -> SourceOutOfBounds:
    return SourceOutOfBounds(
        f"The source uses {what}, which {setting} does not allow",
        hint=f"`odf config get {setting}` shows what sources may use; to add it, set it with {value} as well.",
    )
