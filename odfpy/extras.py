"""Optional libraries, and imports of large libraries that `odf` avoids to start faster."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, TypeAlias

from odfpy.errors import FetchError, OdfError

_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_Load: TypeAlias = Callable[[ModuleType], None]


@contextmanager
def needs_extra(name: str | None, what: str, failure: type[OdfError] = FetchError) -> Iterator[None]:
    """Turn a missing package in the block into an error that says how to install it.

    Args:
        name: name of the extra of the distribution; None for a package that needs no extra.
        what: what needs the package, as the plural subject of a sentence.
        failure: class of the error.

    Raises:
        failure: the package is not installed.
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


def do_without_blas_threads() -> None:
    """Keep numpy from starting threads for linear algebra, which odfpy does not use (docs/adr/0033-start.md).

    Starting them takes as long as the rest of numpy's import. Child processes, such as Spark's, are not affected.
    """

    def load_without_threads(load: _Load, module: ModuleType) -> None:
        with _one_blas_thread():
            load(module)

    sys.meta_path.insert(0, _LoadedOtherwise("numpy", load_without_threads))


def do_without_numpy_for_blocks() -> None:
    """Keep flatbuffers, which encodes blocks, from importing numpy. Blocks have no vectors that need it.

    The import takes a tenth of a small pull. Other modules import numpy as usual.
    """

    def load_without_numpy(load: _Load, module: ModuleType) -> None:
        load(module)
        module.import_numpy = lambda: None  # type: ignore[attr-defined]

    sys.meta_path.insert(0, _LoadedOtherwise("flatbuffers.compat", load_without_numpy))


class _LoadedOtherwise:
    """Finder for one module that wraps its loading."""

    def __init__(self, name: str, otherwise: Callable[[_Load, ModuleType], None]) -> None:
        self._name = name
        self._otherwise = otherwise

    def find_spec(self, name: str, *more: Any) -> ModuleSpec | None:
        """Return the module's specification; None for other modules."""
        spec = PathFinder.find_spec(name, *more) if name == self._name else None
        if spec is not None and spec.loader is not None:
            usual = spec.loader.exec_module
            spec.loader.exec_module = partial(self._otherwise, usual)  # type: ignore[method-assign]
        return spec


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Set the number of threads in the environment during the block, unless the user has set it."""
    if _BLAS_THREADS in os.environ:
        yield
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_BLAS_THREADS]
