"""Lazy results, each computed when it is requested."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

R = TypeVar("R")


class LazyResults(Iterator[R], Generic[R]):
    """Lazy results of a verb. If none is requested, a warning says that nothing was done."""

    def __init__(self, results: Iterator[R], verb: str) -> None:
        """
        Args:
            results: makes the results.
            verb: the verb, for the warning.
        """
        self._made = _each(results)
        self._verb = verb
        self._is_consumed = False

    def __next__(self) -> R:
        self._is_consumed = True
        return next(self._made)

    def close(self) -> None:
        """Stop the work, as `close` of a generator does."""
        self._is_consumed = True
        self._made.close()

    def __del__(self) -> None:
        if not self._is_consumed:
            warnings.warn(
                f"{self._verb}() did nothing, since its results were not requested: loop over them, or use list(...)",
                RuntimeWarning,
                stacklevel=2,
            )


def _each(results: Iterator[R]) -> Generator[R, None, None]:
    """Yield the results; closing this generator closes the wrapped one."""
    yield from results
