"""Libraries that only some sources need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from odfpy.errors import FetchError


@contextmanager
def needs_extra(name: str, source: str) -> Iterator[None]:
    """Imports of what an extra of the distribution brings.

    Raises:
        FetchError: it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise FetchError(
            f"{source} sources need the Python package {package}, which is not installed",
            hint=f"pip install 'opendatafabric[{name}]'",
        ) from error
