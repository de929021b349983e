"""Visibility of datasets: public datasets can be read without a token.

    .odf/datasets/<id>/info/visibility      `public` or `private`; private if the file is missing

Like everything in `info/`, it stays in the workspace and is not transferred with the dataset.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from odfpy.errors import IntegrityError, InvalidValue, OdfError, member_named
from odfpy.files import open_regular, replace_file

_MAX_SIZE = 100


class Visibility(Enum):
    """The readers of a dataset over the network: everyone, or callers with a token."""

    PRIVATE = "private"
    PUBLIC = "public"

    @classmethod
    def parse(cls, text: str) -> Visibility:
        """Return the visibility of a name.

        Raises:
            InvalidValue: unknown name; the message suggests a valid one.
        """
        return member_named(cls, "visibility", text, otherwise="A dataset is public or private.")


def visibility_of(folder: Path) -> Visibility:
    """Return the visibility of the dataset in a folder.

    Raises:
        IntegrityError: the file's content is invalid.
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
        raise IntegrityError(f"{path} contains neither public nor private", hint="Run `odf set-visibility`.") from error


def set_visibility(folder: Path, visibility: Visibility) -> None:
    """Set the visibility of the dataset in a folder."""
    replace_file(folder / "info" / "visibility", f"{visibility.value}\n".encode())
