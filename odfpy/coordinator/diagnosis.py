"""`odf system diagnose`: check that the installation is complete and works.

Each check is a function that returns a description, or raises an `OdfError` with a hint.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from importlib.metadata import version as version_of
from pathlib import Path

from odfpy.coordinator.tested_versions import TESTED
from odfpy.coordinator.workspace import Workspace
from odfpy.data.amounts import format_size
from odfpy.data.multihash import Multihash
from odfpy.engine.spark.process.java import find_java
from odfpy.errors import EngineUnavailable, IntegrityError, OdfError, WorkspaceNotFound
from odfpy.http.url import without_user
from odfpy.settings.sections import SETTINGS

DISTRIBUTION = "opendatafabric"
MIN_FREE = 1 << 30
"""Minimum free space of a disk, in bytes."""

MIN_MEMORY = 1 << 30
"""Minimum free memory for Spark, in bytes."""

_PYTHONS = ((3, 10), (3, 13))
# Imported to check that their native parts load; Spark is checked with the engine.
_NATIVE = ("pyarrow", "duckdb", "datafusion", "cryptography", "blake3")
_KNOWN_HASH = Multihash.parse("f16201971b5e146610008b8de28e53551e0242c35ae19c091359ef211c0edc913f2af")
_REQUIREMENT = re.compile(r"^([\w.-]+)\s*(?:>=\s*([\d.]+))?")
_SECRET_OPTIONS = ("--token", "--secret", "--password")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check.

    Attributes:
        name: name of the check.
        ok: whether it succeeded.
        detail: description of the result.
        hint: how to fix it if it failed.
    """

    name: str
    ok: bool
    detail: str
    hint: str | None = None


def diagnose(folder: Path, *, engines: bool = True) -> Iterator[CheckResult]:
    """Run all checks, one after the other.

    Args:
        folder: a folder in a workspace, which is checked too; elsewhere the engines are tried in a temporary workspace.
        engines: whether to start the engines and run a query, which takes some seconds for Spark.
    """
    checks: dict[str, Callable[[], str]] = {
        "python": _python,
        "packages": _packages,
        "native code": _native,
        "hashes": _bytes,
        "java": _java,
        "memory": _memory,
        "temporary files": lambda: _disk(Path(tempfile.gettempdir())),
        "sandbox": _sandbox,
        "containers": _containers,
    }
    yield from (_checked(name, check) for name, check in checks.items())
    try:
        workspace = Workspace.open(folder)
    except WorkspaceNotFound:
        yield CheckResult("workspace", ok=True, detail="none here, so nothing to check")
        with tempfile.TemporaryDirectory(prefix="odf-diagnose-") as temporary:
            yield from _engines(Workspace.init(temporary)) if engines else ()
        return
    except OdfError as error:
        yield _failed("workspace", error)
        return
    yield _checked("workspace", lambda: str(workspace.root))
    yield _checked("settings", partial(_settings, workspace))
    yield _checked("privacy", partial(_privacy, workspace))
    yield _checked("disk", lambda: _disk(workspace.odf))
    yield _checked("locks", partial(_locks, workspace))
    yield _checked("datasets", partial(_datasets, workspace))
    yield from _engines(workspace) if engines else ()


def _checked(name: str, check: Callable[[], str]) -> CheckResult:
    try:
        return CheckResult(name, ok=True, detail=check())
    except OdfError as error:
        return _failed(name, error)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return CheckResult(name, ok=False, detail=what, hint="Check the disk, and who may write there.")


def _failed(name: str, error: OdfError) -> CheckResult:
    return CheckResult(name, ok=False, detail=error.message, hint=error.hint)


# --- The machine -----------------------------------------------------------------------------------------------------


def _python() -> str:
    first, last = _PYTHONS
    if not first <= sys.version_info[:2] <= last:
        raise OdfError(
            f"Python {platform.python_version()} is not supported by odfpy",
            hint=f"Use Python {'.'.join(map(str, first))} to {'.'.join(map(str, last))}.",
        )
    return f"{platform.python_version()} at {sys.executable}"


def _packages() -> str:
    try:
        wanted = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return "not checked: odfpy runs from source and is not installed"
    versions, wrong = [], []
    for requirement in wanted:
        match = _REQUIREMENT.match(requirement)
        if match is None or "extra ==" in requirement:
            continue
        name, least = match.groups()
        try:
            installed = version_of(name)
        except PackageNotFoundError:
            wrong.append(f"{name} is missing")
            continue
        tested = TESTED.get(name, installed)
        is_newer = _numbers(installed)[:2] > _numbers(tested)[:2]
        versions.append(f"{name} {installed}{f' (newer than {tested}, which was tested)' if is_newer else ''}")
        if least and _numbers(installed) < _numbers(least):
            wrong.append(f"{name} {installed} is older than {least}")
    if wrong:
        raise OdfError(", ".join(wrong), hint=f"Install odfpy again: {sys.executable} -m pip install -U {DISTRIBUTION}")
    return ", ".join(versions)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


def _bytes() -> str:
    """Check that blocks are serialized to exactly the hashed bytes, with all versions of libraries."""
    from odfpy.chain.block import MetadataBlock
    from odfpy.chain.encoding import encode_block
    from odfpy.chain.events import SetInfo
    from odfpy.data.timestamp import Timestamp

    time = Timestamp.parse("2024-01-02T03:04:05.678Z")
    block = MetadataBlock(system_time=time, prev_block_hash=None, sequence_number=1, event=SetInfo("known", ("a", "b")))
    actual = Multihash.of(encode_block(block))
    if actual != _KNOWN_HASH:
        raise OdfError(
            f"a reference block has the hash {actual} here, and not {_KNOWN_HASH}",
            hint=f"Install odfpy again: {sys.executable} -m pip install -U {DISTRIBUTION}",
        )
    return "a reference block has the expected hash"


def _native() -> str:
    for name in _NATIVE:
        try:
            import_module(name)
        except ImportError as error:
            raise OdfError(
                f"{name} cannot be loaded: {error}",
                hint=f"Install it again: {sys.executable} -m pip install --force-reinstall {name}",
            ) from error
    from odfpy.data.slices import packing

    packed = "with" if packing.compiled else "without"
    return f"{', '.join(_NATIVE)} load; logical hashes are computed {packed} the compiled module"


def _java() -> str:
    java = find_java()
    return f"{java.version} at {java.home} (from {java.source})"


def _memory() -> str:
    page = os.sysconf("SC_PAGE_SIZE")
    free, total = page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError):  # only this file includes reclaimable caches
        available = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text("ascii"), re.MULTILINE)
        free = int(available[1]) * 1024 if available else free
    if free < MIN_MEMORY:
        raise OdfError(
            f"{format_size(free)} of {format_size(total)} are free",
            hint="Spark needs about a gibibyte: close other programs, or limit it with `odf config set engine.memory`.",
        )
    return f"{format_size(free)} of {format_size(total)} free, {os.cpu_count()} processors"


def _disk(folder: Path) -> str:
    """Check that a folder is writable and has free space."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".diagnose-") as file:
        file.write(b"odf")
        file.flush()
        os.fsync(file.fileno())
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE:
        raise OdfError(
            f"{folder}: only {format_size(free)} are free",
            hint="Free some space; `odf list` shows the size of datasets.",
        )
    return f"{folder} can be written to, {format_size(free)} free"


def _sandbox() -> str:
    """Return how strictly the system allows to confine the engine and the commands of `Pipe` steps."""
    from odfpy.sandbox.check import describe_confinement
    from odfpy.sandbox.command import isolation

    network = "without network" if isolation() else "with network: namespaces are off here"
    return f"for the Spark engine {describe_confinement()}; commands of Pipe steps run {network}"


def _containers() -> str:
    from odfpy.ingest.fetch.container.engine import ContainerEngine

    try:
        return f"{ContainerEngine.find('auto').program}, for Container sources"
    except OdfError:
        return "neither podman nor docker (only needed for Container sources)"


# --- The workspace ---------------------------------------------------------------------------------------------------


def _settings(workspace: Workspace) -> str:
    """Return the settings without values that may contain tokens, since users share the report."""
    changed = [item for item in workspace.config.items() if item.origin != "default"]
    assignments = (f"{item.setting.key}={item.shown}" for item in changed)
    return ", ".join(assignments) or "all as they come"


def _privacy(workspace: Workspace) -> str:
    """Check that other users of the machine have no access: data may be private, and settings may contain tokens."""
    mode = stat.S_IMODE(workspace.odf.stat().st_mode)
    if not mode & 0o077:
        return "other users of this machine cannot read it"
    return f"{workspace.odf} can be read by others (mode {mode:o}); `chmod 700 {workspace.odf}` keeps them out"


def _locks(workspace: Workspace) -> str:
    """Check that locks exclude other processes, which some network file systems do not ensure."""
    for part in ("datasets", "cache", "keys", "repos"):
        folder = workspace.odf / part
        if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
            raise OdfError(f"{folder} cannot be written to", hint="Check its owner and permissions.")
    path = workspace.storage.run / "locks" / "diagnose"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as first, path.open("w") as second:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            path.unlink()
            return "locks work"
    raise OdfError(f"{path.parent}: locks do not work there", hint="Move the workspace to a local disk.")


def _datasets(workspace: Workspace) -> str:
    intact, damaged = workspace.datasets.survey()
    if damaged:
        names = ", ".join(dataset.name for dataset in damaged)
        raise IntegrityError(f"{len(damaged)} of {len(intact) + len(damaged)} are damaged: {names}", hint="odf list")
    return f"{len(intact)}, all can be read; `odf verify --all` checks them thoroughly"


# --- The engines -----------------------------------------------------------------------------------------------------


def _engines(workspace: Workspace) -> Iterator[CheckResult]:
    yield _checked("datafusion", partial(_query, workspace, "datafusion"))
    with _left_as_it_was(workspace):
        yield _checked("spark", partial(_query, workspace, "spark"))


def _query(workspace: Workspace, engine: str) -> str:
    (row,) = workspace.sql("select 1 + 1 as two", engine=engine).to_pylist()
    if row != {"two": 2}:
        raise EngineUnavailable(f"1 + 1 is {row['two']}", hint="Please report this.")
    return f"{workspace.engines.registry.get(engine).version} answers"


@contextmanager
def _left_as_it_was(workspace: Workspace) -> Iterator[None]:
    """Stop an engine afterwards that was not running before."""
    try:
        was_running = workspace.engines.status() is not None
    except OdfError:  # it does not answer, which the check reports
        was_running = True
    try:
        yield
    finally:
        if not was_running:
            workspace.engines.stop(force=True)


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command for a report, with "***" for tokens and secrets, and URLs without users.

    Args:
        arguments: the arguments after the name of the program.
    """
    secret = {key for key, setting in SETTINGS.items() if setting.help.is_secret}
    shown = []
    for before, argument in zip(("", *arguments), arguments, strict=False):
        name, is_joined, _ = argument.partition("=")
        if before in _SECRET_OPTIONS or before in secret:
            shown.append("***")
        elif name in _SECRET_OPTIONS and is_joined:
            shown.append(f"{name}=***")
        else:
            shown.append(without_user(argument))
    return shown
