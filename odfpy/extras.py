"""Libraries that not everybody needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from odfpy.errors import FetchError, OdfError


@contextmanager
def needs_extra(name: str | None, what: str, failure: type[OdfError] = FetchError) -> Iterator[None]:
    """Imports of what an extra of the distribution brings.

    Args:
        name: of the extra; None for what should be there without any.
        what: what needs it, as the beginning of a sentence about several.
        failure: the error to raise.

    Raises:
        failure: it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise failure(
            f"{what} need the Python package {package}, which is not installed",
            hint=f"pip install {package}" if name is None else f"pip install 'opendatafabric[{name}]'",
        ) from error


def do_without_pandas() -> None:
    """Keep pyarrow from importing pandas only to ask whether a list is a Series (docs/adr/0033-start.md)."""
    sys.meta_path.insert(0, _NoPandas)


class _NoPandas:
    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("odf does without pandas", name=name)
