"""Visibility of datasets: whoever reaches the server may read a public one without a token.

    .odf/datasets/<id>/info/visibility      `public` or `private`; private where there is no such file

Like everything in `info/`, it stays in the workspace and does not travel with the dataset.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from odfpy.errors import IntegrityError, InvalidValue, OdfError, member_named
from odfpy.files import open_regular, replace_file

_MAX_SIZE = 100


class Visibility(Enum):
    """The readers of a dataset over the network: all, or those with a token."""

    PRIVATE = "private"
    PUBLIC = "public"

    @classmethod
    def parse(cls, text: str) -> Visibility:
        """The visibility of that name.

        Raises:
            InvalidValue: with a suggestion.
        """
        return member_named(cls, "visibility", text, otherwise="A dataset is public or private.")


def visibility_of(folder: Path) -> Visibility:
    """Return who may read the dataset in a folder.

    Raises:
        IntegrityError: the file says neither.
    """
    path = folder / "info" / "visibility"
    try:
        with open_regular(path) as file:
            text = file.read(_MAX_SIZE).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return Visibility.PRIVATE
    except OSError as error:
        raise OdfError(f"Cannot read {path}: {error.strerror}") from error
    try:
        return Visibility.parse(text)
    except InvalidValue as error:
        raise IntegrityError(f"{path} says neither public nor private", hint="Run `odf set-visibility`.") from error


def set_visibility(folder: Path, visibility: Visibility) -> None:
    """Decide who may read the dataset in a folder."""
    replace_file(folder / "info" / "visibility", f"{visibility.value}\n".encode())
