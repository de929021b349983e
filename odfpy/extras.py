"""Libraries that not everybody needs, and what `odf` does without."""

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


def do_without_blas_threads() -> None:
    """Keep numpy from starting threads for algebra, which nobody does here (docs/adr/0033-start.md).

    They take as long as the rest of numpy. Other processes, such as those of Spark, are not told.
    """

    def load_without_threads(load: _Load, module: ModuleType) -> None:
        with _one_blas_thread():
            load(module)

    sys.meta_path.insert(0, _LoadedOtherwise("numpy", load_without_threads))


def do_without_numpy_for_blocks() -> None:
    """Keep flatbuffers, by which blocks are written, from importing numpy, for vectors that no block has.

    That takes a tenth of the time of a small pull. Who needs numpy imports it as usual.
    """

    def load_without_numpy(load: _Load, module: ModuleType) -> None:
        load(module)
        module.import_numpy = lambda: None  # type: ignore[attr-defined]

    sys.meta_path.insert(0, _LoadedOtherwise("flatbuffers.compat", load_without_numpy))


class _LoadedOtherwise:
    """Finds one module, and has it loaded in another way."""

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
    """Say so in the environment, which the library reads when it is loaded, unless somebody has said something."""
    if _BLAS_THREADS in os.environ:
        yield
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_BLAS_THREADS]
