"""The sidecar of an export: the list of its files, and their origin."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from odfpy.errors import MalformedManifest, NotFound, UnsupportedVersion

KIND: Final = "OdfExport"
VERSION: Final = 1

SUFFIX: Final = ".odf.json"
"""Suffix of a sidecar, appended to the name of the exported file."""

IN_FOLDER: Final = "_odf.json"
"""Name of the sidecar in a folder; readers of partitioned data skip names with this prefix."""


def sidecar_of(path: Path, *, is_folder: bool) -> Path:
    """Return the path of the sidecar of an exported file or folder."""
    return path / IN_FOLDER if is_folder else path.with_name(f"{path.name}{SUFFIX}")


def unlisted_files(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Return the files and links in a folder that do not belong to the export, as relative paths.

    Args:
        folder: the folder of the export.
        manifest: content of its sidecar.
    """
    known = {IN_FOLDER, *(file["path"] for file in manifest["files"])}
    paths = (Path(parent, name) for parent, folders, files in os.walk(folder) for name in (*folders, *files))
    names = (path.relative_to(folder).as_posix() for path in paths if path.is_symlink() or not path.is_dir())
    return sorted(name for name in names if name not in known)


def read_sidecar(sidecar: Path) -> Mapping[str, Any]:
    """Read and validate a sidecar.

    Raises:
        NotFound: the file does not exist.
        MalformedManifest, UnsupportedVersion: the file is not a sidecar of odfpy.
    """
    try:
        manifest = json.loads(sidecar.read_bytes())
    except FileNotFoundError as error:
        raise NotFound(
            f"No {sidecar}, the description of the export", hint="`odf export` writes it beside its files."
        ) from error
    except OSError as error:
        raise NotFound(f"Cannot read {sidecar}: {error.strerror}") from error
    except ValueError as error:
        raise MalformedManifest(f"{sidecar} is not JSON: {error}") from error
    if isinstance(manifest, dict) and manifest.get("kind") == KIND and manifest.get("version") != VERSION:
        raise UnsupportedVersion(f"{sidecar} has version {manifest.get('version')}, not {VERSION}")
    if not _is_export(manifest):
        raise MalformedManifest(f"{sidecar} does not describe an export")
    return dict(manifest)


def _is_export(manifest: Any) -> bool:
    match manifest:
        case {"kind": kind, "rows": int(), "files": [*files]} if kind == KIND:
            return all(_is_file(file) for file in files)
    return False


def _is_file(entry: Any) -> bool:
    match entry:
        case {"path": str(path), "size": int(), "hash": str()}:
            return not path.startswith("/") and ".." not in Path(path).parts
    return False
