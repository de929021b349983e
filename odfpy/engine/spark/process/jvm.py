"""Spark's Java process, started directly.

Spark's own scripts start a Java just to find out how to start the Java, need a shell and tools from PATH, and require
a module that small runtimes lack. The command here is their result, so that a start is one process.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import signal
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from odfpy.engine.spark.process.java import JavaRuntime
from odfpy.engine.spark.process.settings import GUARDS, JVM_OPTIONS
from odfpy.errors import EngineUnavailable
from odfpy.values import dataclass

# Packages that Spark opens (JavaModuleOptions of Spark 4.3), without the incubating vector module.
_OPENED: Final = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
_OPENED_BEFORE_25: Final = "java.base/sun.security.action"

_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Djava.awt.headless=true",
    # A throughput collector without threads of its own while idle, and no statistics file in /tmp.
    "-XX:+UseParallelGC",
    "-XX:-UsePerfData",
    # The initial size of a start, so that none of it is spent on garbage collection.
    "-Xms256m",
    # Otherwise the young generation grows to gigabytes before it is collected; a pull needs tens of megabytes.
    "-XX:MaxNewSize=512m",
    "-XX:MetaspaceSize=256m",
    # The symbol table grows too slowly when ten thousand classes are loaded at a start.
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:SymbolTableSize=262144",
    # Each sort or map starts with a page of memory, even for a few rows: by default one of 64 MB on large machines, and
    # each broadcast of a join has its own. These are properties of the process, not settings of the session.
    # Tasks of many rows get larger pages, see `Parallelism`.
    "-Dspark.buffer.pageSize=1m",
)
_OUT_OF_MEMORY: Final = 52
"""Spark's exit code then, so that nothing continues in an inconsistent state."""
_UNSAFE_ACCESS: Final = "--sun-misc-unsafe-memory-access=allow"
_UNSAFE_ACCESS_SINCE: Final = 23
_MAIN: Final = "org.apache.spark.deploy.SparkSubmit"
_SHELL: Final = "pyspark-shell"
_LEFT_OUT: Final = "spark-mllib_"
_POLL_SECONDS: Final = 0.005
_PR_SET_PDEATHSIG: Final = 1


def spark_home() -> Path:
    """Return the folder of the installed PySpark, found without importing it.

    Raises:
        EngineUnavailable: PySpark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None or not (home := Path(spec.origin).parent).joinpath("jars").is_dir():
        raise EngineUnavailable("PySpark is not installed, or has no jars", hint="Install it with: pip install pyspark")
    return home


def class_path(home: Path) -> list[Path]:
    """Return Spark's jars, in a fixed order: a start-up cache belongs to one exact class path.

    Spark's own come first, since Java searches the jars in order. Machine learning is left out: each session would load
    it to register its functions, with a thousand classes of Scala type tags.
    """
    jars = [jar for jar in (home / "jars").glob("*.jar") if not jar.name.startswith(_LEFT_OUT)]
    return sorted(jars, key=lambda jar: (not jar.name.startswith(("spark-", "scala-")), jar))


def java_command(
    java: JavaRuntime,
    home: Path,
    scratch: Path,
    *,
    memory: str | None = None,
    options: Sequence[str] = (),
    arguments: Sequence[str] = (),
) -> list[str]:
    """Return the command that starts Spark's side of PySpark.

    Args:
        java: the runtime.
        home: see `spark_home`.
        scratch: folder for temporary files.
        memory: maximum heap, for example `2g`; None means half of the memory.
        options: further options of the Java virtual machine.
        arguments: arguments of Spark's launcher.
    """
    return [
        str(java.executable),
        *_OPTIONS,
        *([f"--add-opens={_OPENED_BEFORE_25}=ALL-UNNAMED"] if java.feature < 25 else ()),
        *([_UNSAFE_ACCESS] if java.feature >= _UNSAFE_ACCESS_SINCE else ()),
        *JVM_OPTIONS,
        *GUARDS,
        f"-Xmx{memory}" if memory else "-XX:MaxRAMPercentage=50",
        f"-Djava.io.tmpdir={scratch}",
        *options,
        "-cp",
        os.pathsep.join(map(str, class_path(home))),
        _MAIN,
        *arguments,
        _SHELL,
    ]


_ON_THIS_MACHINE: Final = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}


def java_environment(
    environ: Mapping[str, str], home: Path, scratch: Path, connection: Path, *, is_cluster: bool = False
) -> dict[str, str]:
    """Return the environment of the Java process: that of the worker, and the locations of Spark.

    Args:
        environ: the environment of this process.
        home: the folder of Spark.
        scratch: folder for temporary files.
        connection: file in which Java writes its port.
        is_cluster: whether tasks run on a cluster.
    """
    return {
        **environ,
        **({} if is_cluster else _ON_THIS_MACHINE),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
    }


@dataclass(frozen=True)
class Jvm:
    """A running Java process with Spark in it, and how PySpark reaches it."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str

    def offer_to_pyspark(self) -> None:
        """Make PySpark in this process connect to it instead of starting one."""
        os.environ.update(
            PYSPARK_GATEWAY_PORT=str(self.port), PYSPARK_GATEWAY_SECRET=self.secret, SPARK_LOCAL_IP="127.0.0.1"
        )

    def death(self, wait_seconds: float = 0) -> str | None:
        """Return how it exited, or None while it runs; optionally wait for the exit."""
        try:
            code = self.process.wait(wait_seconds)
        except subprocess.TimeoutExpired:
            return None
        return _ending(code)

    def end(self, wait_seconds: float) -> None:
        """Stop it in an orderly way by closing its standard input; kill it if that fails."""
        end(self.process, wait_seconds)


def end(process: subprocess.Popen[bytes], wait_seconds: float) -> None:
    """Close the standard input of a Java process, wait for its exit, and kill it if that takes too long."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(wait_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class JvmDied(EngineUnavailable, code="E507"):
    """The Java process exited while it was starting."""


def spawn(command: Sequence[str], environment: Mapping[str, str], log: int) -> subprocess.Popen[bytes]:
    """Start a Java process that cannot outlive the calling thread's process; call it from the main thread.

    Args:
        command: see `java_command`.
        environment: see `java_environment`.
        log: file descriptor for its output.

    Raises:
        EngineUnavailable: the program cannot be run.
    """
    libc = ctypes.CDLL(None)  # loaded before the fork: the child may do no more than call it

    def die_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    try:
        return subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509  it takes no lock that another thread could hold
        )
    except OSError as error:
        raise EngineUnavailable(f"{command[0]} does not run: {error}") from error


def connect(process: subprocess.Popen[bytes], connection: Path, wait_seconds: float) -> Jvm:
    """Wait until Spark reports its port.

    Args:
        process: Java.
        connection: file in which Java writes its port.
        wait_seconds: seconds to wait for that.

    Raises:
        JvmDied: the process exited instead.
        EngineUnavailable: it took too long; the process was killed.
    """
    deadline = time.monotonic() + wait_seconds
    while not connection.exists():  # it appears complete, by renaming
        if (code := process.poll()) is not None:
            end(process, 0)
            _died(code)
        if time.monotonic() > deadline:
            end(process, 0)
            raise EngineUnavailable(f"The Java process of the engine was not ready within {wait_seconds:.0f} s")
        time.sleep(_POLL_SECONDS)
    port, size = struct.unpack_from("!ii", content := connection.read_bytes())
    return Jvm(process, port, content[8 : 8 + size].decode())


def _died(code: int) -> NoReturn:
    raise JvmDied(f"The Java process of the engine could not start: it {_ending(code)}")


def _ending(code: int) -> str:
    if code == _OUT_OF_MEMORY:
        return "ran out of memory; its heap is as large as the setting `engine.memory` says"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
