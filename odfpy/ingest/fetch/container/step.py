"""Fetching the output of a container (ODF specification, "FetchStep: Container").

The image prints data to standard output, and exchanges its state by variables and files:

    ODF_ETAG, ODF_LAST_MODIFIED     state after the last run, empty before the first; at most one of them is set
    ODF_BATCH_SIZE                  approximate number of rows after which it should stop
    ODF_NEW_ETAG_PATH               file to write the new state to, as text of its own choice
    ODF_NEW_LAST_MODIFIED_PATH      or as a time, in RFC 3339
    ODF_NEW_HAS_MORE_DATA_PATH      file to create if it stopped before the end: it runs again after the commit

No output and no new state mean that the source is up to date.

An image is an untrusted program, so its files are read with care: only regular files are read, links are not
followed, and each file is read up to the maximum size of a state.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from odfpy.chain.events import SourceState
from odfpy.chain.sources import FetchContainer
from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError, InvalidValue
from odfpy.ingest.fetch.container.engine import ContainerEngine, ContainerRun
from odfpy.ingest.fetch.context import FetchContext, FetchedFile
from odfpy.ingest.fetch.redact import secrets_of
from odfpy.ingest.source_state import etag_state, known_etag, known_last_modified, last_modified_state
from odfpy.ingest.templates import expand

BATCH_SIZE = "ODF_BATCH_SIZE"
"""A variable that a manifest may set itself."""

_OUT = "/opt/odf/out"
_ETAG, _LAST_MODIFIED, _HAS_MORE = "new-etag", "new-last-modified", "new-has-more-data"
_MAX_STATE = 1 << 16


@dataclass(frozen=True, slots=True)
class _Batch:
    """The output of one run."""

    path: Path
    size: int
    state: SourceState | None
    has_more: bool


def fetch_container(step: FetchContainer, context: FetchContext) -> Iterator[FetchedFile]:
    """Yield the output of the image in batches; each run begins after the previous batch was committed.

    Raises:
        FetchError: there is no container engine, or the image cannot be pulled, fails or violates the rules above.
        InvalidValue: a name in the step is invalid.
    """
    state = _without_line_break(context.known_state)
    if context.is_uncacheable:
        return  # the image keeps no state to continue from
    engine = ContainerEngine.find(context.options.container_engine)
    context.scratch.mkdir(parents=True, exist_ok=True)
    hidden = _secrets(step, context)
    image = _image(step, context)
    context.options.bounds.require_image(image, step.image)
    engine.ensure_image(image, step.image, hidden)
    while True:
        batch = _run(engine, step, image, state, context, hidden)
        if batch.size == 0 and batch.state in (None, state):
            return
        if batch.state is not None and batch.state == state:
            raise FetchError(
                f"The container {step.image} printed data but did not change the state",
                hint="It has to write a new ETag or time with new data, or the same rows would be ingested again.",
            )
        if batch.has_more and batch.state is None:
            raise FetchError(
                f"The container {step.image} reports more data, but no state to continue from",
                hint="It has to write its state to ODF_NEW_ETAG_PATH or ODF_NEW_LAST_MODIFIED_PATH as well.",
            )
        yield FetchedFile(
            path=batch.path,
            name=f"container {step.image}",
            state=batch.state,
            event_time=context.now,
            is_temporary=True,
            is_empty=batch.size == 0,
        )
        if not batch.has_more:
            return
        state = batch.state


# --- One run ---------------------------------------------------------------------------------------------------------


def _run(
    engine: ContainerEngine,
    step: FetchContainer,
    image: str,
    state: SourceState | None,
    context: FetchContext,
    hidden: tuple[str, ...],
) -> _Batch:
    program, *first = step.command or (None,)
    folder = Path(tempfile.mkdtemp(dir=context.scratch, prefix="container-"))
    out = folder / "out"
    out.mkdir()
    out.chmod(0o777)  # for any user of the image; the folder around it is closed to others
    run = ContainerRun(
        image=image,
        shown=step.image,
        entrypoint=program,
        arguments=(*filter(None, first), *(expand(text, context.environment) for text in step.args or ())),
        environment=_environment(step, state, context),
        folder=out,
        mount_point=_OUT,
        secrets=hidden,
        timeout=context.options.container_timeout,
    )
    path = folder / "output"
    size = 0
    try:
        with path.open("wb") as file, engine.output_of(run) as output:
            for block in output:
                size += len(block)
                if size > context.max_bytes:
                    raise FetchError(
                        f"The container {step.image} printed more than the {context.max_bytes} bytes that are allowed",
                        hint="`odf config set fetch.maxSize` allows more.",
                    )
                file.write(block)
                if context.progress is not None:
                    context.progress(size, None)
        with _Left.open(out, step.image) as left:
            return _Batch(path, size, _new_state(left), left.read(_HAS_MORE) is not None)
    except OSError as error:
        raise FetchError(f"Cannot store the output of the container {step.image}: {error.strerror or error}") from error


def _without_line_break(state: SourceState | None) -> SourceState | None:
    """Return the state as we record it; the reference implementation retains the line break that `echo` writes."""
    return None if state is None else replace(state, value=state.value.rstrip("\r\n"))


def _new_state(left: _Left) -> SourceState | None:
    if (etag := left.read(_ETAG)) is not None:
        return etag_state(left.text(_ETAG, etag))
    if (modified := left.read(_LAST_MODIFIED)) is None:
        return None
    text = left.text(_LAST_MODIFIED, modified)
    try:
        return last_modified_state(Timestamp.parse(text))
    except InvalidValue as error:
        raise FetchError(
            f"The container {left.shown} wrote {text[:100]!r} as the time of the last modification",
            hint="ODF_NEW_LAST_MODIFIED_PATH takes a time in RFC 3339, for example 2024-01-31T12:00:00Z.",
        ) from error


@dataclass(frozen=True, slots=True)
class _Left:
    """The writable folder of a container, after the container has exited.

    Attributes:
        descriptor: descriptor of the open folder, in which names are looked up even if it is moved.
        shown: the name of the image in messages.
    """

    descriptor: int
    shown: str

    @classmethod
    @contextmanager
    def open(cls, folder: Path, shown: str) -> Iterator[_Left]:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            yield cls(descriptor, shown)
        finally:
            os.close(descriptor)

    def read(self, name: str) -> bytes | None:
        """Return the first bytes of a regular file, one more than a state may have; None if there is no such file.

        Raises:
            FetchError: the path is a link, a pipe or a folder.
        """
        # O_NONBLOCK: opening a pipe without a writer would block for ever.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
        try:
            file = os.open(name, flags, dir_fd=self.descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise self._no_file(name) from error
            raise
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise self._no_file(name)
            with open(file, "rb", closefd=False) as stream:
                return stream.read(_MAX_STATE + 1)
        finally:
            os.close(file)

    def text(self, name: str, content: bytes) -> str:
        """Return the content of a state file; a line break at its end, as `echo` writes it, is not part of it."""
        try:
            text = content.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            text = ""
        if not text or len(content) > _MAX_STATE or "\0" in text:
            raise FetchError(
                f"The container {self.shown} wrote an invalid state to {name}",
                hint=f"A state is text in UTF-8 of at most {_MAX_STATE} bytes, and not empty.",
            )
        return text

    def _no_file(self, name: str) -> FetchError:
        return FetchError(
            f"The container {self.shown} left something at {name} that is not a regular file",
            hint="Links, pipes and folders are not read: they may refer to files of this machine.",
        )


# --- Inputs of a run -------------------------------------------------------------------------------------------------


def _image(step: FetchContainer, context: FetchContext) -> str:
    image = expand(step.image, context.environment)
    if not image or image.startswith("-") or not image.isprintable() or " " in image:
        raise InvalidValue(f"{step.image!r} is not a name of an image", hint="For example ghcr.io/owner/name:1.0.")
    return image


def _environment(step: FetchContainer, state: SourceState | None, context: FetchContext) -> dict[str, str]:
    variables = {BATCH_SIZE: str(context.options.batch_size)}
    for variable in step.env or ():
        if not variable.name or not variable.name.isprintable() or set(variable.name) & set("= #"):
            raise InvalidValue(f"{variable.name!r} is not a name of an environment variable")
        template = f"${{{{ env.{variable.name} }}}}" if variable.value is None else variable.value
        variables[variable.name] = expand(template, context.environment)
    if not (variables[BATCH_SIZE].isascii() and variables[BATCH_SIZE].isdecimal()):
        raise InvalidValue(f"{BATCH_SIZE} must be a whole number, not {variables[BATCH_SIZE]!r}")
    modified = known_last_modified(state)
    return variables | {
        "ODF_ETAG": known_etag(state) or "",
        "ODF_LAST_MODIFIED": "" if modified is None else str(modified),
        "ODF_NEW_ETAG_PATH": f"{_OUT}/{_ETAG}",
        "ODF_NEW_LAST_MODIFIED_PATH": f"{_OUT}/{_LAST_MODIFIED}",
        "ODF_NEW_HAS_MORE_DATA_PATH": f"{_OUT}/{_HAS_MORE}",
    }


def _secrets(step: FetchContainer, context: FetchContext) -> tuple[str, ...]:
    named = [f"env.{variable.name}" for variable in step.env or () if variable.value is None]
    given = [variable.value for variable in step.env or () if variable.value is not None]
    return secrets_of((step.image, *(step.args or ()), *given, *named), context.environment)
