"""Running OCI images with podman or docker: standard output is streamed, and no container is left behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from odfpy.errors import FetchError, InternalError
from odfpy.ingest.fetch.redact import last_words

ENGINES: Final = ("podman", "docker")
"""Names of programs, in order of preference."""

_RIGHTS: Final = ("--cap-drop=ALL", "--security-opt=no-new-privileges")
"""Images only fetch and print: they need no root rights, even if the engine runs as root."""

_BLOCK = 1 << 16
_TAIL = 1 << 16
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRun:
    """A container to run.

    Attributes:
        image: name of the image.
        shown: the name of the image in messages.
        entrypoint: program of the image to run instead of its own.
        arguments: arguments of the program.
        environment: variables that the program sees.
        folder: a folder of this machine that the program may write to.
        mount_point: where the program sees that folder.
        secrets: secrets that must not appear in errors.
        timeout: maximum seconds of the run, None for no limit.
    """

    image: str
    shown: str
    entrypoint: str | None
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    mount_point: str
    secrets: tuple[str, ...] = ()
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class ContainerEngine:
    """podman or docker.

    Attributes:
        program: path of the executable.
    """

    program: str

    @classmethod
    def find(cls, wanted: str) -> ContainerEngine:
        """Return the engine with a name, or with `auto` the first that is installed.

        Raises:
            FetchError: no engine is installed.
        """
        names = ENGINES if wanted == "auto" else (wanted,)
        for name in names:
            if program := shutil.which(name):
                return cls(program)
        missing = f"{wanted} is" if wanted != "auto" else "neither podman nor docker is"
        raise FetchError(
            f"A Container source runs an image, and {missing} installed",
            hint="Install podman (`apt-get install podman`, https://podman.io) or docker; "
            "`odf config set container.engine` selects one.",
        )

    def ensure_image(self, image: str, shown: str, hidden: Sequence[str]) -> None:
        """Pull the image unless it exists locally.

        Args:
            image: name of the image.
            shown: the name as messages show it.
            hidden: secrets that messages must not show.

        Raises:
            FetchError: the image cannot be pulled, or the engine does not work.
        """
        if self._run_client("image", "inspect", image).returncode == 0:
            return
        pulled = self._run_client("pull", image)
        if pulled.returncode != 0:
            raise FetchError(
                f"The image {shown} cannot be pulled\n{last_words(pulled.stderr, hidden)}",
                hint="Check the name of the image, and log in to its registry if it is private.",
            )

    @contextlib.contextmanager
    def output_of(self, run: ContainerRun) -> Iterator[Iterator[bytes]]:
        """Run an image and yield its standard output; when the block is left, the container is gone.

        Raises:
            FetchError: the run fails, or exceeds the time limit; the message has the end of its standard error.
        """
        name = f"odf-fetch-{secrets.token_hex(8)}"
        with self._arguments(run, name) as arguments:
            client = _Client(arguments)
            expired = threading.Event()
            timer = threading.Timer(run.timeout or 0, self._expire, (client, name, expired))
            try:
                with _starting(self.program):
                    output = client.start()
                if run.timeout is not None:
                    timer.start()
                yield _blocks(output)
                code = client.wait()
                if expired.is_set():
                    raise FetchError(
                        f"The container {run.shown} was stopped after {run.timeout:g} seconds",
                        hint="`odf config set container.timeout` gives it more time.",
                    )
                if code != 0:
                    raise _failure(run, code, client.last_words())
            finally:
                timer.cancel()
                if client.is_running():
                    self._end(client, name)
                client.close()

    @contextlib.contextmanager
    def _arguments(self, run: ContainerRun, name: str) -> Iterator[list[str]]:
        """Return the command. Variables are passed in a file, since the arguments of a program are publicly visible."""
        label = ":Z" if Path("/sys/fs/selinux/enforce").exists() else ""
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="surrogateescape", dir=run.folder.parent, prefix="env-"
        ) as file:
            arguments = [self.program, "run", "--rm", *_RIGHTS, f"--name={name}", f"--env-file={file.name}"]
            for variable, value in run.environment.items():
                if len(value.splitlines()) > 1:  # such a file cannot represent line breaks
                    is_handed_on = os.environ.get(variable) == value  # then the engine inherits it
                    arguments.append(f"--env={variable}" if is_handed_on else f"--env={variable}={value}")
                else:
                    file.write(f"{variable}={value}\n")
            file.flush()
            arguments.append(f"--volume={run.folder}:{run.mount_point}{label}")
            if run.entrypoint is not None:
                arguments.append(f"--entrypoint={run.entrypoint}")
            yield [*arguments, run.image, *run.arguments]

    def _expire(self, client: _Client, name: str, expired: threading.Event) -> None:
        expired.set()
        self._end(client, name)

    def _end(self, client: _Client, name: str) -> None:
        """End client and container. The client is ended first, so that it cannot start what was just removed."""
        client.kill()
        self._run_client("rm", "--force", name)

    def _run_client(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        with _starting(self.program):
            return subprocess.run(
                [self.program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False
            )


class _Client:
    """The client process of a container; its id is known as soon as it is started.

    It is started in a thread, which Ctrl-C does not interrupt: in the main thread, an interruption could come after the
    start but before the process is known, and the container would keep running.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._is_begun = False
        self._is_started = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._error: OSError | None = None
        self._tail: _Tail | None = None

    def start(self) -> IO[bytes]:
        """Start the client; return its standard output.

        Raises:
            OSError: the client cannot be started.
        """
        self._is_begun = True
        threading.Thread(target=self._start, name="odf-container", daemon=True).start()
        self._is_started.wait()
        if self._process is None:
            raise self._error or OSError("it was not started")
        self._tail = _Tail(cast("IO[bytes]", self._process.stderr))
        return cast("IO[bytes]", self._process.stdout)

    def is_running(self) -> bool:
        """Return whether it is running."""
        if self._is_begun:
            self._is_started.wait(_PATIENCE)
        return self._process is not None and self._process.poll() is None

    def wait(self) -> int:
        """Wait for its exit and return its exit code."""
        return self._begun.wait()

    def kill(self) -> None:
        """Kill the client."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._begun.pid, signal.SIGKILL)
        self._begun.wait()

    def last_words(self) -> bytes:
        """Return the end of its standard error."""
        return self._tail.read() if self._tail else b""

    def close(self) -> None:
        """Release its resources after its exit."""
        if self._process is not None:
            cast("IO[bytes]", self._process.stdout).close()
        if self._tail is not None:
            self._tail.close()
        elif self._process is not None:
            cast("IO[bytes]", self._process.stderr).close()

    @property
    def _begun(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise InternalError("The client of a container was used before its start")
        return self._process

    def _start(self) -> None:
        try:
            # In its own session: Ctrl-C only reaches this process, which stops the container reliably.
            self._process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            self._error = error
        finally:
            self._is_started.set()


class _Tail:
    """Reads a stream to its end and keeps the last bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = b""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def read(self) -> bytes:
        self._thread.join()
        return self._kept

    def close(self) -> None:
        self._thread.join(_PATIENCE)  # a process that outlives the container may hold the stream open
        if not self._thread.is_alive():
            self._stream.close()

    def _run(self) -> None:
        for block in _blocks(self._stream):
            self._kept = (self._kept + block)[-_TAIL:]


@contextlib.contextmanager
def _starting(program: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FetchError(
            f"Cannot start {program}: {error.strerror or error}", hint="Check it with `podman info`."
        ) from error


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    while block := stream.read1(_BLOCK):  # type: ignore[attr-defined]  # a buffered pipe has it
        yield block


def _failure(run: ContainerRun, code: int, output: bytes) -> FetchError:
    words = last_words(output, run.secrets) or "It printed nothing to standard error."
    hints = {
        125: "The container engine itself failed; check it with `podman info` or `docker info`.",
        126: "The command of the image cannot be run; check `command`.",
        127: "The image has no such command; check `command`.",
    }
    return FetchError(
        f"The container {run.shown} failed with exit code {code}\n{words}",
        hint=hints.get(code, "This is the output of the container; check `env` and `args` of its image."),
    )
